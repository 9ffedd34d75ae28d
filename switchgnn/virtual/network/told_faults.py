# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What happens to frames on a line, told one by one."""

from collections.abc import Iterable

from switchgnn.virtual.scenario.files import ScenarioError
from switchgnn.virtual.scenario.scenario import Fault

_NEVER = 1 << 62


class ToldFaults:
    """Lets happen to each frame what a scenario says; `Disturbance` draws it.

    Args:
        faults: those of one line.

    Attributes:
        next: how many frames pass before the next one that something happens to.

    Raises:
        ScenarioError: a frame has two of them, or there is no such frame.
    """

    def __init__(self, faults: Iterable[Fault]) -> None:
        self._left = sorted(faults, key=lambda fault: fault.frame, reverse=True)
        frames = {fault.frame for fault in self._left}
        if len(frames) < len(self._left) or min(frames, default=1) < 1:
            raise ScenarioError(
                f"Two faults of {self._left[0].line} are of one frame, or one is of a frame before "
                "the first: give each a number of its own, from 1."
            )
        self._frames = 0
        self.next = self._gap()

    def _gap(self) -> int:
        return self._left[-1].frame - self._frames - 1 if self._left else _NEVER

    def passed(self, frames: int) -> None:
        """Take note of frames, fewer than ``next``, that nothing happens to."""
        self._frames += frames
        self.next -= frames

    def fault(self, _frame: bytes) -> Fault:
        """Return what happens to the frame that is next, and go on behind it."""
        fault = self._left.pop()
        self._frames = fault.frame
        self.next = self._gap()
        return fault
