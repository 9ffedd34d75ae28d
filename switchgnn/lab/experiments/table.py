"""Numbers from results: for pictures, for the CSV, and for the table of the paper's numbers."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from switchgnn.lab.experiments.figure import AXES, FASTEST, Cell, Claim, Figure, select
from switchgnn.lab.experiments.point import Point
from switchgnn.lab.simulator.setup import overlapped_seconds

Result = Mapping[str, Any]
Results = Mapping[Point, Result]
HEADINGS = ("figure", "what", "paper", "ours", "computing / 2", "computing * 2", "at")
# The model's GPU may be twice or half as fast.
_HALF, _TWICE = 0.5, 2.0
_NOTHING = "–"  # noqa: RUF001
RESULT_COLUMNS = (
    *("epoch_seconds", "communication_seconds", "compute_seconds", "overlapped_seconds"),
    *("exchange_seconds", "busiest_link_seconds", "bytes", "max_queue_bytes"),
    *("max_port_queue_bytes", "marked", "window_cuts", "lost", "recalled", "sent_again"),
    *("aggregation_bits_per_second", "total_bits_per_second", "max_slots", "sums", "overflowed"),
    *("passes", "blocks", "bins", "events", "wall_seconds", "peak_memory_bytes"),
)
# Those of a leaf-spine, of partitions, and of trainings, which are measured.
_OTHER_COLUMNS = (
    *("host_link_bytes", "leaf_spine_bytes", "partial_sums"),
    *("boundary_vertices", "copies", "largest_component", "first_fifth_share"),
    *("vertices_per_second", "test_accuracy", "backend", "machine", "date", "versions"),
)


@dataclass(frozen=True)
class Measure:
    """A number of a result."""

    axis: str  # its label
    unit: float  # the number is divided by it
    key: str  # in the result


MEASURES: Mapping[str, Measure] = {
    "epoch": Measure("epoch time (ms)", 1e-3, "epoch_seconds"),
    "communication": Measure("communication (ms)", 1e-3, "communication_seconds"),
    "traffic": Measure("traffic volume (MB)", 1e6, "bytes"),
    "crossings": Measure("traffic between leaves and spines (MB)", 1e6, "leaf_spine_bytes"),
    "queue": Measure("max. queue length (MB)", 1e6, "max_queue_bytes"),
    "training throughput": Measure("10,000 vertices/s", 1e4, "vertices_per_second"),
    "copies": Measure("copies of a boundary vertex", 1, "copies_per_vertex"),
    "connected": Measure("share of the boundary", 1, "connected_share"),
    "first fifth": Measure("share of neighbours", 1, "first_fifth_share"),
    "throughput": Measure("aggregation throughput (Gbit/s)", 1e9, "aggregation_bits_per_second"),
}
EPOCH = "epoch"


def value_of(measure: str, result: Result, compute: float = 1.0) -> float:
    """Return a number in the unit of its axis, as if computing took `compute` times as long."""
    one = MEASURES[measure]
    number = float(result[one.key])
    if measure == EPOCH:
        number += _longer_epoch(result, compute)
    return number / one.unit


def _longer_epoch(result: Result, compute: float) -> float:
    """Return how much slower computing lengthens an epoch; bins may hide some of it."""
    once, communication = result["compute_seconds"], result["communication_seconds"]
    hidden = [
        overlapped_seconds(each, communication, result["bins"]) for each in (once, compute * once)
    ]
    return float((compute - 1) * once + hidden[0] - hidden[1])


@dataclass(frozen=True)
class Spread:
    """A number over all seeds."""

    mean: float
    least: float
    most: float


def spread_of(values: Sequence[float]) -> Spread:
    """Return mean, least and most of at least one value."""
    return Spread(sum(values) / len(values), min(values), max(values))


def rows_of(figure: Figure, cells: Sequence[Cell], results: Results) -> list[list[str]]:
    """Return the rows of a figure as HEADINGS, one per claim, of the points that have a result."""
    return [_row(figure, claim, cells, results) for claim in figure.claims]


def _row(figure: Figure, claim: Claim, cells: Sequence[Cell], results: Results) -> list[str]:
    begin = [figure.name, str(claim), claim.paper]
    found = _largest(claim, cells, results)
    if found is None:
        return [*begin, "no result", *[_NOTHING] * 3]
    here, spread = found
    others = [
        _text(claim, _ratio(claim, here, results, compute)) if claim.measure == EPOCH else _NOTHING
        for compute in (_HALF, _TWICE)
    ]
    # Memory that both series have of their own is in their labels.
    own = {series.label for series in figure.series if series.memory is not None}
    cell = here[0]
    size = "" if {claim.series, claim.other} - {""} <= own else f", {cell.memory}"
    loop = "" if cell.recirculation is None else f", {cell.recirculation:g} passes/s"
    flows = f", background {cell.background:g}" if cell.background else ""
    layers = f", {cell.layers} layers" if len({it.layers for it in cells}) > 1 else ""
    where = f"{cell.graph}, {cell.workers} workers{layers}{size}{loop}{flows}"
    return [*begin, _text(claim, spread), *others, where]


def _largest(
    claim: Claim, cells: Sequence[Cell], results: Results
) -> tuple[list[Cell], Spread] | None:
    points: dict[object, list[Cell]] = {}
    for cell in select(cells, claim.where):
        point = tuple(getattr(cell, name) for name in AXES)
        points.setdefault(point, []).append(cell)
    found = [(here, _ratio(claim, here, results)) for here in points.values()]
    known = [(here, spread) for here, spread in found if spread is not None]
    return max(known, key=lambda it: it[1].mean, default=None)


def _ratio(
    claim: Claim, here: Sequence[Cell], results: Results, compute: float = 1.0
) -> Spread | None:
    numbers = {
        cell: value_of(claim.measure, results[cell.point], compute)
        for cell in here
        if cell.point in results
    }
    alone = [number for cell, number in numbers.items() if cell.series == claim.series]
    ratios = ratios_of(numbers, claim.series, claim.other) if claim.other else alone
    if not ratios:
        return None
    return spread_of(ratios if claim.times or not claim.other else [1 - it for it in ratios])


def ratios_of(numbers: Mapping[Cell, float], series: str, other: str) -> list[float]:
    """Divide the numbers of a series by those of another one, or of FASTEST."""
    divisors: dict[int, float] = {}
    for cell, number in numbers.items():
        if cell.series == other or (other == FASTEST and cell.series != series):
            seed = cell.point.seed
            divisors[seed] = min(number, divisors.get(seed, number))
    return [
        number / divisors[cell.point.seed]
        for cell, number in numbers.items()
        if cell.series == series and divisors.get(cell.point.seed)
    ]


def _text(claim: Claim, spread: Spread | None) -> str:
    if spread is None:
        return _NOTHING
    form = "{:.2f}×" if claim.times else "{:.0%}"  # noqa: RUF001
    text = form.format(spread.mean)
    if spread.least == spread.most:
        return text
    return f"{text} ({form.format(spread.least)} to {form.format(spread.most)})"


def as_markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return the table in Markdown."""
    lines = [HEADINGS, ["---"] * len(HEADINGS), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |\n" for line in lines)


def csv_text(cells: Sequence[Cell], results: Results) -> str:
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
        **{name: result[name] for name in (*RESULT_COLUMNS, *_OTHER_COLUMNS) if name in result},
    }
