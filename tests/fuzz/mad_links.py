# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Links of a worker gone mad: beside the worker's own frames they send others."""

import random
from collections.abc import Iterator, Sequence

from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.header import BODY_AT, Header, Kind, payload_bytes, unpack_header
from switchgnn.host.wire.link import Link, Traffic
from switchgnn.lab.virtual.byzantine import Shot
from switchgnn.lab.virtual.network import VERSION_IHL_AT
from tests.fuzz.packets import PING_MARK, ping
from tests.fuzz.world import World


class WrappedLink(Link):
    def __init__(self, link: Link) -> None:
        self.link = link

    @property
    def name(self) -> str:
        return self.link.name

    @property
    def traffic(self) -> Traffic:
        return self.link.traffic

    def send(self, frame: bytes | memoryview) -> None:
        self.link.send(frame)

    def receive(self, seconds: float) -> memoryview | None:
        return self.link.receive(seconds)

    def close(self) -> None:
        self.link.close()


class FiringLink(WrappedLink):
    """Fires a volley when the worker sends and the last volley is through the switch.

    Attributes:
        round: the round that is exchanged.
        fired: shots that were sent.
    """

    def __init__(
        self,
        link: Link,
        ears: Link,
        mac: str,
        shots: Sequence[Shot],
        volley: int,
        session: int,
    ) -> None:
        super().__init__(link)
        self._ears = ears
        self.round = 1
        self._session = session
        self.fired = 0
        self._mac = mac
        self._shots = shots
        self._volley = volley
        self._waiting = False

    @property
    def empty(self) -> bool:
        return self.fired >= len(self._shots) and not self._waiting

    def send(self, frame: bytes | memoryview) -> None:
        self.link.send(frame)
        if self._waiting or self.empty:
            return
        for shot in self._shots[self.fired : self.fired + self._volley]:
            self.link.send(shot.aim(self._session, self.round))
            self.fired += 1
        self.link.send(ping(self._mac, self.fired))
        self._waiting = True

    def receive(self, seconds: float) -> memoryview | None:
        if self._ears is not self.link and self._ears.receive(0.0) is not None:
            self._waiting = False
        frame = self.link.receive(seconds)
        while frame is not None and PING_MARK in bytes(frame[:64]):
            self._waiting = False
            frame = self.link.receive(0.0)
        return frame


class LyingLink(WrappedLink):
    """Sends wrong features before the right ones, and recalls and fetches at random.

    All of it is what the worker may say: of its own vertices, where the run is. Groups are
    right, so that the exchange goes on.
    """

    def __init__(
        self, link: Link, world: World, worker: int, addresses: Addresses, seed: int
    ) -> None:
        super().__init__(link)
        self.lies = 0
        self._random = random.Random(seed)
        self._addresses = addresses
        self._own = [key for key, (owner, _) in sorted(world.facts.sums.items()) if owner == worker]
        self._vertices = sorted(world.facts.owner)

    def send(self, frame: bytes | memoryview) -> None:
        header = unpack_header(frame)
        if header is not None and header.kind is Kind.FEATURE and not header.resend:
            for lie in self._lies(header):
                self.link.send(self._addresses.frame(lie))
                self.lies += 1
        self.link.send(frame)

    def _lies(self, header: Header) -> Iterator[bytes]:
        draw = self._random
        if draw.random() < 0.3:
            yield header.pack(draw.randbytes(payload_bytes(header.fragment)))
        block, vertex = draw.choice(self._own)
        if block == header.block_id and draw.random() < 0.2:
            kind = Kind.FETCH if draw.random() < 0.05 else Kind.RECALL
            source = draw.choice(self._vertices)
            asking = header._replace(kind=kind, src_id=source, dst_id=vertex, count=0, echo=False)
            yield asking.pack(b"")


def speaks_for(world: World, worker: int, frame: bytes) -> bool:
    """Return whether a switch may accept a frame from this worker."""
    if len(frame) < BODY_AT:
        return False
    # The switch does not look at the version of IPv4.
    header = unpack_header(frame[:VERSION_IHL_AT] + b"\x45" + frame[VERSION_IHL_AT + 1 :])
    if header is None:
        return False
    if header.kind is Kind.FEATURE:
        return world.facts.owner.get(header.src_id) == worker
    if header.kind in (Kind.RECALL, Kind.FETCH):
        return world.facts.sums.get((header.block_id, header.dst_id), (None, 0))[0] == worker
    return header.kind in (Kind.DONE, Kind.NOTICE) and header.src_id == worker
