# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Reads and checks the description files."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from switchgnn.base.files import read_regular
from switchgnn.base.names import no_such
from switchgnn.base.records import RecordError, make_record, parse_json
from switchgnn.lab.experiments.description import FASTEST, ExperimentError, Figure, Scale
from switchgnn.lab.experiments.draw import KINDS
from switchgnn.lab.experiments.measures import MEASURES, OVER_TIME
from switchgnn.lab.experiments.table import WHERE
from switchgnn.lab.simulator import LeafSpineOptions, SimulatorError, parse_mtu
from switchgnn.lab.simulator.request import SYSTEMS
from switchgnn.lab.simulator.setup import Mtu
from switchgnn.profiles import known_profiles

FOLDER = Path(__file__).parent / "figures"
# A sentence for people who read the file; JSON has no comments.
_COMMENT = "about"
_GIVE = ("saved", "times")
_TIME, _RATIOS = "time", "ratios"


def known_figures(folder: Path = FOLDER) -> list[str]:
    """Return the names of all figures, in the paper's order."""
    names = [path.stem for path in folder.glob("*.json")]
    return sorted(names, key=lambda name: (not name.startswith("figure"), len(name), name))


def load_figures(names: Sequence[str], folder: Path = FOLDER) -> list[Figure]:
    """Read the descriptions of these figures; without names, of all but `example`.

    Raises:
        ExperimentError: there is no such figure, or its description is wrong.
    """
    known = known_figures(folder)
    for name in names:
        if name not in known:
            raise ExperimentError(no_such("figure", name, known))
    chosen = dict.fromkeys(names) or [name for name in known if name != "example"]
    return [_load(folder / f"{name}.json") for name in chosen]


def _load(path: Path) -> Figure:
    try:
        told = parse_json(read_regular(path))
    except (OSError, RecordError) as error:
        raise ExperimentError(f"Cannot read the description {path}: {error}.") from error
    if isinstance(told, dict):
        told.pop(_COMMENT, None)
        told.setdefault("name", path.stem)
    try:
        figure = make_record(Figure, told)
    except RecordError as error:
        raise ExperimentError(f"{path.name}: {error}.") from error
    _check(figure, path.name)
    return figure


def _check(figure: Figure, where: str) -> None:
    """Names in it lead somewhere."""
    _check_mtu(figure.mtu, where)
    labels = [series.label for series in figure.series]
    _known(where, "scale", "small", figure.scales)
    for name, scale in figure.scales.items():
        if scale.leaf_spine is not None:
            _check_leaves(scale.leaf_spine, min(scale.workers), f"{where}: scales {name}")
    for series in figure.series:
        _known(f"{where}: {series.label}", "system", series.system, SYSTEMS)
        _known(f"{where}: {series.label}", "switch", series.switch, known_profiles())
    for panel in figure.panels:
        at = f"{where}: {panel.title}"
        _known(at, "way to draw", panel.draw, KINDS)
        _known(at, "measure", panel.y, OVER_TIME if panel.draw == _TIME else MEASURES)
        if panel.draw != _TIME:
            _known(at, "axis", panel.x, WHERE)
        for label in (*panel.series, *([panel.of] if panel.draw == _RATIOS else [])):
            _known(at, "series", label, labels)
        for key in panel.where or {}:
            _known(at, "choice", key, WHERE)
    for claim in figure.claims:
        at = f"{where}: {claim.says}"
        _known(at, "measure", claim.measure, MEASURES)
        _known(at, "number to give", claim.give, _GIVE)
        _known(at, "series", claim.before, [*labels, FASTEST])
        _known(at, "series", claim.after, labels)
        for key in claim.where or {}:
            _known(at, "choice", key, WHERE)


def _check_leaves(leaf_spine: LeafSpineOptions, workers: int, where: str) -> None:
    try:
        leaf_spine.words(workers)
    except SimulatorError as error:
        raise ExperimentError(f"{where}: {error}") from error


def _check_mtu(mtu: Mtu, where: str) -> None:
    try:
        parse_mtu(str(mtu))
    except SimulatorError as error:
        raise ExperimentError(f"{where}: {error}") from error


def _known(where: str, what: str, name: str, known: Sequence[str] | Mapping[str, object]) -> None:
    if name not in known:
        raise ExperimentError(f"{where}: {no_such(what, name, known)}")


def parse_graphs(words: Sequence[str]) -> dict[str, str]:
    """Read `NAME=GRAPH` words: the paper's name for a graph, and one as load_graph takes it.

    Raises:
        ExperimentError: a word without a name or a graph, or a name that comes twice.
    """
    graphs: dict[str, str] = {}
    for word in words:
        name, equals, graph = word.partition("=")
        if not (name and equals and graph) or name in graphs:
            raise ExperimentError(f"--graph {word} is not NAME=GRAPH, as Reddit=reddit.npz, once.")
        graphs[name] = graph
    return graphs


def with_graphs(figures: Sequence[Figure], graphs: Mapping[str, str]) -> list[Figure]:
    """Return the figures with these graphs in all scales; none of them shrinks anything.

    Raises:
        ExperimentError: no figure has a graph of that name.
    """
    known = {name for figure in figures for it in figure.scales.values() for name in it.graphs}
    for name in graphs:
        if name not in known:
            where = " in these figures"
            raise ExperimentError(no_such("graph", name, sorted(known), where=where))
    return [
        replace(
            figure,
            scales={name: _with_graphs(scale, graphs) for name, scale in figure.scales.items()},
        )
        for figure in figures
    ]


def _with_graphs(scale: Scale, graphs: Mapping[str, str]) -> Scale:
    made = {
        name: replace(graph, graph=graphs[name], shrink=1.0) if name in graphs else graph
        for name, graph in scale.graphs.items()
    }
    return replace(scale, graphs=made)
