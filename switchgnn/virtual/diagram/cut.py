# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Long diagrams are cut to what matters."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from switchgnn.virtual.diagram.rows import Across, Arrow, Gap, Mark, Row

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

    Returns:
        What is left, with a gap in place of what is left out.
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
