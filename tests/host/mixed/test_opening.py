# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What is checked before a worker with both parts sends anything."""

from dataclasses import replace

import numpy as np
import pytest

from switchgnn.host import mixed as transport
from switchgnn.host.errors import LinkError, TransportError
from switchgnn.host.innetwork.transport import InNetworkTransport
from switchgnn.host.mixed import MixedTransport, left_schedules, open_switch, write_left_schedules
from switchgnn.host.pace import Pace
from switchgnn.host.registry import SWITCH, TRANSPORTS
from switchgnn.host.transport import WorkerEnd
from switchgnn.planner import build_plan, load_graph, write_plan
from switchgnn.planner.direction import Direction
from switchgnn.topologies.free_ports import free_udp_addresses
from tests.host.addresses import ADDRESSES
from tests.host.direct.crew import stations

WORKERS = 2


def plan_of(graph, left):
    return build_plan(
        *(graph,), workers=WORKERS, slots=64, program="ab" * 32, directions="both", left=left
    )


@pytest.fixture
def graph():
    return load_graph("karate")


@pytest.fixture
def plan(graph):
    return plan_of(graph, np.arange(graph.vertices) % 2 == 0)


@pytest.fixture
def end(graph, plan, tmp_path):
    write_plan(plan, tmp_path / "plan")
    write_left_schedules(
        graph, plan, [tmp_path / f"{worker}.safetensors" for worker in range(WORKERS)]
    )
    here, there = free_udp_addresses(2)
    return WorkerEnd(
        *(0, WORKERS, 17, Pace(), f"udp:{here}:{there}", "", ADDRESSES, stations(WORKERS)),
        plan=tmp_path / "plan",
        session=1,
        schedule=tmp_path / "0.safetensors",
        sampling=1.0,
        seed=0,
    )


def test_both_parts_are_opened_where_something_is_left(end):
    with open_switch(end) as opened:
        assert type(opened) is MixedTransport
        assert sum(opened.expected_traffic(8, Direction.BACKWARD)) > 0


def test_nothing_is_added_where_nothing_is_left(end, graph, tmp_path, monkeypatch):
    write_plan(plan_of(graph, None), tmp_path / "plan")
    asked = []
    real = WorkerEnd.open_link
    monkeypatch.setattr(
        WorkerEnd, "open_link", lambda self, *which: asked.append(which) or real(self, *which)
    )
    with open_switch(replace(end, schedule=None)) as opened:
        assert type(opened) is InNetworkTransport
    assert asked == [(253,)]


def test_a_worker_without_its_schedule_is_refused(end):
    with (
        pytest.raises(TransportError, match="Worker 0 needs a schedule"),
        open_switch(replace(end, schedule=None)),
    ):
        pass


def test_a_schedule_of_another_plan_is_refused(end, graph, plan, tmp_path):
    other = plan_of(graph, np.arange(graph.vertices) % 3 == 0)
    paths = [tmp_path / f"{worker}.safetensors" for worker in range(WORKERS)]
    write_left_schedules(graph, other, paths)
    with pytest.raises(TransportError, match="does not make the forward sums"), open_switch(end):
        pass
    write_left_schedules(graph, plan, paths[::-1])
    with pytest.raises(TransportError, match="worker 0 does not make"), open_switch(end):
        pass


@pytest.mark.parametrize(("mtu", "longest"), [("1500", 1500), ("100", 174)])
def test_a_link_must_take_the_longest_frames_of_both(end, monkeypatch, mtu, longest):
    asked = []
    monkeypatch.setattr(transport, "check_packets_fit", lambda *what: asked.append(what))
    nobody = replace(end, link="eth:nobody", mtu=mtu)
    with pytest.raises(LinkError), open_switch(nobody):
        pass
    assert asked[0][0] == "eth:nobody"
    assert longest - 4 < asked[0][1] <= longest


def test_workers_of_other_schedules_do_not_take_each_others_rows(graph, plan):
    left = {direction: plan.left(direction) for direction in Direction}
    assignment = plan.assignment
    same = left_schedules(graph, assignment, WORKERS, left)
    left[Direction.BACKWARD] = ~left[Direction.BACKWARD]
    other = left_schedules(graph, assignment, WORKERS, left)
    assert len({each.forward.digest.tobytes() for each in same}) == 1
    assert same[0].forward.digest.tobytes() == same[0].backward.digest.tobytes()
    assert same[0].forward.digest.tobytes() != other[0].forward.digest.tobytes()


def test_only_plans_of_the_switch_leave_anything():
    assert [each for each in TRANSPORTS if each.write_left] == [SWITCH]
