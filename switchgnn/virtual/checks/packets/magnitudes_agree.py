# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""All workers hear the same largest magnitude of a round: the one that it has."""

from switchgnn.host.innetwork.fixed_point import largest_magnitude
from switchgnn.host.wire.header import Kind
from switchgnn.virtual.checks.packets.packet import Packet
from switchgnn.virtual.checks.packets.packet_check import PacketCheck
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.scene import Scene


class MagnitudesAgree(PacketCheck):
    """Compares each ADVANCE with the features of all workers."""

    gives = frozenset({Kind.ADVANCE})

    def begin(self, scene: Scene) -> None:
        """Look at a scene from now on."""
        super().begin(scene)
        self._right: list[int] = []

    def session_begins(self) -> None:
        """Find the largest magnitudes of the session's rounds."""
        job = self.scene.job
        self._right = [largest_magnitude(features) for features, _ in job.rounds] if job else []

    def gave(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Compare an ADVANCE that speaks of its own round.

        Args:
            switch: where.
            worker: whose port it leaves through.
            packet: it.
        """
        body = packet.body
        magnitude, newest = int.from_bytes(body[:4], "big"), int.from_bytes(body[8:12], "big")
        place = packet.place[0]
        if newest & 0xFFFFFF != place or not 1 <= place <= len(self._right):
            return
        if magnitude != self._right[place - 1]:
            self.scene.violated(
                "magnitudes agree",
                f"{switch.name} tells worker {worker} that the largest magnitude of round {place} "
                f"is {magnitude:#010x}, and not {self._right[place - 1]:#010x}",
            )
