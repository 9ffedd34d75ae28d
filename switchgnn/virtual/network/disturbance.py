# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What becomes of frames on a line, drawn from its rates."""

import math
from itertools import accumulate
from random import Random

from switchgnn.virtual.scenario.scenario import Fault, FaultKind, Rates
from switchgnn.virtual.timing.scheduler import SECOND

_MOST_BITS = 3
# Nanoseconds by which a frame may be late: from a window to a patience and more, in magnitudes.
_REORDERED = (10_000, SECOND)
_LATE = (1_000_000, 200 * SECOND)


class Disturbance:
    """Chooses the frames that something happens to, and what.

    Args:
        line: the line and the direction.
        rates: probabilities.
        random: where it is drawn from.

    Attributes:
        next: how many frames pass before the next one that something happens to.
    """

    def __init__(self, line: str, rates: Rates, random: Random) -> None:
        self._line = line
        self._random = random
        self._kinds = list(FaultKind)
        # Of each kind, with those before it.
        self._chances = list(accumulate(getattr(rates, kind.value) for kind in FaultKind))
        self._total = sum(getattr(rates, kind.value) for kind in FaultKind)
        self._frames = 0
        self.next = self._gap()

    def _gap(self) -> int:
        if self._total <= 0.0:
            return 1 << 62
        if self._total >= 1.0:
            return 0
        return int(math.log(1.0 - self._random.random()) / math.log(1.0 - self._total))

    def passed(self, frames: int) -> None:
        """Take note of frames, fewer than ``next``, that nothing happens to."""
        self._frames += frames
        self.next -= frames

    def fault(self, frame: bytes) -> Fault:
        """Return what happens to the frame that is next, and go on behind it."""
        self._frames += self.next + 1
        self.next = self._gap()
        (kind,) = self._random.choices(self._kinds, cum_weights=self._chances)
        delay = 0
        bits: tuple[int, ...] = ()
        if kind is FaultKind.LATE:
            delay = self._delay(*_LATE)
        elif kind is FaultKind.REORDER:
            delay = self._delay(*_REORDERED)
        elif kind is FaultKind.CORRUPT:
            bits = self._bits(8 * len(frame))
        return Fault(kind, self._line, self._frames, delay, bits)

    def _delay(self, least: int, most: int) -> int:
        return int(least * (most / least) ** self._random.random())

    def _bits(self, among: int) -> tuple[int, ...]:
        if not among:
            return ()
        number = self._random.randint(1, _MOST_BITS)
        return tuple(self._random.randrange(among) for _ in range(number))
