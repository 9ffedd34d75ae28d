# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A sequence diagram as SVG."""

from collections.abc import Sequence
from xml.sax.saxutils import escape

from switchgnn.virtual.diagram.steps import Step
from switchgnn.virtual.diagram.text import columns

_LEFT, _GAP, _ROW, _TOP = 110, 130, 22, 40
_WORDS = 620


def svg_diagram(steps: Sequence[Step]) -> str:
    """Return the steps as a picture: a lifeline for everybody, and an arrow for each frame."""
    names = columns(steps)
    place = {name: _LEFT + _GAP * number for number, name in enumerate(names)}
    width = _LEFT + _GAP * len(names) + _WORDS
    height = _TOP + _ROW * (len(steps) + 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="monospace" font-size="11">',
        '<defs><marker id="end" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for name, x in place.items():
        parts.append(f'<text x="{x}" y="20" text-anchor="middle">{escape(name)}</text>')
        parts.append(
            f'<line x1="{x}" y1="28" x2="{x}" y2="{height}" stroke="#bbb" stroke-dasharray="2,3"/>'
        )
    words_at = _LEFT + _GAP * (len(names) - 1) + 20
    for row, step in enumerate(steps):
        y = _TOP + _ROW * row
        parts.append(f'<text x="4" y="{y + 4}">{step.time:.3f}</text>')
        parts.append(_arrow(step, place, y))
        fate = "" if step.fate in ("", "passed") else f" [{step.fate}]"
        parts.append(f'<text x="{words_at}" y="{y + 4}">{escape(step.what + fate)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _arrow(step: Step, place: dict[str, int], y: int) -> str:
    x1, x2 = place[step.source], place[step.target]
    if x1 == x2:
        return f'<circle cx="{x1}" cy="{y}" r="4" fill="#c33"/>'
    if step.fate in ("loss", "silence"):
        return (
            f'<line x1="{x1}" y1="{y}" x2="{(x1 + 2 * x2) / 3:.0f}" y2="{y}" stroke="#c33" '
            'stroke-dasharray="4,3"/>'
        )
    colour = "black" if step.fate in ("", "passed") else "#c70"
    return f'<line x1="{x1}" y1="{y}" x2="{x2}" y2="{y}" stroke="{colour}" marker-end="url(#end)"/>'
