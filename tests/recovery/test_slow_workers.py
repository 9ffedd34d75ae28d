"""A worker that has little room is waited for, and what is dropped is sent again."""

import socket
import struct
from contextlib import ExitStack

import numpy as np
import pytest

from switchgnn.host.direct import copy_schedules
from switchgnn.host.direct.frames import PROTOCOL as DIRECT
from switchgnn.host.direct.transport import DirectTransport
from switchgnn.planner.base.direction import Direction
from tests.host.direct.crew import exchange, parts_of, stations, wrong
from tests.recovery.conftest import WORKERS
from tests.support.fabrics import PATIENT, Team, bed
from tests.support.markers import TARGETS
from tests.support.speed import pace_here

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
