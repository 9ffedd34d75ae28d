# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The table: the paper's number, ours, and why they differ."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from switchgnn.base.names import no_such
from switchgnn.base.options import parse_bytes
from switchgnn.lab.experiments.description import (
    FASTEST,
    LEAST,
    MOST,
    UNLIMITED,
    Claim,
    ExperimentError,
    Figure,
    PlottedSeries,
    ScaledGraph,
)
from switchgnn.lab.experiments.measures import EPOCH, Result, Spread, spread_of, value_of
from switchgnn.lab.experiments.point import SimulationPoint
from switchgnn.lab.simulator import BIN_SIZE, SPINE, LeafSpineOptions
from switchgnn.lab.simulator.request import G3, HOSTS_ALONE
from switchgnn.profiles import find_profile


@dataclass(frozen=True)
class Cell:
    """A point as a figure shows it.

    Attributes:
        graph: the paper's name for it.
        memory: of the switch at the paper's size, as the figure's axis has it.
        recirculation: passes per second, as the figure's axis has it; None: no limit.
        background: load, as the figure's axis has it.
        series: the label.
        point: what is simulated. Cells may share one.
    """

    graph: str
    workers: int
    memory: str
    recirculation: float | None
    background: float
    series: str
    point: SimulationPoint


def cells_of(figure: Figure, scale: str, seeds: int | None = None) -> list[Cell]:
    """Return all cells of a figure at a scale.

    Args:
        figure: the description.
        scale: the name of one that it has.
        seeds: how many, in place of the scale's.

    Returns:
        The cells, graph by graph.

    Raises:
        ExperimentError: it has no such scale.
    """
    if scale not in figure.scales:
        raise ExperimentError(f"{figure.name}: {no_such('scale', scale, figure.scales)}")
    chosen = figure.scales[scale]
    return [
        Cell(name, workers, memory, rate, load, series.label, point)
        for name, graph in chosen.graphs.items()
        for workers in chosen.workers
        for memory in chosen.memory
        for rate in chosen.recirculation_rates
        for load in chosen.background
        for series in figure.series
        for seed in range(seeds or chosen.seeds)
        for point in [
            replace(
                _point(
                    figure,
                    series,
                    graph,
                    workers=workers,
                    memory=memory,
                    rate=rate,
                    leaf_spine=chosen.leaf_spine,
                    seed=seed,
                ),
                background=float(load),
                buffer=None if chosen.buffer is None else parse_bytes("buffer", chosen.buffer),
            )
        ]
    ]


def _point(
    figure: Figure,
    series: PlottedSeries,
    graph: ScaledGraph,
    *,
    workers: int,
    memory: str,
    rate: float | None,
    leaf_spine: LeafSpineOptions | None,
    seed: int,
) -> SimulationPoint:
    # Hosts alone need no switch that adds: one point serves all its sizes and rates.
    alone = series.system in HOSTS_ALONE
    size = series.memory or memory
    unlimited = alone or size == UNLIMITED
    switch = find_profile(UNLIMITED if alone else series.switch)
    tables = switch.table_bytes
    return SimulationPoint(
        graph=graph.graph.replace("{seed}", str(seed)),
        workers=workers,
        system=series.system,
        memory=None if unlimited else round(parse_bytes("memory", size) * graph.shrink),
        order=series.order,
        seed=seed,
        layers=figure.layers,
        features=figure.features,
        bandwidth=figure.bandwidth,
        delay=figure.delay * graph.shrink,
        congestion_control=series.congestion_control,
        recirculation_rate=None if alone else switch.passes_per_second if rate is None else rate,
        window=figure.window,
        mtu=figure.mtu if alone else None,
        leaves=leaf_spine.leaves if leaf_spine else 0,
        spines=leaf_spine.spines if leaf_spine else 0,
        completion=leaf_spine.completion if leaf_spine else SPINE,
        slot_features=graph.feature if series.whole_features and not alone else None,
        bin_size=max(1, round(BIN_SIZE * graph.shrink)) if series.system == G3 else None,
        switch=switch.name,
        table_memory=None if tables is None else round(tables * graph.shrink),
    )


# What a cell can be chosen by, and be drawn over.
WHERE = ("graph", "workers", "memory", "recirculation", "background")


def select(cells: Sequence[Cell], where: Mapping[str, str | int] | None) -> list[Cell]:
    """Return those cells for which all of `where` holds; see Panel."""
    chosen = list(cells)
    for name, wanted in (where or {}).items():
        values = ascending(name, cells)
        if wanted in (LEAST, MOST) and values:
            value = values[0 if wanted == LEAST else -1]
        else:
            value = wanted
        chosen = [cell for cell in chosen if getattr(cell, name) == value]
    return chosen


def ascending(name: str, cells: Sequence[Cell]) -> list[Any]:
    """Return what the cells have there, each once; graphs in the order of the description."""
    values = list(dict.fromkeys(getattr(cell, name) for cell in cells))
    if name == "memory":
        return sorted(values, key=lambda it: parse_bytes("memory", it))
    if name in ("workers", "background"):
        return sorted(values)
    if name == "recirculation":
        # No limit is more than any.
        return sorted(values, key=lambda it: float("inf") if it is None else it)
    return values


HEADINGS = (
    "figure",
    "what",
    "paper",
    "ours",
    "computing / 2",
    "computing * 2",
    "at",
    "why they differ",
)
# How much faster or slower the model's GPU may be.
_HALF, _TWICE = 0.5, 2.0
_NOTHING = "–"  # noqa: RUF001


@dataclass(frozen=True)
class _Place:
    """Where two series are compared."""

    graph: str
    workers: int
    memory: str
    recirculation: float | None
    background: float

    def text(self, *, memory: bool) -> str:
        """Return the place for people, with or without the switch's memory."""
        size = f", {self.memory}" if memory else ""
        loop = "" if self.recirculation is None else f", {self.recirculation:g} passes/s"
        flows = f", background {self.background:g}" if self.background else ""
        return f"{self.graph}, {self.workers} workers{size}{loop}{flows}"


def rows_of(
    figure: Figure, cells: Sequence[Cell], results: Mapping[SimulationPoint, Result]
) -> list[list[str]]:
    """Return the rows of a figure, one per claim.

    Returns:
        The rows, as HEADINGS.
    """
    return [_row(figure, claim, cells, results) for claim in figure.claims]


def _row(
    figure: Figure, claim: Claim, cells: Sequence[Cell], results: Mapping[SimulationPoint, Result]
) -> list[str]:
    name = figure.name
    found = compare(claim, cells, results)
    if found is None:
        return [name, claim.says, claim.paper, "no result", *[_NOTHING] * 3, claim.why]
    place, ours = found
    others = [_NOTHING, _NOTHING]
    if claim.measure == EPOCH:
        others = [
            _text(claim, _at(claim, place, cells, results, compute)) for compute in (_HALF, _TWICE)
        ]
    # What both series have of their own is in their names.
    own = {series.label for series in figure.series if series.memory is not None}
    where = place.text(memory=not {claim.before, claim.after} <= own)
    return [name, claim.says, claim.paper, _text(claim, ours), *others, where, claim.why]


def compare(
    claim: Claim, cells: Sequence[Cell], results: Mapping[SimulationPoint, Result]
) -> tuple[_Place, Spread] | None:
    """Find the place where our number is largest."""
    places = dict.fromkeys(_place(cell) for cell in select(cells, claim.where))
    found = [(place, _at(claim, place, cells, results)) for place in places]
    known = [(place, spread) for place, spread in found if spread is not None]
    return max(known, key=lambda it: it[1].mean, default=None)


def _place(cell: Cell) -> _Place:
    return _Place(cell.graph, cell.workers, cell.memory, cell.recirculation, cell.background)


def _at(
    claim: Claim,
    place: _Place,
    cells: Sequence[Cell],
    results: Mapping[SimulationPoint, Result],
    compute: float = 1.0,
) -> Spread | None:
    """Our number at a place: of each seed that has both results."""
    here = {
        cell: results[cell.point]
        for cell in cells
        if _place(cell) == place and cell.point in results
    }
    numbers = {cell: value_of(claim.measure, result, compute) for cell, result in here.items()}
    ratios = ratios_of(numbers, claim.before, claim.after)
    if not ratios:
        return None
    return spread_of(ratios if claim.give == "times" else [1 - ratio for ratio in ratios])


def ratios_of(numbers: Mapping[Cell, float], before: str, after: str) -> list[float]:
    """Divide the numbers of a series by those of another one."""
    divisors: dict[int, float] = {}
    for cell, number in numbers.items():
        if cell.series == before or (before == FASTEST and cell.series != after):
            seed = cell.point.seed
            divisors[seed] = min(number, divisors.get(seed, number))
    return [
        number / divisors[cell.point.seed]
        for cell, number in numbers.items()
        if cell.series == after and divisors.get(cell.point.seed)
    ]


def _text(claim: Claim, ours: Spread | None) -> str:
    if ours is None:
        return _NOTHING
    form = "{:.2f}×" if claim.give == "times" else "{:.0%}"  # noqa: RUF001
    text = form.format(ours.mean)
    if ours.least == ours.most:
        return text
    return f"{text} ({form.format(ours.least)} to {form.format(ours.most)})"


def as_markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return the table in Markdown."""
    lines = [HEADINGS, ["---"] * len(HEADINGS), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |\n" for line in lines)


RESULT_COLUMNS = (
    "epoch_seconds",
    "communication_seconds",
    "compute_seconds",
    "overlapped_seconds",
    "exchange_seconds",
    "busiest_link_seconds",
    "bytes",
    "max_queue_bytes",
    "max_port_queue_bytes",
    "marked",
    "window_cuts",
    "lost",
    "recalled",
    "sent_again",
    "aggregation_bits_per_second",
    "total_bits_per_second",
    "max_slots",
    "sums",
    "overflowed",
    "passes",
    "blocks",
    "bins",
    "events",
    "wall_seconds",
    "peak_memory_bytes",
)

# Of a leaf-spine only.
_LEAF_SPINE_COLUMNS = ("host_link_bytes", "leaf_spine_bytes", "partial_sums")


def csv_text(cells: Sequence[Cell], results: Mapping[SimulationPoint, Result]) -> str:
    """Return a row for each cell that has a result."""
    text = io.StringIO()
    rows = [_csv_row(cell, results[cell.point]) for cell in cells if cell.point in results]
    if rows:
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue()


def _csv_row(cell: Cell, result: Result) -> dict[str, object]:
    point = asdict(cell.point)
    return {
        "figure_graph": cell.graph,
        "figure_memory": cell.memory,
        "series": cell.series,
        **{("memory_bytes" if name == "memory" else name): it for name, it in point.items()},
        **{name: result[name] for name in RESULT_COLUMNS},
        **{name: result[name] for name in _LEAF_SPINE_COLUMNS if name in result},
    }
