# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A round that is opened while the features of its first block are sent already."""

from switchgnn.host.congestion import Waiting
from switchgnn.host.innetwork.barrier import Barrier, Following, Largest
from switchgnn.host.innetwork.fixed_point import magnitude_from_bits


class Opening:
    """One opening that goes on while features do.

    The round is void where the largest magnitude does not fit the scale of the features: all
    workers hear the same maximum, so all know.
    """

    def __init__(self, barrier: Barrier, waiting: Waiting, capacity: float) -> None:
        self._barrier = barrier
        self._waiting = waiting
        self._capacity = capacity
        self.largest: Largest | None = None

    def begin(self, round_number: int, magnitude: int, following: Following) -> None:
        """Report that this worker opens the round.

        `magnitude`: float32 bits of this worker's largest magnitude.
        """
        self._barrier.begin_round(round_number, magnitude, following)

    def tend(self, *, idle: bool) -> None:
        """Ask again if that is due, and look whether all workers have opened the round."""
        self.largest = self._barrier.tend()
        if self.done:
            self._waiting.stop()
        elif idle:
            self._waiting.start()

    def next_timer(self, now: float) -> float:
        """Return the seconds until ``tend`` has something to ask."""
        return self._barrier.next_timer(now)

    @property
    def done(self) -> bool:
        """Whether all workers have opened the round."""
        return self.largest is not None

    @property
    def void(self) -> bool:
        """Whether the features do not fit the scale that they were sent with."""
        return self.largest is not None and magnitude_from_bits(self.largest.bits) > self._capacity
