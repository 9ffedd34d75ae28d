# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Nobody is told to go on before all workers are done (invariant 5)."""

from switchgnn.host.wire.header import OPENING_BLOCK, Kind
from switchgnn.virtual.checks.packets.packet import Packet, name_of
from switchgnn.virtual.checks.packets.packet_check import PacketCheck
from switchgnn.virtual.network.fields import words_of
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.scene import Scene

Place = tuple[int, int, int]


class BarrierWaits(PacketCheck):
    """Compares each ADVANCE for a worker with the `done`s that have reached switches."""

    takes = frozenset({Kind.DONE})
    gives = frozenset({Kind.ADVANCE})

    def begin(self, scene: Scene) -> None:
        """Look at a scene from now on."""
        super().begin(scene)
        self._words = words_of(scene.scenario.width, scene.scenario.lanes)
        self._blocks = scene.subject.plan.manifest.blocks

    def session_begins(self) -> None:
        """Forget what workers of the last session have said."""
        workers = range(len(self.scene.workers))
        self._latest: dict[int, Place] = dict.fromkeys(workers, (0, OPENING_BLOCK, 0))

    def took(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Remember how far a worker says that it is.

        Args:
            switch: where.
            worker: whose port it comes through.
            packet: it.
        """
        if packet.source == worker:
            self._latest[worker] = max(packet.place, self._latest[worker])

    def gave(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Compare an ADVANCE.

        Args:
            switch: where.
            worker: whose port it leaves through.
            packet: it.
        """
        place = packet.place
        late = [
            other
            for other, latest in self._latest.items()
            if latest < place and not self.opened_unheard(other, place)
        ]
        if late and not self._means_nothing(worker, place):
            self.scene.violated(
                "barrier waits",
                f"switch {switch.name} says that all are done with {name_of(place)}, but workers "
                f"{late} are not",
            )

    def _means_nothing(self, worker: int, place: Place) -> bool:
        """Tell whether somebody mad may have a worker told that a place is over.

        One that is earlier and never was a turn is confirmed to it, and by its leaf to others.
        """
        if not self.scene.misfits:
            return False
        never = place[2] not in (self._words if place[1] else (0,)) or place[1] > self._blocks
        return never or self.scene.lawless or not self.scene.honest(worker)
