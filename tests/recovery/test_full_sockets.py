# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Sockets that have room for a few frames: what the kernel drops there is sent again."""

import socket
import struct
from contextlib import ExitStack

import numpy as np
import pytest

from switchgnn.host.direct import PROTOCOL as DIRECT
from switchgnn.host.direct import DirectTransport, copy_schedules
from switchgnn.planner.direction import Direction
from tests.host.direct.crew import exchange, parts_of, stations, wrong
from tests.support.fabrics import PATIENT, Team, bed
from tests.support.markers import TARGETS, full
from tests.support.speed import pace_here

WORKERS = 4
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
        assert sum(each.tally.data_resent for each in transports) > 0
    assert wrong(made.graph, assignment, features, got) == 0
