# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What becomes of frames on a line, drawn from its rates."""

import math
from collections import Counter
from random import Random

from switchgnn.virtual.scenario.scenario import Rates
from switchgnn.virtual.timing.scheduler import SECOND

FATES = ("loss", "duplicate", "late", "reorder", "corrupt")
_MOST_BITS = 3
# Nanoseconds by which a frame may be late: from a window to a patience and more, in magnitudes.
_REORDERED = (10_000, SECOND)
_LATE = (1_000_000, 200 * SECOND)


class Disturbance:
    """Chooses the frames that something happens to, and what.

    Args:
        rates: probabilities.
        random: where it is drawn from.
        counts: of frames by their fates.
    """

    def __init__(self, rates: Rates, random: Random, counts: Counter[str]) -> None:
        self._random = random
        self._counts = counts
        self._chances = [getattr(rates, fate) for fate in FATES]
        self._total = sum(self._chances)
        self.next = self._gap()

    def _gap(self) -> int:
        """Return how many frames pass before the next one that something happens to."""
        if self._total <= 0.0:
            return 1 << 62
        if self._total >= 1.0:
            return 0
        return int(math.log(1.0 - self._random.random()) / math.log(1.0 - self._total))

    def passed(self, frames: int) -> None:
        """Take note of frames, fewer than ``next``, that nothing happens to."""
        self.next -= frames

    def fate(self) -> str:
        """Return what happens to the frame that is next."""
        self.next = self._gap()
        (fate,) = self._random.choices(FATES, self._chances)
        self._counts[fate] += 1
        return fate

    def delay(self, fate: str) -> int:
        """Return by how many nanoseconds a frame is later than it would be."""
        least, most = _LATE if fate == "late" else _REORDERED
        return int(least * (most / least) ** self._random.random())

    def corrupted(self, frame: bytes) -> bytes:
        """Return a frame with some bits changed."""
        changed = bytearray(frame)
        for _ in range(self._random.randint(1, _MOST_BITS)):
            bit = self._random.randrange(8 * len(changed))
            changed[bit // 8] ^= 1 << bit % 8
        return bytes(changed)
