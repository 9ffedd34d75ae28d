# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a sequence diagram shows: the lines of a trace, taken apart."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from switchgnn.virtual.timing.scheduler import BEGIN
from switchgnn.virtual.trace import described

_MILLISECOND = 1e6
_HEADERS = 5
_REPEATED = 16
_WORKER, _CABLE = re.compile(r"w\d+"), re.compile(r"l(\d+)s(\d+)")


@dataclass(frozen=True)
class Step:
    """Something that has happened.

    Attributes:
        time: in milliseconds.
        source, target: who sends to whom; the same where nobody sends.
        what: in words.
        fate: what becomes of it; empty where nobody sends.
    """

    time: float
    source: str
    target: str
    what: str
    fate: str = ""


def steps_of(lines: Iterable[str], places: dict[str, str], leaves: int) -> list[Step]:
    """Take a trace apart.

    Args:
        lines: of the trace.
        places: the switch of each worker, by their names.
        leaves: how many there are.

    Returns:
        A step for each line.
    """
    steps = []
    for line in lines:
        time, where, rest = line.split(" ", 2)
        at = (int(time) - BEGIN) / _MILLISECOND
        words = rest.split(" ")
        link, _, way = where.rpartition(".")
        if way not in ("up", "down") or len(words) != _HEADERS - 2:
            steps.append(Step(at, where, where, rest))
            continue
        lower, upper = _ends(link, places, leaves)
        source, target = (lower, upper) if way == "up" else (upper, lower)
        steps.append(Step(at, source, target, described(words[2]), words[0]))
    return steps


def _ends(link: str, places: dict[str, str], leaves: int) -> tuple[str, str]:
    cable = _CABLE.fullmatch(link)
    if cable:
        return f"s{cable.group(1)}", f"s{leaves + int(cable.group(2))}"
    return link, places.get(link, "s0")


def last_steps(steps: list[Step], most: int) -> list[Step]:
    """Return the steps that lead to the first one of a check, and that; no more than some.

    Who waits asks the same again and again, and is shown once.
    """
    end = next((n for n, step in enumerate(steps, 1) if step.source == "check"), len(steps))
    kept: list[Step] = []
    for step in reversed(steps[:end]):
        if any(_same(step, later) for later in kept[-_REPEATED:]):
            continue
        kept.append(step)
        if len(kept) == most:
            break
    return kept[::-1]


def _same(one: Step, other: Step) -> bool:
    return replace(one, time=0.0) == replace(other, time=0.0)
