# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A sequence diagram as text."""

from collections.abc import Sequence

from switchgnn.virtual.diagram.steps import Step

_WIDTH = 9


def text_diagram(steps: Sequence[Step]) -> str:
    """Return the steps as lines: who sends to whom in columns, and in words what."""
    names = columns(steps)
    head = " " * 14 + "".join(name.center(_WIDTH) for name in names)
    return "\n".join([head, *(_line(step, names) for step in steps)])


def columns(steps: Sequence[Step]) -> list[str]:
    """Return who takes part: workers, switches, the others."""
    present = {name for step in steps for name in (step.source, step.target)}
    return sorted(present, key=lambda name: ("ws".find(name[0]) % 3, len(name), name))


def _line(step: Step, names: list[str]) -> str:
    row = ["|".center(_WIDTH) for _ in names]
    first, last = sorted((names.index(step.source), names.index(step.target)))
    if first == last:
        row[first] = "*".center(_WIDTH)
    else:
        forward = names.index(step.source) == first
        lost = step.fate in ("loss", "silence")
        body = list("".join(row))
        begin, end = first * _WIDTH + _WIDTH // 2 + 1, last * _WIDTH + _WIDTH // 2
        body[begin:end] = ("-" if not lost else ".") * (end - begin)
        head = end - 1 if forward else begin
        body[head] = "x" if lost else ">" if forward else "<"
        row = ["".join(body)]
    fate = "" if step.fate in ("", "passed") else f" [{step.fate}]"
    return f"{step.time:12.3f}  {''.join(row)}  {step.what}{fate}"
