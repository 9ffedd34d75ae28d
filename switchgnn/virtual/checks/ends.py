# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Every run ends in bounded virtual time."""

from switchgnn.virtual.checks.check import Check


class Ends(Check):
    """Notes who still runs when the time is over."""

    def conclude(self, *, in_time: bool) -> None:
        """See whether all has ended by itself."""
        error = self.scene.controller.error
        if error is not None:
            self.scene.violated("ends", f"the controller has failed: {error!r}")
        if in_time:
            return
        running = [
            worker.name for worker in self.scene.workers if worker.task and not worker.task.ended
        ]
        seconds = self.scene.scheduler.seconds
        who = f"{', '.join(running)} still run" if running else "no session is installed"
        self.scene.violated("ends", f"after {seconds:,.0f} virtual seconds {who}")
