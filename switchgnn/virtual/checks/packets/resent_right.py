# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A raw feature that was fetched is its owner's, and reaches who has asked for it only."""

from switchgnn.host.wire.header import KIND_MASK, Kind
from switchgnn.virtual.checks.packets.packet import Fragments, Packet, name_of
from switchgnn.virtual.checks.packets.packet_check import PacketCheck
from switchgnn.virtual.checks.packets.scales import Scaled, Scales
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.scene import Scene


class ResentRight(PacketCheck):
    """Compares the raw features for workers with those of the round."""

    gives = frozenset({Kind.FEATURE, Kind.ADVANCE})

    def begin(self, scene: Scene) -> None:
        """Look at a scene from now on."""
        super().begin(scene)
        self._rows: dict[Scaled, bytes] = {}
        part = scene.subject.plan.switch
        self._owner = dict(
            zip(part.source_vertex.tolist(), part.source_worker.tolist(), strict=True)
        )
        self._fragments = Fragments(scene.scenario.width, scene.scenario.lanes)

    def session_begins(self) -> None:
        """Forget the features of the last session."""
        self._rows.clear()
        if self.scene.job is not None:
            self._scales = Scales(self.scene, self.scene.job)

    def gave(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Compare a raw feature, and heed of which scale those of a round are.

        Args:
            switch: where.
            worker: whose port it leaves through.
            packet: it.
        """
        if packet.flags & KIND_MASK == Kind.ADVANCE:
            self._scales.heed(packet)
            return
        if not packet.resent:
            return
        place, source = packet.place, packet.source
        right = self._fragments.holds(packet, self._of(place[0]), source)
        assignment = self.scene.subject.plan.assignment
        owner = assignment[packet.destination] if packet.destination < len(assignment) else None
        # A mad worker lies about its own features; at which scale others have theirs is not known
        # where it moves a barrier on.
        believed = source in self._owner and not self.scene.honest(self._owner[source])
        wrong = not (right or believed or self.scene.lawless)
        if owner != worker or wrong:
            what = "wrong" if owner == worker else "for another worker"
            self.scene.violated(
                "resent right",
                f"the feature of vertex {source} in {name_of(place)} that leaves for worker "
                f"{worker} is {what}",
            )

    def _of(self, place: int) -> bytes:
        job, scaled = self.scene.job, self._scales.of(place)
        if job is None or scaled is None:
            return b""
        if scaled not in self._rows:
            features, _ = job.rounds[scaled.exchange]
            fixed = self.scene.subject.oracle.fixed(features, scaled.magnitude)
            self._rows[scaled] = self._fragments.rows_of(fixed)
        return self._rows[scaled]
