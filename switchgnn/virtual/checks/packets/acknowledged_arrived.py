# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What the switch acknowledges has arrived since it was started."""

from switchgnn.host.wire.header import Kind
from switchgnn.virtual.checks.packets.packet import Packet
from switchgnn.virtual.checks.packets.packet_check import PacketCheck
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.scene import Scene

Group = tuple[int, tuple[int, int, int], int]


class AcknowledgedArrived(PacketCheck):
    """Compares the number in each ACK with the different features of the group."""

    takes = frozenset({Kind.FEATURE})
    gives = frozenset({Kind.ACK})

    def begin(self, scene: Scene) -> None:
        """Look at a scene from now on."""
        super().begin(scene)
        self._arrived: dict[int, dict[Group, set[int]]] = {
            switch.number: {} for switch in scene.switches
        }

    def session_begins(self) -> None:
        """Forget the features of the last session."""
        for arrived in self._arrived.values():
            arrived.clear()

    def ends(self, switch: VirtualSwitch) -> None:
        """Forget what the switch forgets."""
        self._arrived[switch.number].clear()

    def took(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Note a feature.

        Args:
            switch: where.
            worker: whose port it comes through.
            packet: it.
        """
        if not packet.resent:
            group = worker, packet.place, packet.group
            self._arrived[switch.number].setdefault(group, set()).add(packet.source)

    def gave(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Compare an ACK.

        Args:
            switch: where.
            worker: whose port it leaves through.
            packet: it.
        """
        group = worker, packet.place, packet.group
        arrived = len(self._arrived[switch.number].get(group, ()))
        if packet.number > arrived and self.scene.honest(worker):
            self.scene.violated(
                "acknowledged arrived",
                f"{switch.name} acknowledges {packet.number} features of group {packet.group} of "
                f"worker {worker} in round {packet.place[0]}, block {packet.block}: {arrived} have "
                "arrived",
            )
