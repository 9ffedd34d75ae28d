"""What workers are given, and what is checked before they send anything."""

from dataclasses import replace
from pathlib import Path as FilePath

import numpy as np
import pytest

from switchgnn.base.tasks import TaskError, task_from_json, task_to_json
from switchgnn.host import LinkError, Pace
from switchgnn.host.base.errors import ScheduleError, TransportError
from switchgnn.host.base.operations import Operation
from switchgnn.host.links.transport import LinkConfig, WorkerEnd
from switchgnn.host.paths import edges, transport
from switchgnn.host.paths.base import Path, one_path
from switchgnn.host.paths.edges import host_edges, write_edges
from switchgnn.host.paths.transport import PathsTransport, open_in_network, open_switch
from switchgnn.host.registry import AUTO, DEFAULT, OF_JOBS, TRANSPORTS, transport_kind
from switchgnn.host.worker import WorkerTask
from switchgnn.planner import Direction, build_plan, write_plan
from switchgnn.topologies.rpc_address import free_udp_addresses
from tests.host.addresses import ADDRESSES
from tests.host.direct.crew import stations


def test_names_and_labels_tell_transports_apart():
    assert len({each.name for each in TRANSPORTS}) == len(TRANSPORTS)
    assert len({each.label for each in TRANSPORTS}) == len(TRANSPORTS)
    assert DEFAULT is AUTO
    assert AUTO.name not in {each.name for each in TRANSPORTS}
    for each in TRANSPORTS:
        assert transport_kind(each.name) is each
    left_out = [each.name for each in (*TRANSPORTS, AUTO) if each not in OF_JOBS]
    assert left_out == ["switch-paper", "strawman", "local"]


WORKERS = 2
ENDS = {
    "worker": 0,
    "workers": WORKERS,
    "vertices": 17,
    "pace": Pace(),
    "link": "eth:nobody",
    "addresses": ADDRESSES,
    "stations": stations(WORKERS),
    "session": 1,
}


@pytest.mark.parametrize("kind", TRANSPORTS, ids=lambda kind: kind.name)
def test_what_a_worker_lacks_is_named(kind):
    end = WorkerEnd(**{**ENDS, "workers": 1})
    if not kind.networked:
        with kind.open(end) as transport:
            assert sum(transport.traffic) == 0
            rows = np.ones((17, 1), dtype=np.float32)
            found = [
                transport.aggregate(rows, Direction.FORWARD, operation=each)
                for each in (Operation.SUM, Operation.MAX, Operation.MIN)
            ]
        assert [set(each.ravel().tolist()) for each in found] == [{0.0}, {-np.inf}, {np.inf}]
        return
    needed = "plan" if kind.needs_plan else "schedule"
    with pytest.raises(TransportError, match=f"Worker 0 needs a {needed}"), kind.open(end):
        pass


TASK = WorkerTask(
    LinkConfig(
        worker=2,
        link="udp:127.0.0.1:1:127.0.0.1:2",
        addresses=ADDRESSES,
        stations=stations(2),
        plan=FilePath("plan"),
        session=3,
        faults="loss=0.1",
    ),
    features=FilePath("features.npy"),
    rounds=3,
    output=FilePath("sums.safetensors"),
    rounds_per_file=2,
    pace=Pace(window=5, timeout=7),
)


def test_a_task_in_json_is_the_task():
    text = task_to_json(TASK)
    assert "\n" not in text
    assert task_from_json(WorkerTask, text) == TASK


@pytest.mark.parametrize("text", ["", "[]", '{"colour": "red"}'])
def test_what_is_no_task_is_refused(text):
    with pytest.raises(TaskError, match="task cannot be read"):
        task_from_json(WorkerTask, text)


def plan_of(graph, left, **options):
    both = {"directions": "both", "left": left, **options}
    return build_plan(graph, workers=WORKERS, slots=64, program="ab" * 32, **both)


@pytest.fixture(scope="module")
def plan(graph):
    return plan_of(graph, np.arange(graph.vertices) % 2 == 0)


@pytest.fixture
def end(graph, plan, tmp_path):
    write_plan(plan, tmp_path / "plan")
    write_edges(graph, plan, [tmp_path / f"{worker}.safetensors" for worker in range(WORKERS)])
    here, there = free_udp_addresses(2)
    own = {"plan": tmp_path / "plan", "schedule": tmp_path / "0.safetensors"}
    return WorkerEnd(**{**ENDS, **own, "link": f"udp:{here}:{there}"})


@pytest.mark.parametrize(("lanes", "packet_bytes"), [(8, 78), (256, 1070)])
def test_a_link_must_take_the_widest_frames_of_the_plan(
    graph, tmp_path, monkeypatch, lanes, packet_bytes
):
    write_plan(plan_of(graph, None, lanes=lanes), tmp_path / "plan")
    asked = []
    monkeypatch.setattr(transport, "check_packets_fit", lambda *what: asked.append(what))
    end = WorkerEnd(**{**ENDS, "plan": tmp_path / "plan"})
    with pytest.raises(LinkError), open_in_network(end):
        pass
    assert asked == [("eth:nobody", packet_bytes)]


def test_both_parts_are_opened_where_something_is_left(end):
    with open_switch(end) as opened:
        assert type(opened) is PathsTransport
        assert sum(opened.expected_traffic(8, Direction.BACKWARD)) > 0


def test_nothing_is_added_where_nothing_is_left(end, graph, tmp_path, monkeypatch):
    write_plan(plan_of(graph, None), tmp_path / "plan")
    asked = []
    real = WorkerEnd.open_link
    monkeypatch.setattr(
        WorkerEnd, "open_link", lambda self, *which: asked.append(which) or real(self, *which)
    )
    with open_switch(replace(end, schedule=None)) as opened:
        assert not isinstance(opened, PathsTransport)
    assert asked == [(253,)]


def test_edges_of_another_plan_or_worker_are_refused(end, graph, plan, tmp_path, monkeypatch):
    paths = [tmp_path / f"{worker}.safetensors" for worker in range(WORKERS)]
    write_edges(graph, plan_of(graph, np.arange(graph.vertices) % 3 == 0), paths)
    with pytest.raises(ScheduleError, match="not those of worker 0"), open_switch(end):
        pass
    own = host_edges(graph, plan)[0]
    nobody = replace(own.edges, source=own.edges.source[::-1])
    monkeypatch.setattr(edges, "host_edges", lambda *_: [replace(own, edges=nobody)])
    write_edges(graph, plan, paths[:1])
    with pytest.raises(ScheduleError, match="not those of worker 0"), open_switch(end):
        pass


@pytest.mark.parametrize(("mtu", "longest"), [("1500", 1500), ("100", 174)])
def test_a_link_must_take_the_longest_frames_of_both(end, monkeypatch, mtu, longest):
    asked = []
    monkeypatch.setattr(transport, "check_packets_fit", lambda *what: asked.append(what))
    with pytest.raises(LinkError), open_switch(replace(end, link="eth:nobody", mtu=mtu)):
        pass
    assert asked[0][0] == "eth:nobody"
    assert longest - 4 < asked[0][1] <= longest


def test_workers_of_other_schedules_do_not_take_each_others_rows(graph, plan):
    same, other = (host_edges(graph, each) for each in (plan, plan_of(graph, None)))
    paths = one_path(plan.manifest, Path.HOST)
    made = [each.schedule(paths).forward.digest.tobytes() for each in (*same, other[0])]
    made.append(same[0].schedule(one_path(plan.manifest, Path.SWITCH)).forward.digest.tobytes())
    assert len(set(made[:WORKERS])) == 1
    assert len(set(made)) == 3
