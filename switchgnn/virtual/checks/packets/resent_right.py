# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A raw feature that was fetched is its owner's, and reaches who has asked for it only."""

import numpy as np

from switchgnn.host.wire.header import FRAGMENT_BYTES, LANES, Kind, fragments_of
from switchgnn.virtual.checks.packets.packet import Packet
from switchgnn.virtual.checks.packets.packet_check import PacketCheck
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.scene import Scene


class ResentRight(PacketCheck):
    """Compares the raw features for workers with those of the round."""

    gives = frozenset({Kind.FEATURE})

    def begin(self, scene: Scene) -> None:
        """Look at a scene from now on."""
        super().begin(scene)
        self._rows: dict[int, bytes] = {}
        self._fragments = fragments_of(scene.scenario.width)

    def session_begins(self) -> None:
        """Forget the features of the last session."""
        self._rows.clear()

    def gave(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Compare a raw feature.

        Args:
            switch: where.
            worker: whose port it leaves through.
            packet: it.
        """
        if not packet.resent:
            return
        place, source = packet.place, packet.source
        at = (source * self._fragments + packet.fragment) * FRAGMENT_BYTES
        right = self._of(place[0])[at : at + FRAGMENT_BYTES]
        owner = self.scene.subject.plan.assignment[packet.destination]
        if owner != worker or packet.body[:FRAGMENT_BYTES] != right:
            what = "wrong" if owner == worker else "for another worker"
            self.scene.violated(
                "resent right",
                f"the feature of vertex {source} in round {place[0]}, block {place[1]}, fragment "
                f"{place[2]} that leaves for worker {worker} is {what}",
            )

    def _of(self, place: int) -> bytes:
        job = self.scene.job
        if place not in self._rows and job is not None and 1 <= place <= len(job.rounds):
            fixed = self.scene.subject.oracle.fixed(job.rounds[place - 1][0])
            padded = np.zeros((len(fixed), self._fragments * LANES), dtype=">i4")
            padded[:, : fixed.shape[1]] = fixed
            self._rows[place] = padded.tobytes()
        return self._rows.get(place, b"")
