"""Clocks, which are passed to their users so that simulations can supply their own."""

import time
from typing import Final, Protocol


class Clock(Protocol):
    """A monotonic clock; waiting uses the same clock."""

    def now(self) -> float:
        """Return the seconds since a fixed moment, more than 0."""


class SystemClock:
    """The monotonic clock of the system."""

    # Not wrapped in a method: it is called for every batch of frames.
    now = staticmethod(time.monotonic)


SYSTEM_CLOCK: Final[Clock] = SystemClock()
