# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""No process ends with an error that nobody has thought of."""

from switchgnn.base.errors import SwitchGNNError
from switchgnn.virtual.checks.check import Check
from switchgnn.virtual.crash import CRASH, what_crashed
from switchgnn.virtual.timing.task import HangError


class NothingCrashes(Check):
    """Looks at how workers have ended, and the controller."""

    def session_ends(self) -> None:
        """Look at the workers."""
        for worker in self.scene.workers:
            self._look(worker.name, worker.task.error if worker.task else None)

    def conclude(self, *, in_time: bool) -> None:
        """Look at all of them.

        Args:
            in_time: whether all has ended by itself.
        """
        self.session_ends()
        self._look("the controller", self.scene.controller.error)

    def _look(self, who: str, error: Exception | None) -> None:
        # One that hangs is another failure, and an error for the user may be right.
        if error is not None and not isinstance(error, SwitchGNNError | HangError):
            self.scene.violated(CRASH, f"{who} ends with {what_crashed(error)}")
