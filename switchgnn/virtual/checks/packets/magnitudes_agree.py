# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""All workers hear the same largest magnitude of a round: the one that it has."""

import numpy as np

from switchgnn.host.innetwork.fixed_point import largest_magnitude
from switchgnn.host.wire.header import Kind
from switchgnn.virtual.checks.packets.packet import Packet
from switchgnn.virtual.checks.packets.packet_check import PacketCheck
from switchgnn.virtual.checks.packets.scales import Scales, told_magnitude
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.scene import Scene


class MagnitudesAgree(PacketCheck):
    """Compares each ADVANCE with the features of all workers."""

    gives = frozenset({Kind.ADVANCE})

    def begin(self, scene: Scene) -> None:
        """Look at a scene from now on."""
        super().begin(scene)
        self._told: set[int] = set()

    def session_begins(self) -> None:
        """Find the largest magnitudes of the session's rounds."""
        self._told.clear()
        if self.scene.job is not None:
            self._scales = Scales(self.scene, self.scene.job)

    def gave(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Compare an ADVANCE that speaks of its own round.

        Args:
            switch: where.
            worker: whose port it leaves through.
            packet: it.
        """
        magnitude, place = told_magnitude(packet), packet.place[0]
        scaled = self._scales.of(place)
        if magnitude is None or scaled is None:
            return
        if place not in self._told and magnitude >= self._least(scaled.exchange):
            # A mad worker says what it likes of its own features. All must hear the same.
            self._scales.heed(packet)
        self._told.add(place)
        right = self._scales.largest(place)
        if magnitude != right and not self.scene.lawless:
            self.scene.violated(
                "magnitudes agree",
                f"{switch.name} tells worker {worker} that the largest magnitude of round {place} "
                f"is {magnitude:#010x}, and not {right:#010x}",
            )

    def _least(self, exchange: int) -> int:
        """Return the largest magnitude of an exchange that honest workers have."""
        job, scene = self.scene.job, self.scene
        honest = [worker for worker in range(len(scene.workers)) if scene.honest(worker)]
        if job is None:
            return 0
        features = job.rounds[exchange][0]
        return largest_magnitude(features[np.isin(scene.subject.plan.assignment, honest)])
