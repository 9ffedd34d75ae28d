"""Rows of any vertices, which workers fetch from each other."""

import copy
import threading
from contextlib import nullcontext

import numpy as np
import pytest

pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

import torch
import torch_geometric.nn as pyg

from switchgnn.training.base.errors import TrainingError
from switchgnn.training.base.steps import SharedSteps
from switchgnn.training.data.partition import partition_dataset
from switchgnn.training.layers.rows import VertexRows, over_gloo
from tests.support.speed import seconds_here
from tests.training.gathering import in_threads
from tests.training.helpers import refusal
from tests.training.layers.test_layers import NARROW, make_data, whole_edges
from tests.training.layers.test_norms import WORKERS, assigned
from tests.training.layers.test_uses import Net, off, step, together
from tests.training.test_wrap import workers_run

DATA = make_data(3, directed=False)
V = DATA.vertices


class Posts:
    """The exchange of workers that are threads; keeps how many rows each call brings."""

    def __init__(self):
        self.barrier = threading.Barrier(WORKERS, timeout=seconds_here(60))
        self.sent = [[]] * WORKERS
        self.arrived = [[] for _ in range(WORKERS)]

    def of(self, number):
        def exchange(rows, give, take):
            self.sent[number] = rows.split(give)
            self.barrier.wait()
            found = [each[number].clone() for each in self.sent]
            assert [len(each) for each in found] == take
            self.barrier.wait()
            self.arrived[number].append(sum(take))
            return torch.cat(found)

        return exchange


def in_turn(rows, h, ids, shares, steps):
    """Return rows, the gradient of a loss of them, and that of a number that depends on it."""
    found = [rows(h, each) for each in ids]
    loss = sum((a.tanh().square() * b).sum() for a, b in zip(found, shares, strict=True))
    (first,) = torch.autograd.grad(loss, h, create_graph=True)
    (second,) = torch.autograd.grad((first * steps).sum(), h)
    return found, first.detach(), second


@pytest.mark.parametrize(
    ("dtype", "shape", "tolerance"),
    [
        (torch.float32, (6,), 1e-5),
        (torch.float64, (2, 5), 1e-13),
        # 8 bits, in sums in another order.
        (torch.bfloat16, (), 0.03),
    ],
)
def test_rows_and_two_derivatives_are_those_of_one_process(dtype, shape, tolerance):
    parts = list(partition_dataset(DATA, assigned(V)))
    torch.manual_seed(1)
    # Many with repetitions, none, and vertices of the worker itself.
    ids = [torch.randint(V, (50,)), torch.randint(V, (0,)), torch.tensor([V - 1] * 3)]
    h, steps = (torch.randn(V, *shape).to(dtype) for _ in range(2))
    shares = [torch.randn(len(each), *shape).to(dtype) for each in ids]
    whole = h.clone().requires_grad_()
    expected = in_turn(lambda h, ids: h[ids], whole, ids, shares, steps)
    posts = Posts()
    assert parts[2].vertices.tolist() == [V - 1]

    def work(number):
        rows = VertexRows(parts[number], posts.of(number))
        own, here = torch.from_numpy(parts[number].vertices), slice(number, number + 1)
        return in_turn(rows.take, h[own].requires_grad_(), ids[here], shares[here], steps[own])

    for number, found in enumerate(in_threads(work, WORKERS, posts.barrier)):
        assert torch.equal(found[0][0], expected[0][number])
        for mine, whole in zip(found[1:], expected[1:], strict=True):
            off = (mine - whole[parts[number].vertices]).abs().max()
            assert off <= tolerance * whole.abs().max()
        # Places twice, the number of ids, ids, rows; each id travels once.
        assert posts.arrived[number][4] == len(ids[number].unique())


def test_a_worker_takes_rows_of_any_type_by_ids_of_any_shape():
    posts, ids = Posts(), torch.randint(V, (2, 3, 4))

    def work(worker):
        worker._rows.exchange, own = posts.of(worker.number), worker.data.n_id
        return worker.rows(own % 3 == 0, ids[:, : worker.number]), worker.rows(own, ids[0, 0, 0])

    for number, (flags, single) in enumerate(workers_run(DATA, work)):
        assert torch.equal(flags, ids[:, :number] % 3 == 0)
        assert torch.equal(single, ids[0, 0, 0])


def alone():
    (part,) = partition_dataset(DATA, np.zeros(V, np.int64))
    return VertexRows(part, over_gloo(nullcontext, SharedSteps()))


def test_one_worker_has_all_rows():
    h = torch.arange(2.0 * V).view(V, 2).requires_grad_()
    rows = alone().take(h, torch.tensor([3, 3, V - 1]))
    rows.sum().backward()
    assert rows[:, 0].tolist() == [6, 6, 2 * V - 2]
    assert h.grad[[3, 4, V - 1]].tolist() == [[2, 2], [0, 0], [1, 1]]


@pytest.mark.parametrize(
    ("rows", "ids", "words"),
    [
        (V, [0, V], f"asked for vertex {V}, and the graph has the vertices 0 to {V - 1}"),
        (V, [-1, 0], "asked for vertex -1"),
        (V, [0.0], "the ids of vertices as int64, not torch.float32"),
        (V - 1, [0], f"each of the worker's {V} vertices, and the tensor is [{V - 1}, 2]"),
    ],
)
def test_what_is_no_row_is_refused(rows, ids, words):
    with refusal(words, TrainingError):
        alone().take(torch.ones(rows, 2), torch.tensor(ids))


COPYING = (pyg.GATConv, pyg.SGConv)


@pytest.mark.parametrize("directed", [False, True])
def test_layers_with_copies_of_rows_compute_what_they_do_in_one_process(directed):
    data, posts = make_data(5, directed=directed), Posts()
    parts = list(partition_dataset(data, assigned(V), incoming=True))
    torch.manual_seed(4)
    alone, targets = Net(*COPYING), torch.randn(V, NARROW)
    state = copy.deepcopy(alone.state_dict())
    expected = step(alone, torch.from_numpy(data.features), whole_edges(data), targets)
    more = {"state": state, "rows_of": lambda number: VertexRows(parts[number], posts.of(number))}
    assert off(expected, together(lambda: Net(*COPYING), step, data, targets, **more)) < 2e-5


def test_without_labels_a_mean_needs_a_count():
    def work(worker):
        worker.job.train = 0
        with refusal("to divide by: give count.", TrainingError):
            worker.mean(torch.ones(()))
        return float(worker.mean(torch.tensor(6.0), count=4))

    assert workers_run(DATA, work) == [1.5] * WORKERS
