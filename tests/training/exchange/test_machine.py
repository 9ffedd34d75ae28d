"""Workers that share a machine: sums in its memory, their failures, and whole trainings."""

import json
import os
import socket
from contextlib import contextmanager
from itertools import product
from threading import Event
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from switchgnn.base.errors import SwitchGNNError
from switchgnn.host.links.transport import NO_TRAFFIC
from switchgnn.planner import Direction, graph_from_edges
from switchgnn.training import load_dataset, partition_dataset
from switchgnn.training.base.errors import LostWorkerError
from switchgnn.training.data.partition import split_machines
from switchgnn.training.exchange.machine import Machine, MachineTransport
from tests.host.direct.crew import together
from tests.support.commands import switchgnn
from tests.support.kept_logs import take_kept_logs
from tests.support.speed import seconds_here
from tests.training.gathering import Gathering
from tests.training.helpers import refusal


@contextmanager
def processes(number, first=0, limit=60):
    """Yield the processes of a machine, all in this one."""
    files = [os.memfd_create("test") for _ in range(2)]
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(1, number)]
    peers = [{first + rank: one for rank, (one, _) in enumerate(pairs, 1)}]
    peers += [{first: other} for _, other in pairs]
    machines = [
        Machine(first + rank, number, own, [os.dup(file) for file in files], limit=limit)
        for rank, own in enumerate(peers)
    ]
    yield machines
    for each in (*files, *machines):
        os.close(each) if isinstance(each, int) else each.close()


def part_of(graph, worker_of, worker, per_machine):
    """What a transport needs of a partition, edge by edge."""
    machine = worker // per_machine
    there = [v for v in range(graph.vertices) if worker_of[v] // per_machine == machine]
    ends = [(worker_of[u], worker_of[v], u, v) for u, v in zip(*graph.edges(), strict=True)]
    beside = [
        (there.index(u), there.index(v))
        for a, b, u, v in ends
        if a != b and worker in (a, b) and a // per_machine == b // per_machine == machine
    ]
    seats = np.array([worker_of[v] % per_machine for v in there])
    return SimpleNamespace(
        machine=seats,
        place=np.flatnonzero(seats == worker % per_machine),
        beside=np.array(beside, dtype=np.int64).reshape(-1, 2).T,
    )


def test_sums_are_those_over_all_other_workers():
    # Directed, with vertices that have no edge; worker 4 has no vertex. Wider rows need more
    # memory, and narrower ones less of it.
    random, vertices, each = np.random.default_rng(1), 60, 3
    graph = graph_from_edges(
        *random.integers(0, vertices - 8, (2, 400)), name="drawn", vertices=vertices, directed=True
    )
    worker_of = random.choice([0, 1, 2, 3, 5], vertices)
    source, destination = graph.edges()
    remote = worker_of[source] != worker_of[destination]
    matrix = np.zeros((vertices, vertices))
    matrix[destination[remote], source[remote]] = 1
    between = Gathering(graph, worker_of // each).transports
    for end in between:
        end.attend = lambda until: None
    ways = product((3, 200, 5), Direction)
    steps = [(random.random((vertices, width), dtype=np.float32), way) for width, way in ways]
    with processes(each) as one, processes(each, each) as other:
        machines = [*one, *other]

        def work(worker):
            part = part_of(graph, worker_of, worker, each)
            end = between[worker // each] if machines[worker].leads else None
            transport, own = MachineTransport(machines[worker], part, end), worker_of == worker
            assert end is not None or transport.traffic == NO_TRAFFIC
            return [transport.aggregate(rows[own], way) for rows, way in steps]

        found = together(work, 2 * each)
    for number, (rows, direction) in enumerate(steps):
        expected = (matrix if direction is Direction.FORWARD else matrix.T) @ rows
        for worker in range(2 * each):
            np.testing.assert_allclose(found[worker][number], expected[worker_of == worker], 1e-5)


@pytest.mark.parametrize("undirected", [True, False])
def test_a_partition_has_the_edges_to_others_of_its_machine(undirected):
    data = load_dataset("karate" if undirected else "random:60:300:1")
    machine = (np.arange(data.vertices) % 2).astype(np.int32)
    worker_of = split_machines(data.graph, machine, 3, seed=4)
    assert (worker_of // 3 == machine).all()
    assert (worker_of == split_machines(data.graph, machine, 3, seed=4)).all()
    for part in partition_dataset(data, worker_of, 3):
        expected = part_of(data.graph, worker_of, part.worker, 3)
        assert (part.machine == expected.machine).all()
        assert (part.place == expected.place).all()
        assert sorted(part.beside.T.tolist()) == sorted(expected.beside.T.tolist())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_numbers_are_added_up_in_the_order_of_the_processes(dtype):
    own = [torch.tensor([[0.1 * rank, 1.0], [2.0, 3.0]], dtype=dtype) for rank in range(3)]
    expected = 10 * sum(own)
    with processes(3) as machines:
        together(lambda rank: machines[rank].add(lambda total: total.mul_(10), own[rank]), 3)
    assert all(torch.equal(each, expected) for each in own)


def test_results_stay_while_others_begin_the_next_step():
    written = Event()
    with processes(2) as machines:

        def work(rank):
            machine = machines[rank]
            values = machine.shared((2,), torch.float32)
            values[rank] = rank + 1
            with machine.step("one"):
                pass
            if rank == 0:
                machine.shared((2,), torch.float32)[:] = 7
                written.set()
            assert written.wait(seconds_here(60))
            return values.tolist()

        assert together(work, 2) == [[1, 2], [1, 2]]


@pytest.mark.parametrize("gone", [0, 1])
@pytest.mark.parametrize("error", [None, SwitchGNNError("Out of paper.")])
def test_a_process_that_ends_is_named_to_all_others(gone, error):
    with processes(3) as machines:

        def work(rank):
            machines[rank].add(lambda _: None, torch.ones(3))
            failed = error
            if rank != gone:
                with pytest.raises(LostWorkerError) as lost:
                    machines[rank].add(lambda _: None, torch.ones(3))
                failed = lost.value
            machines[rank].close(failed)
            return str(failed)

        sentences = together(work, 3)
        machines.clear()
        said = f"Worker {gone} has " + ("ended" if error is None else "failed: Out of paper.")
        assert all(each.startswith(said) for each in sentences[:gone] + sentences[gone + 1 :])


def test_a_silent_process_and_other_calls_are_refused():
    with processes(2, limit=0.2) as machines:
        with refusal("Worker 1 has said nothing"):
            machines[0].add(lambda _: None, torch.ones(1))
        machines[1]._peers[0].send(b"adds up 2 numbers of torch.float32")
        with refusal("Worker 1 adds up 2 numbers of torch.float32 where worker 0 adds up 3"):
            machines[0].add(lambda _: None, torch.ones(3))


def test_an_exchange_may_take_longer_than_the_limit_of_a_step():
    with processes(2, limit=seconds_here(1)) as machines:
        wait = Event().wait
        together(lambda rank: machines[rank].add(lambda _: wait(seconds_here(2)), torch.ones(1)), 2)


def test_a_machine_with_too_few_vertices_is_refused():
    data = load_dataset("karate")
    with refusal("gives no vertex to worker"):
        next(partition_dataset(data, split_machines(data.graph, np.arange(34) // 33, 2, 0), 2))


SHARED = "train --workers 4 --per-machine 2 --fabric loopback --dropout 0 --data"


@pytest.mark.whole
@pytest.mark.parametrize("model", ["gcn", "sage"])
def test_they_train_like_one_process_and_share_a_link(model):
    over = "--transport switch --transport host --transport host-partial --transport local"
    words = f"{SHARED} digits --model {model} --epochs 5 --json {over}"
    result = switchgnn(*words.split(), seconds=300)
    assert result.returncode == 0, result.stderr[-2000:]
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    *reports, alone = [line for line in lines if line["event"] == "finished"]
    assert len(reports) == 3
    for report in reports:
        assert report["losses"] == pytest.approx(alone["losses"], rel=3e-6)
        links, plan = report["bytes_per_link"], report["expected_bytes_per_link"]
        assert (report["workers"], len(links)) == (4, 2)
        real, planned = (sum(each["up"] + each["down"] for each in way) for way in (links, plan))
        assert 0 < planned <= real <= 1.1 * planned


MODEL = """
import os
from torch_geometric.nn import GCN

class Net(GCN):
    calls = 0
    def forward(self, *words, **more):
        self.calls += 1
        if self.calls == 3 and os.environ.get("RANK") == "3":
            os.kill(os.getpid(), 9)
        return super().forward(*words, **more)

def make(features, classes):
    return Net(features, 8, 2, classes)
"""


@pytest.mark.whole
def test_a_killed_worker_ends_the_training_and_leaves_nothing(tmp_path):
    (tmp_path / "net.py").write_text(MODEL)
    (scratch := tmp_path / "scratch").mkdir()
    words = f"{SHARED} karate --model {tmp_path}/net.py:make --unchecked --transport host"
    result = switchgnn(*words.split(), scratch=scratch)
    assert result.returncode == 2
    assert "Worker 3 " in result.stderr.splitlines()[-1]
    take_kept_logs(scratch)
    assert list(scratch.iterdir()) == []
