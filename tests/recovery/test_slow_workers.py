# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A worker that is slow or has little room is waited for, and what is dropped is sent again."""

import socket
import struct
import time
from collections import deque
from contextlib import ExitStack

import numpy as np
import pytest

from switchgnn.host.direct import PROTOCOL as DIRECT
from switchgnn.host.direct import DirectTransport, copy_schedules
from switchgnn.host.pace import Pace
from switchgnn.host.wire.header import KIND_AT, KIND_MASK, Kind
from switchgnn.host.wire.link import WrappedLink
from switchgnn.planner.direction import Direction
from tests.host.direct.crew import exchange, parts_of, stations, wrong
from tests.recovery.conftest import BEDS, WORKERS, made_bed
from tests.support.fabrics import PATIENT, Team, bed
from tests.support.markers import TARGETS
from tests.support.speed import pace_here

SLOW = 3
# One block, with some fifty sums for each worker.
ONE_BLOCK = {"graph": "random:200:600:1", "slots": 512}


class SlowSums(WrappedLink):
    """A link that delivers at most `per_second` sums per second, and all other frames at once.

    The other workers have what they need of its worker, and wait for it in the barrier.
    """

    def __init__(self, link, per_second):
        super().__init__(link)
        self._seconds = 1 / per_second
        self._held = deque()
        self._next = 0.0

    def receive(self, seconds):
        until = seconds + time.monotonic()
        while True:
            now = time.monotonic()
            if self._held and now >= self._next:
                self._next = now + self._seconds
                return memoryview(self._held.popleft())
            end = min(until, self._next) if self._held else until
            frame = self._link.receive(max(0.0, end - now))
            if frame is not None and frame[KIND_AT] & KIND_MASK != Kind.SUM:
                return frame
            if frame is not None:
                self._held.append(bytes(frame))
            elif time.monotonic() >= until:
                return None


@pytest.mark.parametrize("which", BEDS)
def test_a_slow_worker_is_waited_for(which, tmp_path):
    """The block takes twice the patience; a leaf forwards the heartbeats."""
    patience, ended = 1.0, []
    with made_bed(which, tmp_path, **ONE_BLOCK) as made, ExitStack() as stack:

        def link(worker):
            opened = made.link(worker)
            return SlowSums(opened, 25 / patience) if worker == SLOW else opened

        made.install()
        began = time.monotonic()
        note = lambda *_: ended.append(time.monotonic())  # noqa: E731
        team = Team(made, stack, pace=Pace(timeout=patience), on_block=note, link=link)
        assert team.run(1, width=3) == 0, team.errors
    assert min(ended) - began > 1.5 * patience


# The kernel makes it the least that it allows, room for two frames or three.
SMALLEST = 1
# https://man7.org/linux/man-pages/man7/sock_diag.7.html, SK_MEMINFO_DROPS.
SO_MEMINFO, MEMINFO_WORDS, MEMINFO_DROPS = 55, 9, 8


class Cramped:
    """Opens links with the smallest buffers; `dropped` counts the overflow."""

    def __init__(self, made):
        self._made, self._sockets = made, []

    def link(self, worker, *protocol):
        link = self._made.link(worker, *protocol)
        for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            link._socket.setsockopt(socket.SOL_SOCKET, buffer, SMALLEST)
        self._sockets.append(link._socket)
        return link

    def dropped(self):
        size = struct.calcsize(f"{MEMINFO_WORDS}I")
        told = [each.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, size) for each in self._sockets]
        return sum(struct.unpack(f"{MEMINFO_WORDS}I", each)[MEMINFO_DROPS] for each in told)


@pytest.fixture(scope="module", params=TARGETS)
def made(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bed")
    with bed(request.param, WORKERS, folder, graph="random:200:800:1") as each:
        yield each


def test_sums_of_the_switch(made):
    cramped = Cramped(made)
    with ExitStack() as stack:
        made.install()
        team = Team(made, stack, link=cramped.link)
        assert team.run(2) == 0
        assert not team.errors, team.errors
        assert cramped.dropped() > 0


def test_sums_between_hosts(made):
    cramped, assignment = Cramped(made), made.plan.assignment
    features = np.random.default_rng(1).standard_normal((made.graph.vertices, 33), dtype=np.float32)
    with ExitStack() as stack:
        made.install()
        transports = [
            DirectTransport(
                schedule,
                stack.enter_context(cramped.link(schedule.worker, DIRECT)),
                stations(WORKERS),
                pace=pace_here(PATIENT),
            )
            for schedule in copy_schedules(made.graph, assignment, WORKERS)
        ]
        calls = [(features, Direction.FORWARD, False)]
        (got,) = exchange(transports, parts_of(assignment, WORKERS), calls)
        assert cramped.dropped() > 0
        assert sum(each.counters.data_resent for each in transports) > 0
    assert wrong(made.graph, assignment, features, got) == 0
