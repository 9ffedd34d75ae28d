# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The clocks of hosts and controllers in virtual time."""

from switchgnn.virtual.timing.scheduler import SECOND, Scheduler


class VirtualClock:
    """A clock that shows virtual time, or is ahead of it.

    Args:
        scheduler: what keeps virtual time.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._ahead = 0

    def now(self) -> float:
        """Return what it shows, in seconds."""
        return (self._scheduler.now + self._ahead) / SECOND

    def jump(self, seconds: float) -> None:
        """Be ahead by that much more."""
        self._ahead += int(seconds * SECOND)
