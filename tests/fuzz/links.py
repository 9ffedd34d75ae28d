# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Links on which other frames are sent than those of the worker."""

import random

from switchgnn.host.wire.header import BODY_AT, Kind, payload_bytes, unpack_header
from switchgnn.host.wire.link import Link
from tests.fuzz.frames import is_ping, ping
from tests.simulation.network import VERSION_IHL_AT

VOLLEY = 16
# Outcomes of contributions and questions; the workers here do not reduce.
OF_ALL_REDUCES = ("REDUCE_ADDED", "REDUCE_REPEATED", "REDUCE_STALE", "REDUCE_ASKED")
# Kinds that a worker may send in no other worker's name.
IN_ITS_OWN_NAME = (Kind.DONE, Kind.NOTICE, Kind.REDUCE, Kind.REDUCED, Kind.REDUCING)


class WrappedLink(Link):
    def __init__(self, link):
        self.link = link

    @property
    def name(self):
        return self.link.name

    @property
    def traffic(self):
        return self.link.traffic

    def send(self, frame):
        self.link.send(frame)

    def receive(self, seconds):
        return self.link.receive(seconds)

    def close(self):
        self.link.close()


class FiringLink(WrappedLink):
    """Fires a volley when the worker sends and the last volley is through the switch.

    Attributes:
        round: the round that is exchanged.
        fired: shots that were sent.
    """

    def __init__(self, field, worker, shots, *, end):
        """``end`` is where the shots are sent: the worker's own link, or another one."""
        super().__init__(field.links[worker])
        self.round = 1
        self.fired = 0
        self._out = field.links[end]
        self._mac = field.mac(end)
        self._session = field.session
        self._shots = shots
        self._waiting = False

    @property
    def empty(self):
        return self.fired >= len(self._shots) and not self._waiting

    def send(self, frame):
        self.link.send(frame)
        if self._waiting or self.empty:
            return
        for shot in self._shots[self.fired : self.fired + VOLLEY]:
            self._out.send(shot.aim(self._session, self.round))
            self.fired += 1
        self._out.send(ping(self._mac, self.fired))
        self._waiting = True

    def receive(self, seconds):
        if self._out is not self.link:
            while (frame := self._out.receive(0.0)) is not None:
                self._waiting = self._waiting and not is_ping(frame)
        frame = self.link.receive(seconds)
        while frame is not None and is_ping(frame):
            self._waiting = False
            frame = self.link.receive(0.0)
        return frame


def attack(field, firing):
    """Exchange until all shots are fired, or a worker has an error or a wrong sum."""
    team = field.team(firing)
    while not (firing.empty or team.errors or (team.round and team.wrong_rows())):
        firing.round = team.round + 1
        team.play()
    return team


class LyingLink(WrappedLink):
    """Sends wrong features before the right ones, and recalls and fetches at random.

    All of it is what the worker may say: of its own vertices, where the run is. Groups are
    right, so that the exchange goes on.
    """

    def __init__(self, field, worker, seed):
        super().__init__(field.links[worker])
        sums = field.world.facts.sums
        self.lies = 0
        self._random = random.Random(seed)
        self._addresses = field.addresses(worker)
        self._own = [key for key, (owner, _) in sorted(sums.items()) if owner == worker]
        self._vertices = sorted(field.world.facts.owner)

    def send(self, frame):
        header = unpack_header(frame)
        if header is not None and header.kind is Kind.FEATURE and not header.resend:
            for lie in self._lies(header):
                self.link.send(self._addresses.frame(lie))
                self.lies += 1
        self.link.send(frame)

    def _lies(self, header):
        draw = self._random
        if draw.random() < 0.3:
            yield header.pack(draw.randbytes(payload_bytes(header.fragment)))
        block, vertex = draw.choice(self._own)
        if block == header.block_id and draw.random() < 0.2:
            kind = Kind.FETCH if draw.random() < 0.05 else Kind.RECALL
            source = draw.choice(self._vertices)
            asking = header._replace(kind=kind, src_id=source, dst_id=vertex, count=0, echo=False)
            yield asking.pack(b"")


def forged_shots(field, generator, worker, count):
    """Shots that a switch must not accept from this worker."""
    shots = []
    while len(shots) < count:
        shot = generator.shot()
        if not _may_send(field.world, worker, shot.aim(field.session, 1)):
            shots.append(shot)
    return shots


def _may_send(world, worker, frame):
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
    return header.kind in IN_ITS_OWN_NAME and header.src_id == worker
