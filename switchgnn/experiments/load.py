# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the description files, and says in a sentence what is wrong with one."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from switchgnn.experiments.cells import WHERE
from switchgnn.experiments.description import Figure, Scale
from switchgnn.experiments.draw import KINDS
from switchgnn.experiments.errors import ExperimentError
from switchgnn.experiments.measures import MEASURES, OVER_TIME
from switchgnn.simulator import LeafSpineOptions, SimulatorError
from switchgnn.simulator.request import SYSTEMS

FOLDER = Path(__file__).parent / "figures"
# A sentence for people who read the file; JSON has no comments.
_COMMENT = "about"
_GIVE = ("saved", "times")
_TIME = "time"

_Record = TypeVar("_Record")


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
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ExperimentError(f"Cannot read the description {path}: {error}.") from error
    figure = _read(Figure, told, path.name, {"name": path.stem})
    _check(figure, path.name)
    return figure


def _read(
    kind: type[_Record], told: object, where: str, given: Mapping[str, object] | None = None
) -> _Record:
    """A record of a JSON object; every key must be known, and none may be missing."""
    if not isinstance(told, dict):
        raise ExperimentError(f"{where}: an object with keys is expected, but not {told!r}.")
    values = {**(given or {}), **{key: it for key, it in told.items() if key != _COMMENT}}
    parts = fields(kind)  # type: ignore[arg-type]  # every record is a dataclass
    known = {field.name for field in parts}
    for key in values:
        if key not in known:
            raise ExperimentError(
                f"{where}: the key {key!r} is not known; known: {', '.join(sorted(known))}."
            )
    for field in parts:
        if field.name not in values and field.default is MISSING:
            raise ExperimentError(f"{where}: the key {field.name!r} is missing.")
    types = get_type_hints(kind)
    ready = {key: _value(it, types[key], f"{where}: {key}") for key, it in values.items()}
    return kind(**ready)


def _value(told: object, wanted: object, where: str) -> Any:  # noqa: ANN401  a file may say anything
    """What a record has for a value of JSON; `wanted` is the type of its field.

    Raises:
        ExperimentError: the value is of another type.
    """
    origin, inside = get_origin(wanted), get_args(wanted)
    if is_dataclass(wanted) and isinstance(wanted, type):
        return _read(wanted, told, where)
    if origin is tuple and isinstance(told, list):
        return tuple(_value(it, inside[0], f"{where} {n}") for n, it in enumerate(told, 1))
    if origin is Mapping and isinstance(told, dict):
        return {name: _value(it, inside[1], f"{where} {name}") for name, it in told.items()}
    if origin is UnionType:
        # Of these one at most is no plain type.
        rest = [it for it in inside if get_origin(it) is not None or is_dataclass(it)]
        fits = [it for it in inside if it not in rest and _is_plain(told, it)]
        return told if fits or not rest else _value(told, rest[0], where)
    if origin is None and _is_plain(told, wanted):
        return told
    raise ExperimentError(f"{where}: {told!r} is not what is expected here, {_word(wanted)}.")


def _is_plain(told: object, wanted: object) -> bool:
    """Whether a value is of a plain type; to JSON 1 is a float, but to nobody true is 1."""
    if isinstance(told, bool) or not isinstance(wanted, type):
        return wanted is bool
    return isinstance(told, (int, float) if wanted is float else wanted)


def _word(wanted: object) -> str:
    origin = get_origin(wanted)
    if origin is tuple:
        return "a list"
    if origin is Mapping:
        return "an object"
    return wanted.__name__ if isinstance(wanted, type) else str(wanted)


def _check(figure: Figure, where: str) -> None:
    """Names in it lead somewhere."""
    labels = [series.label for series in figure.series]
    _known(where, "scale", "small", figure.scales)
    for name, scale in figure.scales.items():
        if scale.leaf_spine is not None:
            _check_leaves(scale.leaf_spine, min(scale.workers), f"{where}: scales {name}")
    for series in figure.series:
        _known(f"{where}: {series.label}", "system", series.system, SYSTEMS)
    for panel in figure.panels:
        at = f"{where}: {panel.title}"
        _known(at, "way to draw", panel.draw, KINDS)
        _known(at, "measure", panel.y, OVER_TIME if panel.draw == _TIME else MEASURES)
        if panel.draw != _TIME:
            _known(at, "axis", panel.x, WHERE)
        for label in panel.series:
            _known(at, "series", label, labels)
        for key in panel.where or {}:
            _known(at, "choice", key, WHERE)
    for claim in figure.claims:
        at = f"{where}: {claim.says}"
        _known(at, "measure", claim.measure, MEASURES)
        _known(at, "number to give", claim.give, _GIVE)
        for label in (claim.before, claim.after):
            _known(at, "series", label, labels)
        for key in claim.where or {}:
            _known(at, "choice", key, WHERE)


def _check_leaves(leaf_spine: LeafSpineOptions, workers: int, where: str) -> None:
    try:
        leaf_spine.words(workers)
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
