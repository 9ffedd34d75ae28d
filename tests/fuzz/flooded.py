# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's link on which frames arrive that the switch did not send."""

from dataclasses import asdict

from switchgnn.host.innetwork.exchange import InNetworkExchange
from switchgnn.host.wire.header import Header, Kind, unpack_header
from tests.fuzz.frames import Generator
from tests.fuzz.mad_links import WrappedLink
from tests.fuzz.world import World
from tests.host.addresses import SESSION

# Counters that count a frame which arrived, each frame at most once. The last may not
# exist; see test_every_frame_is_counted.
ARRIVALS = (
    "sums_received",
    "features_fetched",
    "features_served",
    "late",
    "repeated",
    "wrong",
    "malformed",
    "foreign",
    "heard",
    "ignored",
    "noticed",
)
# Kinds that only a switch may send, and workers accept.
_BELIEVED = (Kind.SUM, Kind.ADVANCE, Kind.WAITING, Kind.ACK, Kind.MISSING)


class FloodedLink(WrappedLink):
    """Puts so many shots before what arrives on a link.

    The switch is trusted: a sound frame about a place that the worker has still to finish
    is believed, with its numbers and its congestion mark, if it is of a kind that comes from
    the switch or a fetched feature. Exactly those shots are left out.

    Attributes:
        finished: its last place that is complete.
        injected, malformed: shots so far, and those of them that are no sound packets.
        delivered: frames that the worker was given, shots and others.
    """

    def __init__(self, link, world: World, generator: Generator, shots: int) -> None:
        super().__init__(link)
        self.finished = (0, 0, 0)
        self.injected = self.malformed = self.delivered = 0
        self._generator = generator
        self._shots = shots
        self._places = set(world.places())

    @property
    def empty(self) -> bool:
        return self.injected >= self._shots

    def receive(self, seconds: float) -> memoryview | None:
        frame = None
        # Real frames are interleaved, or the worker would see none before the last shot.
        if not self.empty and self._generator.random.random() < 0.9:
            frame = self._shot()
        if frame is None:
            frame = self.link.receive(seconds)
        self.delivered += frame is not None
        return frame

    def _shot(self) -> memoryview | None:
        frame = self._generator.shot().aim(SESSION, self.finished[0] + 1)
        header = unpack_header(frame)
        if header is None:
            self.malformed += 1
        elif self._believed(header):
            return None
        self.injected += 1
        return memoryview(frame)

    def _believed(self, header: Header) -> bool:
        place = (header.round, header.block_id, header.fragment)
        if place == self.finished and header.kind is Kind.WAITING:
            return True
        if place <= self.finished or place[1:] not in self._places:
            return False
        fetched = header.kind is Kind.FEATURE and header.resend
        return header.kind in _BELIEVED or fetched or header.ecn


def arrivals(exchange: InNetworkExchange) -> int:
    """Frames that a worker has counted, or kept for a later block."""
    counters = asdict(exchange.tally)
    kept = len(exchange._block._inbox._kept)
    return sum(counters.get(name, 0) for name in ARRIVALS) + kept
