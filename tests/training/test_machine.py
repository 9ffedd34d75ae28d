"""Workers that share a machine: sums in its memory, their failures, and whole trainings."""

import json
import os
import signal
import socket
from contextlib import contextmanager
from threading import Event
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

import torch

from switchgnn.base.errors import SwitchGNNError
from switchgnn.host.transport import NO_TRAFFIC
from switchgnn.planner import graph_from_edges
from switchgnn.planner.direction import Direction
from switchgnn.training import load_dataset, partition_dataset
from switchgnn.training.errors import DatasetError, LostWorkerError
from switchgnn.training.machine import Machine, MachineTransport
from switchgnn.training.partition import machines_of, split_machines
from tests.host.direct.crew import together
from tests.support.commands import switchgnn
from tests.support.speed import seconds_here
from tests.training.gathering import Gathering
from tests.training.helpers import refusal


@contextmanager
def processes(number, first=0, limit=60):
    """Yield the processes of a machine, all in this one."""
    files = [os.memfd_create("test") for _ in range(2)]
    ends = {
        first + rank: socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for rank in range(1, number)
    }
    peers = [{worker: one for worker, (one, _) in ends.items()}]
    peers += [{first: other} for _, other in ends.values()]
    machines = [
        Machine(first + rank, number, own, [os.dup(file) for file in files], limit=limit)
        for rank, own in enumerate(peers)
    ]
    try:
        yield machines
    finally:
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
    directions = (Direction.FORWARD, Direction.BACKWARD)
    steps = [
        (random.random((vertices, width), dtype=np.float32), direction)
        for width in (3, 200, 5)
        for direction in directions
    ]
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


def test_numbers_of_any_type_are_added_up_in_the_order_of_the_processes():
    with processes(3) as machines:

        def work(rank):
            sums = []
            for dtype in (torch.float32, torch.float64, torch.bfloat16):
                values = torch.tensor([[0.1 * rank, 1.0], [2.0, 3.0]], dtype=dtype)
                machines[rank].add(lambda total: total.mul_(10), values)
                sums.append(values)
            return sums

        for sums in together(work, 3):
            for each in sums:
                own = [torch.tensor(0.1 * rank, dtype=each.dtype) for rank in range(3)]
                expected = [[float(10 * sum(own)), 30.0], [60.0, 90.0]]
                assert each.tolist() == expected


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
            if rank == gone:
                machines[rank].close(error)
                machines[rank] = SimpleNamespace(close=lambda: None)
                return None
            with pytest.raises(LostWorkerError) as lost:
                machines[rank].add(lambda _: None, torch.ones(3))
            machines[rank].close(lost.value)
            machines[rank] = SimpleNamespace(close=lambda: None)
            return str(lost.value)

        said = f"Worker {gone} has " + ("ended" if error is None else "failed: Out of paper.")
        for rank, sentence in enumerate(together(work, 3)):
            assert rank == gone or sentence.startswith(said)


def test_a_silent_process_and_other_calls_are_refused():
    with processes(2, limit=0.2) as machines:
        with refusal("Worker 1 has said nothing"):
            machines[0].add(lambda _: None, torch.ones(1))
        machines[1]._peers[0].send(b"adds up 2 numbers of torch.float32")
        with refusal("Worker 1 adds up 2 numbers of torch.float32 where worker 0 adds up 3"):
            machines[0].add(lambda _: None, torch.ones(3))


def test_machines_that_are_not_possible_are_refused():
    with refusal("5 workers cannot be 2 on each machine", DatasetError):
        machines_of(5, 2)
    with refusal("Machine 1 holds 1 vertices, too few for its 2 workers", DatasetError):
        split_machines(load_dataset("karate").graph, np.arange(34) // 33, 2, 0)


SHARED = (
    "train",
    "--workers",
    4,
    "--workers-per-machine",
    2,
    "--fabric",
    "loopback",
    "--dropout",
    0,
)


def trained(*words):
    result = switchgnn(*SHARED, "--json", *words, seconds=300)
    assert result.returncode == 0, result.stderr[-2000:]
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    return {line["transport"]: line for line in lines if line["event"] == "finished"}


@pytest.mark.whole
@pytest.mark.parametrize("model", ["gcn", "sage"])
def test_they_train_like_one_process_and_share_a_link(model):
    names = ("switch", "host", "host-partial", "local")
    over = [word for name in names for word in ("--transport", name)]
    reports = trained("--data", "digits", "--model", model, "--epochs", 5, *over)
    alone = reports.pop("local")["losses"]
    for report in reports.values():
        assert report["losses"] == pytest.approx(alone, rel=3e-6)
        assert (report["workers"], len(report["bytes_per_link"])) == (4, 2)
        links, plan = report["bytes_per_link"], report["expected_bytes_per_link"]
        both = [sum(each["up"] + each["down"] for each in way) for way in (links, plan)]
        assert 0 < both[1] <= both[0] <= 1.1 * both[1]


MODEL = """
import os
from torch_geometric.nn import GCN

class Net(GCN):
    def forward(self, *words, **more):
        self.calls = getattr(self, "calls", 0) + 1
        if self.calls == 3 and os.environ["RANK"] == "3":
            os.kill(os.getpid(), 9)
        return super().forward(*words, **more)

def make(features, classes):
    return Net(features, 8, 2, classes)
"""


@pytest.mark.whole
def test_a_killed_worker_ends_the_training(tmp_path):
    (tmp_path / "net.py").write_text(MODEL)
    model = ("--model", f"{tmp_path}/net.py:make", "--unchecked", "--transport", "host")
    result = switchgnn(*SHARED, "--data", "karate", *model, seconds=100, scratch=tmp_path)
    assert result.returncode == 2
    last = result.stderr.strip().splitlines()[-1]
    assert "Worker 3" in last
    assert f"signal {int(signal.SIGKILL)}" in last or "has ended" in last
