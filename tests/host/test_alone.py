# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What hosts alone would send is what their transports expect."""

import numpy as np
import pytest

from switchgnn.host import alone
from switchgnn.host.alone import Exchanges, HostTraffic, host_traffic
from switchgnn.host.direct import Framing, copy_schedules, partial_schedules
from switchgnn.host.pace import Pace
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.boundary import boundary_edges
from tests.host.direct.crew import on_hub, random_case

WORKERS = 4
# Wide enough for groups of eight frames of any MTU.
PACE = Pace(window=128)
MAKE = {"host": copy_schedules, "host-partial": partial_schedules}
EXCHANGES = [Exchanges(Direction.FORWARD, 33, 3), Exchanges(Direction.BACKWARD, 7, 2)]


@pytest.mark.parametrize("mtu", ["fragment", "200", "1500", "9000"])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_the_bytes_of_each_worker_are_those_that_its_transport_expects(mtu, directed):
    graph, assignment = random_case(200, 1500, WORKERS, seed=4, directed=directed)
    framing = Framing.parse(mtu)
    found = host_traffic(boundary_edges(graph, assignment), WORKERS, EXCHANGES, framing)
    assert found.keys() == MAKE.keys()
    for name, make in MAKE.items():
        transports = on_hub(make(graph, assignment, WORKERS), pace=PACE, framing=framing)
        expected = [
            [(one.times, each.expected_traffic(one.width, one.direction)) for one in EXCHANGES]
            for each in transports
        ]
        up = [sum(times * one.bytes_up for times, one in each) for each in expected]
        down = [sum(times * one.bytes_down for times, one in each) for each in expected]
        assert (found[name].up, found[name].down) == (up, down)
        assert str(found[name].mtu) == mtu
    assert sum(found["host-partial"].up) < sum(found["host"].up)


def test_between_leaves_counts_pairs_of_workers_on_two_leaves():
    traffic = HostTraffic(1500, np.arange(16).reshape(4, 4))
    pairs = [(0, 2), (0, 3), (1, 2), (1, 3), (2, 0), (2, 1), (3, 0), (3, 1)]
    assert traffic.between((0, 0, 1, 1)) == sum(4 * a + b for a, b in pairs)
    assert traffic.between((0, 0, 0, 0)) == 0


def test_planted_ways_are_found(monkeypatch):
    """A mistake: both send copies."""
    ways = dict.fromkeys(MAKE, alone.copies)
    monkeypatch.setattr(alone, "_WAYS", ways)
    with pytest.raises(AssertionError):
        test_the_bytes_of_each_worker_are_those_that_its_transport_expects("1500", directed=True)
