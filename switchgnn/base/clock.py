# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What time it is: handed to those who have to know, so that time need not be the system's."""

import time
from typing import Final, Protocol


class Clock(Protocol):
    """Tells the time. It never goes back, and what is waited for is waited for on this clock."""

    def now(self) -> float:
        """Return the seconds since some moment that stays the same, always more than 0."""


class SystemClock:
    """The clock of the system, which no change of the date moves."""

    # Not wrapped in a method: it is asked for every batch of frames.
    now = staticmethod(time.monotonic)


SYSTEM_CLOCK: Final[Clock] = SystemClock()
