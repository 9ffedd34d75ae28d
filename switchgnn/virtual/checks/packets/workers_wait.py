# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""No worker goes on before all are done with what was before (invariant 5).

Features that were let in early do not wait for the opening of their round, but for all that was
before it.
"""

from switchgnn.host.wire.header import KIND_MASK, OPENING_BLOCK, Kind
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
        # By worker: the place of early features, and the `done` that has announced them.
        self._early: dict[int, tuple[Place, Place]] = {}

    def took(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Compare what a worker sends with what it, and all others, were done with.

        Args:
            switch: where.
            worker: whose port it comes through.
            packet: it.
        """
        if packet.place <= self._latest[worker] or packet.resent:
            return
        place, before = packet.place, self._before(worker, packet)
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
        if packet.flags & KIND_MASK == Kind.DONE:
            self._latest[worker] = place
            if packet.echo:
                self._early[worker] = (place[0] + 1, packet.number, packet.group), place

    def _before(self, worker: int, packet: Packet) -> Place:
        """Return the place that all must be done with before a worker sends a packet."""
        before = self._latest[worker]
        early, announced = self._early.get(worker, (None, before))
        opening = packet.place[0], OPENING_BLOCK, 0
        if packet.flags & KIND_MASK == Kind.FEATURE and packet.place == early and before == opening:
            return announced
        return before
