# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A diagram as text of fixed width."""

from switchgnn.virtual.diagram.drawing import LEGEND, Drawing, arrow_ends
from switchgnn.virtual.diagram.rows import Across, Arrow, Gap, Mark, Row

_COLUMN = 11
_TIME = 12
_LIFE, _HEAD_RIGHT, _HEAD_LEFT, _LOST, _LATER, _MARK = "|><xo*"


def text_of(drawing: Drawing) -> str:
    """Return a diagram: times, a column for each party, and what each arrow is."""
    names = "".join(party.center(_COLUMN) for party in drawing.parties)
    lines = [drawing.title, drawing.subtitle, LEGEND, "", f"{'ms':>{_TIME}} {names}".rstrip()]
    for row, gone in drawing.rows:
        time = "..." if isinstance(row, Gap) else drawing.milliseconds(row)
        columns = _columns(drawing, row, gone)
        lines.append(f"{time:>{_TIME}} {columns}  {row.words}".rstrip())
    return "\n".join(lines) + "\n"


def _columns(drawing: Drawing, row: Row, gone: frozenset[str]) -> str:
    width = _COLUMN * len(drawing.parties)
    if isinstance(row, Across):
        return ("#" if row.broken else "=") * width
    lives = [" " if party in gone else _LIFE for party in drawing.parties]
    canvas = list("".join(life.center(_COLUMN) for life in lives))
    if isinstance(row, Gap):
        return "".join(":" if letter == _LIFE else letter for letter in canvas)
    if isinstance(row, Mark) and row.party in drawing.parties:
        canvas[_at(drawing.parties.index(row.party))] = _MARK
    elif isinstance(row, Arrow):
        _draw_arrow(canvas, row, *arrow_ends(drawing, row))
    return "".join(canvas)


def _draw_arrow(canvas: list[str], arrow: Arrow, source: int, target: int) -> None:
    begin, end = _at(source), _at(target)
    step = 1 if end > begin else -1
    stroke = "~" if arrow.faulty else "-"
    tip = end - step if arrow.comes else (begin + end) // 2
    for place in range(begin + step, tip, step):
        canvas[place] = stroke
    head = _HEAD_RIGHT if step > 0 else _HEAD_LEFT
    canvas[tip] = head if arrow.comes else _LATER if arrow.later else _LOST


def _at(place: int) -> int:
    return place * _COLUMN + _COLUMN // 2
