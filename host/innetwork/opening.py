# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The opening of a round concurrent with its first features."""

from switchgnn.host.congestion import StallClock
from switchgnn.host.innetwork.barrier import Barrier, Following, Largest
from switchgnn.host.innetwork.fixed_point import magnitude_from_bits


class Opening:
    """The opening of one round, concurrent with the exchange of its first features.

    The round is void if the largest magnitude does not fit the scale of the features. All workers
    get the same maximum, so all come to the same result.
    """

    def __init__(self, barrier: Barrier, stall: StallClock, capacity: float) -> None:
        self._barrier = barrier
        self._stall = stall
        self._capacity = capacity
        self.largest: Largest | None = None

    def begin(self, round_number: int, magnitude: int, following: Following) -> None:
        """Report that this worker opens the round; `magnitude`: float32 bits of its largest."""
        self._barrier.begin_round(round_number, magnitude, following)

    def tend(self, *, idle: bool) -> None:
        """Repeat the report if due, and check whether all workers have opened the round."""
        self.largest = self._barrier.tend()
        if self.done:
            self._stall.stop()
        elif idle:
            self._stall.start()

    def next_timer(self, now: float) -> float:
        """Return the seconds until ``tend`` has something to send."""
        return self._barrier.next_timer(now)

    @property
    def done(self) -> bool:
        """Whether all workers have opened the round."""
        return self.largest is not None

    @property
    def void(self) -> bool:
        """Whether the features do not fit the scale at which they were sent."""
        return self.largest is not None and magnitude_from_bits(self.largest.bits) > self._capacity
