# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""No worker has more in flight than its window, and groups that the switch can tell apart."""

from switchgnn.host.wire.header import Kind
from switchgnn.virtual.checks.packets.packet import Packet
from switchgnn.virtual.checks.packets.packet_check import PacketCheck
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.scene import Scene

Where = tuple[int, tuple[int, int, int]]
_GROUPS_APART = 32


class WindowHeld(PacketCheck):
    """Compares the features that have arrived with the acknowledgements that have left.

    A worker has sent at least the ones, and heard at most the others.
    """

    takes = frozenset({Kind.FEATURE})
    gives = frozenset({Kind.ACK})

    def begin(self, scene: Scene) -> None:
        """Look at a scene from now on."""
        super().begin(scene)
        self.session_begins()

    def session_begins(self) -> None:
        """Forget the last session."""
        self._arrived: dict[Where, set[int]] = {}
        self._confirmed: dict[Where, dict[int, int]] = {}
        self._furthest: dict[Where, int] = {}

    def took(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Note a feature, and look how many are in flight.

        Args:
            switch: where.
            worker: whose port it comes through.
            packet: it.
        """
        if packet.resent or not self.scene.honest(worker):
            return
        where = worker, packet.place
        arrived = self._arrived.setdefault(where, set())
        arrived.add(packet.source)
        confirmed = self._confirmed.get(where, {})
        window = self.scene.scenario.window
        if len(arrived) > window and len(arrived) - sum(confirmed.values()) > window:
            self.scene.violated(
                "window held", f"worker {worker} has more than {window} features in flight"
            )
        if packet.group > self._furthest.get(where, _GROUPS_APART - 1):
            self._furthest[where] = packet.group
            if self.scene.job is None:
                return
            size = self.scene.job.pace.group_size
            before = range(packet.group - _GROUPS_APART + 1)
            if any(confirmed.get(group, 0) < size for group in before):
                self.scene.violated(
                    "window held",
                    f"worker {worker} sends group {packet.group} before all of group "
                    f"{packet.group - _GROUPS_APART} are acknowledged",
                )

    def gave(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Note an acknowledgement.

        Args:
            switch: where.
            worker: whose port it leaves through.
            packet: it.
        """
        groups = self._confirmed.setdefault((worker, packet.place), {})
        groups[packet.group] = max(packet.number, groups.get(packet.group, 0))
