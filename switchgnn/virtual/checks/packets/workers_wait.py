# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""No worker goes on before all are done with what was before (invariant 5)."""

from switchgnn.host.wire.header import Kind
from switchgnn.virtual.checks.packets.packet import Packet, name_of
from switchgnn.virtual.checks.packets.packet_check import PacketCheck
from switchgnn.virtual.parts.switch import VirtualSwitch

Place = tuple[int, int, int]


class WorkersWait(PacketCheck):
    """Compares features and `done`s of each worker with the `done`s of the others."""

    takes = frozenset({Kind.FEATURE, Kind.DONE})

    def session_begins(self) -> None:
        """Forget what was said in the last session."""
        self._latest: dict[int, Place] = dict.fromkeys(range(len(self.scene.workers)), (0, 0, 0))

    def took(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Compare what a worker sends with what it, and all others, were done with.

        Args:
            switch: where.
            worker: whose port it comes through.
            packet: it.
        """
        place, before = packet.place, self._latest[worker]
        if place <= before or packet.resent:
            return
        behind = [
            other
            for other, latest in self._latest.items()
            if latest < before and not self.opened_unheard(other, before)
        ]
        if behind and self.scene.honest(worker) and not self.scene.lawless:
            self.scene.violated(
                "workers wait",
                f"worker {worker} is in {name_of(place)}, "
                f"but workers {behind} are not done with what was before",
            )
        if packet.flags & 0xF == Kind.DONE:
            self._latest[worker] = place
