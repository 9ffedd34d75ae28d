# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Every sum that leaves for a worker is exact: a slot counts each source once (invariant 1).

A sum of another round, or a mixture, would be another number.
"""

from switchgnn.host.wire.header import KIND_MASK, Kind
from switchgnn.virtual.checks.packets.packet import Fragments, Packet, name_of
from switchgnn.virtual.checks.packets.packet_check import PacketCheck
from switchgnn.virtual.checks.packets.scales import Scaled, Scales
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.parts.worker import Job
from switchgnn.virtual.scene import Scene


class SumsLeaveExact(PacketCheck):
    """Compares all SUMs of this session on their way to workers."""

    gives = frozenset({Kind.SUM, Kind.ADVANCE})

    def begin(self, scene: Scene) -> None:
        """Look at a scene from now on."""
        super().begin(scene)
        self._right: dict[Scaled, bytes] = {}
        self._fragments = Fragments(scene.scenario.width, scene.scenario.lanes)

    def session_begins(self) -> None:
        """Forget the sums of the last session."""
        self._right.clear()
        if self.scene.job is not None:
            self._scales = Scales(self.scene, self.scene.job)

    def _of(self, job: Job, scaled: Scaled) -> bytes:
        """Return the right sums of a round, as they are on the wire."""
        if scaled not in self._right:
            subject = self.scene.subject
            fixed = subject.oracle.fixed(job.rounds[scaled.exchange][0], scaled.magnitude)
            self._right[scaled] = self._fragments.rows_of(subject.awaited.of(fixed))
        return self._right[scaled]

    def gave(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Compare a SUM, and heed of which scale those of a round are.

        Args:
            switch: where.
            worker: whose port it leaves through.
            packet: it.
        """
        if packet.flags & KIND_MASK == Kind.ADVANCE:
            self._scales.heed(packet)
            return
        scaled, job = self._scales.of(packet.place[0]), self.scene.job
        if scaled is None or job is None:
            return
        vertex = packet.destination
        row = self.scene.subject.awaited.place.get((packet.block, vertex), 0)
        right = self._fragments.holds(packet, self._of(job, scaled), row)
        if not right and not self._spoilt(vertex):
            self.scene.violated(
                "sums leave exact",
                f"switch {switch.name} sends a wrong sum of vertex {vertex}: "
                f"{name_of(packet.place)}",
            )

    def _spoilt(self, vertex: int) -> bool:
        """Tell whether a mad worker may have a sum changed: with its features, or the scale."""
        return vertex in self.scene.spoilt or self.scene.lawless
