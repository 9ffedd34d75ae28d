# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What each round of a session exchanges, and the magnitude of which its scale is made."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from switchgnn.host.innetwork.fixed_point import largest_magnitude, magnitude_from_bits
from switchgnn.planner.direction import Direction
from switchgnn.virtual.checks.packets.packet import Packet
from switchgnn.virtual.parts.worker import Job
from switchgnn.virtual.scene import Scene

_LAST_ROUND = 0xFFFFFF
_LARGEST_FLOAT = float(np.finfo(np.float32).max)


def told_magnitude(packet: Packet) -> int | None:
    """Return the largest magnitude that an ADVANCE has of its own round, as bits; None: of none."""
    body = packet.body
    newest = int.from_bytes(body[8:12], "big") & _LAST_ROUND
    return int.from_bytes(body[:4], "big") if newest == packet.place[0] else None


@dataclass(frozen=True)
class Scaled:
    """What a round exchanges.

    Attributes:
        exchange: the place of the exchange among those of the session, from 0.
        magnitude: of which the scale of its features is made.
        void: whether some features do not fit that scale: the next round has them again.
    """

    exchange: int
    magnitude: float
    void: bool = False


class Scales:
    """What the rounds of a session exchange, and at which scale.

    A round whose exchange was foreseen has a scale with headroom, as its features do not wait for
    the largest magnitude; all others have the scale of the largest magnitude of the features, or
    of what is told. A mad worker may report a larger one than it has, as it may lie about its
    features.

    Args:
        scene: where it is exchanged.
        job: what is exchanged.
    """

    def __init__(self, scene: Scene, job: Job) -> None:
        self._scene = scene
        self._job = job
        self._largest = [largest_magnitude(features) for features, _ in job.rounds]
        self._told: dict[int, int] = {}
        self._rounds = list(self._scaled())

    def heed(self, packet: Packet) -> None:
        """Take an ADVANCE, which may tell another largest magnitude than the features have."""
        place, told = packet.place[0], told_magnitude(packet)
        if told is None or not self._scene.misfits or not 1 <= place <= len(self._rounds):
            return
        if told != self.largest(place):
            self._told[place] = told
            self._rounds = list(self._scaled())

    def of(self, place: int) -> Scaled | None:
        """Return what a round, from 1, exchanges; None where there is no such round."""
        return self._rounds[place - 1] if 1 <= place <= len(self._rounds) else None

    def of_exchange(self, exchange: int) -> Scaled:
        """Return the round that brings the sums of an exchange, from 0."""
        return next(each for each in self._rounds if each.exchange == exchange and not each.void)

    def largest(self, place: int) -> int:
        """Return the largest magnitude of a round, from 1, as bits."""
        return self._told.get(place, self._largest[self._rounds[place - 1].exchange])

    def _scaled(self) -> Iterator[Scaled]:
        """Yield all rounds, in order."""
        past: list[tuple[Direction, int]] = []
        place = 1
        for exchange, (_, direction) in enumerate(self._job.rounds):
            largest = self._told.get(place, self._largest[exchange])
            capacity = self._capacity(past, direction)
            void = capacity is not None and magnitude_from_bits(largest) > capacity
            if capacity is not None:
                yield Scaled(exchange, capacity, void)
                place += 1
            if capacity is None or void:
                largest = self._told.get(place, self._largest[exchange])
                yield Scaled(exchange, magnitude_from_bits(largest))
                place += 1
            past.append((direction, largest))

    def _capacity(self, past: list[tuple[Direction, int]], direction: Direction) -> float | None:
        """Return how large features may be that do not wait; None where all of them wait."""
        alike = foreseen(past)
        manifest = self._job.plan.manifest
        if not alike or alike[0][0] is not direction:
            return None
        if not manifest.direction(direction).block_numbers:
            return None
        capacity = 4.0 * max(magnitude_from_bits(largest) for _, largest in alike)
        fits = 0.0 < capacity * max(1, manifest.max_fan_in) <= _LARGEST_FLOAT
        return capacity if fits else None


def foreseen(past: Sequence[tuple[Direction, int]]) -> list[tuple[Direction, int]]:
    """Return the exchanges, of one direction, that the next one is expected to be like.

    The longest end of all exchanges that has occurred before, and of several such the latest, was
    followed by one of them; another is as far before that one, as the next one is behind it.

    Args:
        past: the direction of each exchange so far, and the bits of its largest magnitude.

    Returns:
        One or two of them; none where the last exchange is the first of its direction.
    """
    directions = [direction for direction, _ in past]
    now = len(past)
    longest, behind = 0, 0
    for each in range(1, now):
        common = 0
        while common < each and directions[each - 1 - common] is directions[now - 1 - common]:
            common += 1
        if common and common >= longest:
            longest, behind = common, each
    if not longest:
        return []
    candidates = (behind, 2 * behind - now)
    return [
        past[each] for each in candidates if each >= 0 and directions[each] is directions[behind]
    ]
