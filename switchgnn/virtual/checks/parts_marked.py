# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a leaf sends up says that one switch has made it a partial sum."""

from switchgnn.host.wire.header import Kind
from switchgnn.virtual.checks.check import SwitchCheck
from switchgnn.virtual.checks.packets.packet import is_wrapped, kind_in, read_packet
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.scene import Scene

_LEVEL = 1


class PartsMarked(SwitchCheck):
    """Looks at the Level of features that leave leaves for spines."""

    def begin(self, scene: Scene) -> None:
        """Look at a scene from now on."""
        super().begin(scene)
        self._ends = {(lower.switch, lower.port) for _, lower, _ in scene.subject.site.cables}

    def given(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        """Look at features among frames that leave.

        Args:
            switch: where.
            port: its port.
            frames: all of them.
        """
        if (switch.number, port) not in self._ends:
            return
        for frame in frames:
            if kind_in(frame) != Kind.FEATURE:
                continue
            packet = read_packet(frame)
            level = packet.level >> 1 & 7
            # A leaf forwards what is no packet, whatever it looks like.
            if level != _LEVEL and not packet.resent and is_wrapped(packet):
                self.scene.violated(
                    "parts marked",
                    f"{switch.name} sends a partial sum up with Level {level} in place of {_LEVEL}",
                )
