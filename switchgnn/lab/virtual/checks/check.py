# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a check may look at."""

from switchgnn.lab.virtual.parts.switch import VirtualSwitch
from switchgnn.lab.virtual.parts.worker import Done
from switchgnn.lab.virtual.scene import Scene


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
        """Note that nothing more happens."""


class SwitchCheck(Check):
    """Looks at what switches take and give, too."""

    def begin(self, scene: Scene) -> None:
        """Look at a scene and its switches from now on."""
        super().begin(scene)
        for switch in scene.switches:
            switch.onlookers.append(self)

    def taken(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        """Note frames that arrive at a port."""

    def given(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        """Note frames that leave through a port."""

    def ends(self, switch: VirtualSwitch) -> None:
        """Note that a switch is about to end, or to load another program."""
