# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a description file of a figure says; `load.py` reads and checks it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.files import read_regular
from switchgnn.base.records import RecordError, make_record, parse_json
from switchgnn.lab.experiments.draw import KINDS
from switchgnn.lab.experiments.measures import MEASURES, OVER_TIME
from switchgnn.lab.experiments.table import WHERE
from switchgnn.lab.simulator import ETHERNET_MTU, LeafSpineOptions, SimulatorError, parse_mtu
from switchgnn.lab.simulator.request import SYSTEMS
from switchgnn.lab.simulator.setup import Mtu
from switchgnn.profiles import known_profiles

# In a `where`: the smallest and the largest that the scale has.
LEAST, MOST = "least", "most"
UNLIMITED = "unlimited"
# In a claim's `before`: of all other series the one with the least number there.
FASTEST = "the fastest other"


@dataclass(frozen=True)
class Series:
    """A colour of the legend.

    Attributes:
        label: what the legend calls it.
        system: one of SYSTEMS in `simulator/request.py`.
        memory: the switch's in place of the scale's: as 10MB, or `unlimited`.
        order: a key of ORDER_STRATEGIES in place of the system's.
        congestion_control: see NetworkOptions.
        whole_features: a slot holds a whole feature of the graph's, as the paper counts memory.
        switch: a name of `known_profiles`: banks, ports, tables, and the rate of the loop where
            the scale has none. Memory is the scale's.
    """

    label: str
    system: str
    memory: str | None = None
    order: str | None = None
    congestion_control: bool = True
    whole_features: bool = False
    switch: str = UNLIMITED


@dataclass(frozen=True)
class ScaledGraph:
    """A graph, and how much smaller than the paper's it is.

    Attributes:
        graph: as load_graph takes it; `{seed}` stands for the seed.
        shrink: the switch's memory, its tables', the delay of links and G3's bins are multiplied
            with it: so there are as many blocks and bins, and a barrier takes the same share of
            the time.
        feature: numbers of its whole feature (the paper's table 1).
    """

    graph: str
    shrink: float = 1.0
    feature: int = 128


@dataclass(frozen=True)
class Scale:
    """How large a figure is made.

    Attributes:
        graphs: by the paper's name for them.
        workers: their numbers.
        memory: of the switch, before it shrinks with the graph.
        seeds: how many; each draws the graph, the partition and the orders anew.
        recirculation_rates: passes per second; None: the switch's, or no limit.
        leaf_spine: in place of the star's switch; None: a star.
        background: loads, as shares of the links' rate.
        buffer: of each queue of the switch, as 500kB; None: no limit. It does not shrink.
    """

    graphs: Mapping[str, ScaledGraph]
    workers: tuple[int, ...]
    memory: tuple[str, ...]
    seeds: int = 1
    recirculation_rates: tuple[float | None, ...] = (None,)
    leaf_spine: LeafSpineOptions | None = None
    background: tuple[float, ...] = (0.0,)
    buffer: str | None = None


@dataclass(frozen=True)
class Panel:
    """One picture of a figure.

    Attributes:
        title: above it; `{workers}` stands for their number.
        draw: a key of KINDS in `draw.py`.
        y: what is drawn, a key of MEASURES in `measures.py`; of `time`, a key of OVER_TIME.
        x: `workers`, `memory`, `graph`, `recirculation` or `background`; `time` has none.
        where: what else is looked at: names of graphs, numbers of workers, memory; or `least`,
            `most`.
        series: labels of those that are drawn; empty: all.
        of: of `ratios`, a heat map: label of the series whose number is divided by the least of
            the others.
    """

    title: str
    draw: str
    y: str
    x: str = ""
    where: Mapping[str, str | int] | None = None
    series: tuple[str, ...] = ()
    of: str = ""


@dataclass(frozen=True)
class Claim:
    """A number of the paper, and what to set beside it.

    Attributes:
        says: what it is.
        paper: the paper's number, in its words.
        measure: a key of MEASURES.
        before, after: labels of two series; `before` may be FASTEST.
        give: `saved`: the share by which `after` is below `before`; `times`: after / before.
        where: as of a panel. Where it leaves a choice, the place with the largest value is taken.
        why: why our number is another one.
    """

    says: str
    paper: str
    measure: str
    before: str
    after: str
    why: str
    give: str = "saved"
    where: Mapping[str, str | int] | None = None


@dataclass(frozen=True)
class Figure:
    """A figure.

    Attributes:
        name: of the file that describes it.
        title: above the picture.
        paper: which one of the paper's it redraws, and what is missing.
        layers, features, bandwidth, delay, window, mtu: see Point.
        series: in the order of the legend.
        panels: from left to right, three in a row.
        scales: by name.
        claims: rows of the table.
        panel_height: inches.
    """

    name: str
    title: str
    paper: str
    series: tuple[Series, ...]
    panels: tuple[Panel, ...]
    scales: Mapping[str, Scale]
    claims: tuple[Claim, ...] = ()
    layers: int = 4
    features: int = 128
    bandwidth: float = 100_000.0
    delay: float = 2.0
    window: int = 512
    mtu: Mtu = ETHERNET_MTU
    panel_height: float = 3.1


class ExperimentError(SwitchGNNError):
    """A description that says nothing, or points that failed, in one sentence."""


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
            raise ExperimentError(f"No figure {name!r}; known: {', '.join(known)}.")
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
        raise ExperimentError(f"{where}: no {what} {name!r}; known: {', '.join(known)}.")


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
            raise ExperimentError(
                f"No graph {name!r} in these figures; known: {', '.join(sorted(known))}."
            )
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
