# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a check may look at."""

from switchgnn.virtual.parts.worker import Done
from switchgnn.virtual.scene import Scene


class Check:
    """Looks at a scene while it happens; what it does not look at it leaves out."""

    scene: Scene

    def begin(self, scene: Scene) -> None:
        """Look at a scene from now on; nothing has happened yet."""
        self.scene = scene

    def session_begins(self) -> None:
        """Note that workers are about to begin."""

    def done(self, done: Done) -> None:
        """Note that a worker has done an exchange."""

    def session_ends(self) -> None:
        """Note that all workers have ended."""

    def conclude(self, *, in_time: bool) -> None:
        """Note that nothing more happens.

        Args:
            in_time: whether all has ended by itself.
        """
