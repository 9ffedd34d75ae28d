# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Sequence diagrams as SVG and as text."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from xml.sax.saxutils import escape

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
from switchgnn.lab.virtual.scenario import Scenario

_EXCHANGE = re.compile(r"session (\d+), round (\d+)")
# The current exchange is that of most of the last frames, as some are late.
_LAST = 12
# Rows of a long exchange that are kept: from its beginning, its end, and faults before.
_BEGINNING, _END, _FAULTY = 30, 40, 30
# The fewest rows that are replaced by a gap.
_LEAST_GAP = 4


def cut(rows: Sequence[Row], name: str) -> list[Row]:
    """Return the last exchange before the invariant `name` was violated, and faults before."""
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
    # Which parties exist must be known throughout.
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
    """Yield each row with the parties that are gone after it."""
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
        parties: from left to right.
        ends: sender and receiver of each line.
        rows: each with the parties that are gone after it.
        begin: the origin of times, in nanoseconds.
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
    """Return the places of sender and receiver."""
    source, target = drawing.ends[arrow.line]
    return drawing.parties.index(source), drawing.parties.index(target)


_MARGIN, _TIME, _COLUMN, _ROW, _TOP, _TAIL = 16, 90, 92, 22, 112, 20
# The most pixels of a letter.
_LETTER = 7.6
_NARROWEST = 640

_STYLE = """
text { font: 13px ui-sans-serif, system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
.title { font-size: 16px; font-weight: 600 }
.small, .time { font-size: 12px; fill: #59636e }
.time { text-anchor: end; font-variant-numeric: tabular-nums }
.name { text-anchor: middle; font-weight: 600 }
.paper { fill: #ffffff }
.box { fill: #f6f8fa; stroke: #818b98 }
.life { stroke: #b7bfc8; stroke-width: 1.5 }
.gap { stroke-dasharray: 2 4 }
.arrow { fill: none; stroke-width: 1.8 }
.data { stroke: #0969da } .data.head { fill: #0969da }
.barrier { stroke: #6e7781 } .barrier.head { fill: #6e7781 }
.repair { stroke: #1a7f37 } .repair.head { fill: #1a7f37 }
.faulty { stroke: #cf222e; stroke-dasharray: 5 3 }
.faulty.head { fill: #cf222e; stroke-dasharray: none }
.lost { stroke: #cf222e; stroke-width: 2.2 }
.later { fill: none; stroke: #cf222e; stroke-width: 2 }
.wrong { fill: #cf222e } .strong { font-weight: 600 }
.incident { fill: #fff1c2 } .broken { fill: #ffd8d6 }
.mark { fill: #1f2328 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .small, .time { fill: #9198a1 }
.paper { fill: #0d1117 } .box { fill: #161b22; stroke: #6e7681 } .life { stroke: #4b535d }
.data { stroke: #58a6ff } .data.head { fill: #58a6ff }
.barrier { stroke: #9198a1 } .barrier.head { fill: #9198a1 }
.repair { stroke: #3fb950 } .repair.head { fill: #3fb950 }
.faulty, .lost, .later { stroke: #ff7b72 } .faulty.head, .wrong { fill: #ff7b72 }
.incident { fill: #4a3a00 } .broken { fill: #67191b } .mark { fill: #e6edf3 }
}
"""


def svg_of(drawing: Drawing) -> str:
    """Return a diagram as SVG, for light and dark pages."""
    words_at = _MARGIN + _TIME + _COLUMN * len(drawing.parties)
    said = [row.words for row, _ in drawing.rows]
    width = max(_NARROWEST, int(words_at + _LETTER * max(map(len, said), default=0)) + _MARGIN)
    height = _TOP + _ROW * len(drawing.rows) + _TAIL
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img">',
        f"<title>{escape(drawing.title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{width}" height="{height}"/>',
        *_head(drawing),
    ]
    for number, (row, gone) in enumerate(drawing.rows):
        y = _TOP + _ROW * number
        parts += _lives(drawing, row, gone, y)
        parts += _row(drawing, row, y)
        kind = "wrong" if isinstance(row, Arrow) and row.faulty else ""
        kind = "small" if isinstance(row, Gap) else kind
        kind = "strong" if isinstance(row, Across) else kind
        parts.append(_text(words_at, y + _ROW / 2 + 4, row.words, kind))
    return "\n".join([*parts, "</svg>", ""])


def _head(drawing: Drawing) -> list[str]:
    parts = [
        _text(_MARGIN, 26, drawing.title, "title"),
        _text(_MARGIN, 46, drawing.subtitle, "small"),
        _text(_MARGIN, 63, LEGEND, "small"),
        _text(_MARGIN + _TIME - 26, _TOP - 13, "ms", "time"),
    ]
    for number, party in enumerate(drawing.parties):
        x = _at(number)
        parts.append(
            f'<rect class="box" x="{x - 43}" y="{_TOP - 29}" width="86" height="24" rx="5"/>'
        )
        parts.append(_text(x, _TOP - 12, party, "name"))
    return parts


def _lives(drawing: Drawing, row: Row, gone: frozenset[str], y: float) -> list[str]:
    kind = "life gap" if isinstance(row, Gap) else "life"
    return [
        _line(_at(number), y, _at(number), y + _ROW, kind)
        for number, party in enumerate(drawing.parties)
        if party not in gone
    ]


def _row(drawing: Drawing, row: Row, y: float) -> list[str]:
    middle = y + _ROW / 2
    if isinstance(row, Gap):
        return []
    parts = [_text(_MARGIN + _TIME - 26, middle + 4, drawing.milliseconds(row), "time")]
    if isinstance(row, Across):
        kind = "broken" if row.broken else "incident"
        # In the background.
        band = f'<rect class="{kind}" x="0" y="{y + 1}" width="100%" height="{_ROW - 2}"/>'
        return [band, *parts]
    if isinstance(row, Arrow):
        return parts + _arrow(row, *arrow_ends(drawing, row), middle)
    return parts + _mark(drawing, row, middle)


def _mark(drawing: Drawing, mark: Mark, y: float) -> list[str]:
    if mark.party not in drawing.parties:
        return []
    return [f'<circle class="mark" cx="{_at(drawing.parties.index(mark.party))}" cy="{y}" r="4"/>']


def _arrow(arrow: Arrow, source: int, target: int, y: float) -> list[str]:
    begin, end = _at(source), _at(target)
    step = 1 if end > begin else -1
    kind = "faulty" if arrow.faulty else arrow.label.group
    if not arrow.comes:
        end = begin + step * _COLUMN // 2
        stroke = _line(begin, y, end - 6 * step, y, f"arrow {kind}")
        if arrow.later:
            return [stroke, f'<circle class="later" cx="{end}" cy="{y}" r="5"/>']
        return [
            stroke,
            _line(end - 5, y - 5, end + 5, y + 5, "lost"),
            _line(end - 5, y + 5, end + 5, y - 5, "lost"),
        ]
    return [
        _line(begin, y, end - 8 * step, y, f"arrow {kind}"),
        f'<path class="{kind} head" d="M{end} {y}l{-9 * step} -4.5v9z"/>',
    ]


def _at(place: int) -> int:
    return _MARGIN + _TIME + _COLUMN * place + _COLUMN // 2


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'


def _text(x: float, y: float, words: str, kind: str) -> str:
    name = f' class="{kind}"' if kind else ""
    return f'<text{name} x="{x}" y="{y}">{escape(words)}</text>'


_TEXT_COLUMN = 11
_TEXT_TIME = 12
_LIFE, _HEAD_RIGHT, _HEAD_LEFT, _LOST, _LATER, _MARK = "|><xo*"


def text_of(drawing: Drawing) -> str:
    """Return a diagram as text."""
    names = "".join(party.center(_TEXT_COLUMN) for party in drawing.parties)
    lines = [drawing.title, drawing.subtitle, LEGEND, "", f"{'ms':>{_TEXT_TIME}} {names}".rstrip()]
    for row, gone in drawing.rows:
        time = "..." if isinstance(row, Gap) else drawing.milliseconds(row)
        columns = _columns(drawing, row, gone)
        lines.append(f"{time:>{_TEXT_TIME}} {columns}  {row.words}".rstrip())
    return "\n".join(lines) + "\n"


def _columns(drawing: Drawing, row: Row, gone: frozenset[str]) -> str:
    width = _TEXT_COLUMN * len(drawing.parties)
    if isinstance(row, Across):
        return ("#" if row.broken else "=") * width
    lives = [" " if party in gone else _LIFE for party in drawing.parties]
    canvas = list("".join(life.center(_TEXT_COLUMN) for life in lives))
    if isinstance(row, Gap):
        return "".join(":" if letter == _LIFE else letter for letter in canvas)
    if isinstance(row, Mark) and row.party in drawing.parties:
        canvas[_text_at(drawing.parties.index(row.party))] = _MARK
    elif isinstance(row, Arrow):
        _draw_arrow(canvas, row, *arrow_ends(drawing, row))
    return "".join(canvas)


def _draw_arrow(canvas: list[str], arrow: Arrow, source: int, target: int) -> None:
    begin, end = _text_at(source), _text_at(target)
    step = 1 if end > begin else -1
    stroke = "~" if arrow.faulty else "-"
    tip = end - step if arrow.comes else (begin + end) // 2
    for place in range(begin + step, tip, step):
        canvas[place] = stroke
    head = _HEAD_RIGHT if step > 0 else _HEAD_LEFT
    canvas[tip] = head if arrow.comes else _LATER if arrow.later else _LOST


def _text_at(place: int) -> int:
    return place * _TEXT_COLUMN + _TEXT_COLUMN // 2
