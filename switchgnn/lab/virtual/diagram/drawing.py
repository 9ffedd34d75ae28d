# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""All that a diagram shows, whatever it is drawn as."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from switchgnn.lab.virtual.diagram.rows import (
    BACK,
    CONTROLLER,
    GONE,
    NEW_WORKERS,
    Across,
    Arrow,
    Gap,
    Mark,
    Row,
    ends_of_lines,
    parties_of,
    read_trace,
    rows_of,
)
from switchgnn.lab.virtual.scenario.scenario import Scenario

_EXCHANGE = re.compile(r"session (\d+), round (\d+)")
# Which exchange is under way is what most of the last frames say: some are late.
_LAST = 12
# Of a long exchange the beginning and the end are kept, and this much of what went wrong before.
_BEGINNING, _END, _FAULTY = 30, 40, 30
# Fewer rows than that are not worth a gap.
_LEAST_GAP = 4


def cut(rows: Sequence[Row], name: str) -> list[Row]:
    """Return the last exchange before an invariant did not hold, and what went wrong before.

    Args:
        rows: all of them.
        name: the invariant.
    """
    end = next(
        (n for n, row in enumerate(rows, 1) if isinstance(row, Across) and row.broken == name),
        len(rows),
    )
    shown = list(rows[:end])
    begin = _begin_of_exchange(shown)
    kept = set(range(begin, min(begin + _BEGINNING, end)))
    kept |= set(range(max(begin, end - _END), end))
    wrong = [n for n, row in enumerate(shown) if _went_wrong(row) and n not in kept]
    kept |= set(wrong[-_FAULTY:])
    # Who is there, and who is not, one must know throughout.
    kept |= {n for n, row in enumerate(shown) if isinstance(row, Mark) and row.changes}
    return _with_gaps(shown, kept)


def _begin_of_exchange(rows: Sequence[Row]) -> int:
    exchange = _exchange(rows)
    for place, row in enumerate(rows):
        if isinstance(row, Arrow) and row.label.exchange == exchange:
            return place
    return 0


def _exchange(rows: Sequence[Row]) -> tuple[int, int]:
    last = rows[-1] if rows else None
    said = _EXCHANGE.search(last.words) if isinstance(last, Across) else None
    if said:
        return int(said.group(1)) & 0xFF, int(said.group(2))
    sound = [row.label.exchange for row in rows if isinstance(row, Arrow) and not row.faulty]
    return Counter(reversed(sound[-_LAST:])).most_common(1)[0][0] if sound else (0, 0)


def _went_wrong(row: Row) -> bool:
    return isinstance(row, Across) or (isinstance(row, Arrow) and row.faulty)


def _with_gaps(rows: Sequence[Row], kept: set[int]) -> list[Row]:
    left: list[Row] = []
    for is_kept, places in groupby(range(len(rows)), kept.__contains__):
        some = [rows[place] for place in places]
        left += some if is_kept or len(some) < _LEAST_GAP else [_gap(some)]
    return left


def _gap(out: Sequence[Row]) -> Gap:
    frames = sum(row.frames for row in out if isinstance(row, Arrow))
    others = sum(not isinstance(row, Arrow) for row in out)
    said = [f"{frames:,} frame{'s' * (frames != 1)}"] if frames else []
    said += [f"{others:,} other line{'s' * (others != 1)}"] if others else []
    return Gap(out[0].time, f"{' and '.join(said)} left out")


def gone_at(rows: Iterable[Row]) -> Iterator[tuple[Row, frozenset[str]]]:
    """Yield each row with those who are not there behind it."""
    gone: set[str] = set()
    for row in rows:
        if isinstance(row, Mark):
            if row.what.startswith(GONE):
                gone.add(row.party)
            elif row.what.startswith(BACK):
                gone.discard(row.party)
            elif row.what.startswith(NEW_WORKERS):
                gone = {name for name in gone if not name.startswith("w")}
        yield row, frozenset(gone)


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
    """Return the diagram of a run."""
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
