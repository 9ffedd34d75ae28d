# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""All that a diagram shows, whatever it is drawn as."""

from collections.abc import Iterable
from dataclasses import dataclass

from switchgnn.virtual.diagram.cut import cut
from switchgnn.virtual.diagram.happenings import read_trace
from switchgnn.virtual.diagram.lifelines import gone_at
from switchgnn.virtual.diagram.parties import CONTROLLER, ends_of_lines, parties_of
from switchgnn.virtual.diagram.rows import Arrow, Mark, Row, rows_of
from switchgnn.virtual.scenario.scenario import Scenario

LEGEND = (
    "FEATURE 1.2.3.0: of session 1, round 2, block 3, fragment 0; (n): contributions. "
    "Times are milliseconds of virtual time, when frames come."
)


@dataclass(frozen=True)
class Drawing:
    """A diagram.

    Attributes:
        title, subtitle: what it shows.
        parties: who takes part, from left to right.
        ends: who sends and who receives on each line.
        rows: what happens, with those who are not there behind it.
        begin: the time from which times are told, in nanoseconds.
    """

    title: str
    subtitle: str
    parties: tuple[str, ...]
    ends: dict[str, tuple[str, str]]
    rows: tuple[tuple[Row, frozenset[str]], ...]
    begin: int

    def milliseconds(self, row: Row) -> str:
        """Return the time of a row as it is shown."""
        return f"{(row.time - self.begin) / 1e6:,.3f}"


def draw(scenario: Scenario, trace: Iterable[str], name: str) -> Drawing:
    """Return the diagram of a run.

    Args:
        scenario: what has run.
        trace: the lines of its trace.
        name: the invariant that did not hold.

    Returns:
        The diagram, cut to what leads to that.
    """
    happenings = read_trace(trace)
    rows = cut(rows_of(happenings), name)
    parties = parties_of(scenario)
    if not any(isinstance(row, Mark) and row.party == CONTROLLER for row in rows):
        parties = parties[:-1]
    return Drawing(
        title=f"What must hold and did not: {name}",
        subtitle=_subtitle(scenario),
        parties=parties,
        ends=ends_of_lines(scenario),
        rows=tuple(gone_at(rows)),
        begin=happenings[0].time if happenings else 0,
    )


def _subtitle(scenario: Scenario) -> str:
    where = "a star"
    if scenario.leaves:
        where = f"leaves: {scenario.leaves}, spines: {scenario.spines}"
    return f"Seed {scenario.seed}: {scenario.workers} workers, {where}, graph {scenario.graph}."


def arrow_ends(drawing: Drawing, arrow: Arrow) -> tuple[int, int]:
    """Return the places of who sends and of who receives."""
    source, target = drawing.ends[arrow.line]
    return drawing.parties.index(source), drawing.parties.index(target)
