# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Which exchange comes next, and at which scale: so its features need not wait for its opening.

A training repeats itself: what followed the last time that the same exchanges went before will
most likely follow again, with features about as large. All workers have seen the same exchanges
and the same maxima, so all foresee the same.
"""

from collections import deque
from dataclasses import dataclass

import numpy as np

from switchgnn.host.errors import FeatureError
from switchgnn.host.innetwork.fixed_point import FixedPoint, magnitude_from_bits
from switchgnn.planner.direction import Direction

# How many times as large as in the last two rounds of the same tensor features may be: with dropout
# the largest one doubles now and then. It costs two of the 31 bits.
HEADROOM = 4.0
_REMEMBERED = 256
# Exchanges that are compared, at most.
_CONTEXT = 64


@dataclass(frozen=True)
class ExchangeKind:
    """What all workers must agree on before features are sent.

    Attributes:
        direction: in-neighbours or out-neighbours.
        width: numbers of a feature.
    """

    direction: Direction
    width: int


@dataclass(frozen=True)
class Foreseen:
    """An exchange that will most likely come next.

    Attributes:
        kind: of which kind.
        fixed_point: the scale that its features are sent with; they may be as large as its
            ``magnitude``.
    """

    kind: ExchangeKind
    fixed_point: FixedPoint


class Foresight:
    """Remembers exchanges.

    Args:
        max_fan_in: of the plan.
    """

    def __init__(self, max_fan_in: int) -> None:
        self._max_fan_in = max_fan_in
        self._past: deque[tuple[ExchangeKind, int]] = deque(maxlen=_REMEMBERED)

    def note(self, kind: ExchangeKind, largest: int) -> None:
        """Remember an exchange that all workers take part in.

        Args:
            kind: of which kind.
            largest: float32 bits of the largest magnitude over all workers.
        """
        self._past.append((kind, largest))

    def next(self) -> Foreseen | None:
        """Return what comes next, or None where nothing like it has been seen."""
        past = list(self._past)
        last = len(past) - 1
        before = _where_alike(past)
        if before is None:
            return None
        kind = past[before + 1][0]
        earlier = before + 1 - (last - before)
        alike = [
            past[place][1]
            for place in (before + 1, earlier)
            if place >= 0 and past[place][0] == kind
        ]
        fixed_point = self._fixed_point(max(alike))
        return None if fixed_point is None else Foreseen(kind, fixed_point)

    def _fixed_point(self, largest: int) -> FixedPoint | None:
        """Choose a scale with headroom; zeros say nothing of the next features, nor do extremes."""
        capacity = HEADROOM * magnitude_from_bits(largest)
        if not 0 < capacity <= float(np.finfo(np.float32).max):
            return None
        try:
            return FixedPoint.for_exchange(self._max_fan_in, capacity)
        except FeatureError:
            return None


def _where_alike(past: list[tuple[ExchangeKind, int]]) -> int | None:
    """Return the last place up to which the most exchanges are as the last ones; None for none."""
    best, most = None, 0
    for end in range(len(past) - 2, -1, -1):
        common = _common(past, end)
        if common > most:
            best, most = end, common
        # Where all exchanges are alike, looking at all places would take longer than an exchange.
        if most == _CONTEXT:
            break
    return best


def _common(past: list[tuple[ExchangeKind, int]], end: int) -> int:
    """Return how many exchanges up to ``end`` are of the kinds of as many last ones."""
    last = len(past) - 1
    most = min(end + 1, _CONTEXT)
    for count in range(most):
        if past[end - count][0] != past[last - count][0]:
            return count
    return most
