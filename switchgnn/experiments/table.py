# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The table: the paper's number, ours, and why they differ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from switchgnn.experiments.cells import Cell, select
from switchgnn.experiments.description import FASTEST, Claim, Figure
from switchgnn.experiments.measures import EPOCH, Result, Spread, spread_of, value_of
from switchgnn.experiments.point import Point

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
    figure: Figure, cells: Sequence[Cell], results: Mapping[Point, Result]
) -> list[list[str]]:
    """Return the rows of a figure, one per claim.

    Args:
        figure: the description.
        cells: all of the figure.
        results: of the points that have one.

    Returns:
        The rows, as HEADINGS.
    """
    return [_row(figure, claim, cells, results) for claim in figure.claims]


def _row(
    figure: Figure, claim: Claim, cells: Sequence[Cell], results: Mapping[Point, Result]
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
    claim: Claim, cells: Sequence[Cell], results: Mapping[Point, Result]
) -> tuple[_Place, Spread] | None:
    """Find the place where our number is largest.

    Args:
        claim: what to compare.
        cells: all of the figure.
        results: of the points that have one.

    Returns:
        The place, and our number there; None without results.
    """
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
    results: Mapping[Point, Result],
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
    """Divide the numbers of a series by those of another one.

    Args:
        numbers: of cells at one place.
        before: the label of a series, or FASTEST.
        after: the label of another one.

    Returns:
        One ratio for each seed that has both.
    """
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
