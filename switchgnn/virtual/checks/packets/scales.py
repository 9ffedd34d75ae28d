# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The largest magnitudes that workers are told, of which the scales of rounds are made."""

from switchgnn.host.innetwork.fixed_point import largest_magnitude, magnitude_from_bits
from switchgnn.virtual.checks.packets.packet import Packet
from switchgnn.virtual.parts.worker import Job
from switchgnn.virtual.scene import Scene

_LAST_ROUND = 0xFFFFFF


def told_magnitude(packet: Packet) -> int | None:
    """Return the largest magnitude that an ADVANCE has of its own round, as bits; None: of none."""
    body = packet.body
    newest = int.from_bytes(body[8:12], "big") & _LAST_ROUND
    return int.from_bytes(body[:4], "big") if newest == packet.place[0] else None


class Scales:
    """The largest magnitude of each round of a session: that of the features, or what is told.

    A mad worker may report a larger one than it has, as it may lie about its features.

    Args:
        scene: where it is exchanged.
        job: what is exchanged.
    """

    def __init__(self, scene: Scene, job: Job) -> None:
        self._scene = scene
        self.bits = [largest_magnitude(features) for features, _ in job.rounds]

    def changed(self, packet: Packet) -> int | None:
        """Take an ADVANCE; return the round whose scale is not what it was, if so."""
        place, told = packet.place[0], told_magnitude(packet)
        if told is None or not 1 <= place <= len(self.bits) or told == self.bits[place - 1]:
            return None
        if not self._scene.misfits:
            return None
        self.bits[place - 1] = told
        return place

    def of(self, place: int) -> float:
        """Return the largest magnitude of a round, from 1."""
        return magnitude_from_bits(self.bits[place - 1])
