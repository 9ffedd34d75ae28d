# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A worker that is slow or has little room is waited for, and what is dropped is sent again.

With losses, and as much patience as users have, it is in tests/virtual/matrix.
"""

import socket
import struct
import time
from contextlib import ExitStack

import numpy as np
import pytest

from switchgnn.host.direct import PROTOCOL as DIRECT
from switchgnn.host.direct import DirectTransport, copy_schedules
from switchgnn.host.pace import Pace
from switchgnn.planner.direction import Direction
from switchgnn.topologies import Target
from tests.host.direct.crew import exchange, parts_of, stations, wrong
from tests.support.fabrics import PATIENT, Team, bed
from tests.support.leaf_spine_fabrics import leaf_spine_bed
from tests.support.markers import TARGETS, full
from tests.support.slow_sums import SlowSums
from tests.support.speed import pace_here

WORKERS = 4
SLOW = 3
# One block, with some fifty sums for each worker.
ONE_BLOCK = {"graph": "random:200:600:1", "slots": 512}


class SlowBed:
    """A bed with a worker that receives sums slowly."""

    def __init__(self, made, sums_per_second):
        self._made, self._rate = made, sums_per_second

    def link(self, worker):
        link = self._made.link(worker)
        return SlowSums(link, self._rate) if worker == SLOW else link

    def __getattr__(self, name):
        return getattr(self._made, name)


def check(made, *, patience):
    """Check that all sums are exact though the block takes twice the patience."""
    began, ended = time.monotonic(), []
    with ExitStack() as stack:
        made.install()
        team = Team(
            SlowBed(made, 25 / patience),
            stack,
            pace=Pace(timeout=patience),
            on_block=lambda *_: ended.append(time.monotonic()),
        )
        wrong = team.run(1, width=3)
    assert not team.errors, team.errors
    assert wrong == 0
    assert min(ended) - began > 1.5 * patience


@pytest.mark.parametrize("target", TARGETS)
def test_a_slow_worker_is_waited_for(target, tmp_path):
    with bed(target, WORKERS, tmp_path, **ONE_BLOCK) as made:
        check(made, patience=1.0)


def test_a_slow_worker_behind_another_leaf_is_waited_for(tmp_path):
    """Its leaf forwards its pulses."""
    with leaf_spine_bed(tmp_path, Target.EMBEDDED, workers=WORKERS, **ONE_BLOCK) as made:
        check(made, patience=1.0)


# The kernel makes it the least that it allows, room for two frames or three.
SMALLEST = 1
# https://man7.org/linux/man-pages/man7/sock_diag.7.html, SK_MEMINFO_DROPS.
SO_MEMINFO, MEMINFO_WORDS, MEMINFO_DROPS = 55, 9, 8


class CrampedBed:
    """A bed whose workers have the smallest buffers; `dropped` counts the overflow."""

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

    def __getattr__(self, name):
        return getattr(self._made, name)


@pytest.fixture(scope="module", params=TARGETS)
def made(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bed")
    with bed(request.param, WORKERS, folder, graph="random:200:800:1") as each:
        yield each


@pytest.mark.parametrize("rounds", [2, pytest.param(20, marks=full)])
def test_sums_of_the_switch(made, rounds):
    cramped = CrampedBed(made)
    with ExitStack() as stack:
        made.install()
        team = Team(cramped, stack)
        assert team.run(rounds) == 0
        assert not team.errors, team.errors
        assert cramped.dropped() > 0


@pytest.mark.parametrize("width", [33, pytest.param(512, marks=full)])
def test_sums_between_hosts(made, width):
    cramped, assignment = CrampedBed(made), made.plan.assignment
    features = np.random.default_rng(1).standard_normal(
        (made.graph.vertices, width), dtype=np.float32
    )
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
