# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A worker is done with a block when all its features in it are acknowledged.

A round that is void ends with its first block, whatever has become of the features.
"""

from switchgnn.host.wire.header import KIND_MASK, Kind
from switchgnn.virtual.checks.packets.packet import Packet, name_of
from switchgnn.virtual.checks.packets.packet_check import PacketCheck
from switchgnn.virtual.checks.packets.scales import Scales
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.scene import Scene

Where = tuple[int, tuple[int, int, int]]


class DoneIsDone(PacketCheck):
    """Compares each `done` with the acknowledgements before, group by group."""

    takes = frozenset({Kind.DONE})
    gives = frozenset({Kind.ACK, Kind.ADVANCE})

    def begin(self, scene: Scene) -> None:
        """Look at a scene from now on."""
        super().begin(scene)
        self._features = [
            [0, *(part.send_indptr[1:] - part.send_indptr[:-1]).tolist()]
            for part in scene.subject.plan.workers
        ]
        self._acknowledged: dict[Where, dict[int, int]] = {}

    def session_begins(self) -> None:
        """Forget the last session."""
        self._acknowledged.clear()
        if self.scene.job is not None:
            self._scales = Scales(self.scene, self.scene.job)

    def gave(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Note an acknowledgement, and heed which rounds are void.

        Args:
            switch: where.
            worker: whose port it leaves through.
            packet: it.
        """
        if packet.flags & KIND_MASK == Kind.ADVANCE:
            self._scales.heed(packet)
            return
        groups = self._acknowledged.setdefault((worker, packet.place), {})
        groups[packet.group] = max(packet.number, groups.get(packet.group, 0))

    def took(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Compare a `done`.

        Args:
            switch: where.
            worker: whose port it comes through.
            packet: it.
        """
        if packet.source != worker or packet.block >= len(self._features[worker]):
            return
        scaled = self._scales.of(packet.place[0])
        if not self.scene.honest(worker) or (scaled is not None and scaled.void):
            return
        features = self._features[worker][packet.block]
        groups = self._acknowledged.get((worker, packet.place), {})
        if sum(groups.values()) < features:
            self.scene.violated(
                "done is done",
                f"worker {worker} is done with {name_of(packet.place)}: {sum(groups.values())} of "
                f"its {features} features are acknowledged",
            )
