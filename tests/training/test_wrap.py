"""Sums and means over vertices in a user's model, and which models a worker takes."""

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

import torch
from torch import nn
from torch_geometric.nn import GCNConv

from switchgnn.training.base.errors import UnsupportedLayerError
from switchgnn.training.data.partition import partition_dataset
from switchgnn.training.exchange.sums import RemoteSum
from switchgnn.training.joining import Joined
from switchgnn.training.script import Worker
from tests.support.speed import seconds_here
from tests.training.gathering import Gathering, in_threads
from tests.training.layers.test_layers import NARROW, WIDE, make_data, whole_edges
from tests.training.layers.test_norms import WORKERS, assigned
from tests.training.threads import ThreadSums


class Net(nn.Module):
    """Takes a mean and a sum over vertices, by functions that torch has for one process."""

    def __init__(self, mean, total):
        super().__init__()
        self.first, self.second = GCNConv(WIDE, 6), GCNConv(6, NARROW)
        self.mean, self.total = mean, total

    def forward(self, x, edges):
        h = self.first(x, edges)
        h = (h - self.mean(h)) * self.total(h.square()).sqrt()
        return self.second(h.tanh(), edges)


def mixing():
    return Net(lambda h: h.mean(0), lambda h: h.sum(0))


def workers_run(data, work, transports=None):
    """Return work(worker) of workers that are threads."""
    assignment = assigned(data.vertices)
    gathering, parts = Gathering(data.graph, assignment), list(partition_dataset(data, assignment))
    shared = (threading.Barrier(WORKERS, timeout=seconds_here(60)), [])
    job = SimpleNamespace(train=10, multilabel=False, vertices=data.vertices)
    transports = transports or gathering.transports

    def run(number):
        with RemoteSum(transports[number]) as remote:
            joined = Joined(job, Path(), parts[number], remote.transport, first=0, session=0)
            worker = Worker(joined, remote, seed=0)
            worker._sums = ThreadSums(shared, own=number == 0)
            worker._vertices.add = worker._sums.add
            return work(worker)

    return in_threads(run, WORKERS, gathering.barrier, shared[0])


def gradients(model, x, edges, targets):
    (model(x, edges) * targets).sum().backward()
    return torch.cat([each.grad.flatten() for each in model.parameters()])


@pytest.mark.parametrize("held", [False, True], ids=["found", "held"])
def test_means_and_sums_in_a_model_are_those_of_one_process(held):
    data = make_data(5, directed=False)
    torch.manual_seed(4)
    targets = torch.randn(data.vertices, NARROW)
    alone = mixing()
    expected = gradients(alone, torch.from_numpy(data.features), whole_edges(data), targets)

    def work(worker):
        model = Net(
            lambda h: worker.mean(h, dim=0),
            lambda h: worker.sum(h, dim=0) if held else worker.sum(h.sum(0)),
        )
        # Threads draw from the same random numbers.
        model.load_state_dict(alone.state_dict())
        if held:
            model.worker = worker
        wrapped, part = worker.wrap(model), worker.data
        return gradients(wrapped, part.x, part.edge_index, targets[part.n_id])

    assert (sum(workers_run(data, work)) - expected).abs().max() < 1e-5 * expected.abs().max()


def test_sums_keep_their_type_and_means_of_losses_are_shares():
    def work(worker):
        number = worker.number + 1
        return (
            worker.sum(torch.tensor([number, 2**40])),
            worker.sum(torch.tensor(0.5)),
            worker.sum(torch.ones(number, 2, dtype=torch.bfloat16), dim=0),
            worker.mean(torch.tensor([30.0])),
            worker.mean(torch.tensor([[float(number)]] * number), dim=0),
        )

    for counts, scalar, rows, share, mean in workers_run(make_data(0, directed=False), work):
        assert counts.tolist() == [6, 3 * 2**40]
        assert counts.dtype == torch.int64
        assert scalar == 1.5
        assert (rows.dtype, rows.tolist()) == (torch.bfloat16, [6, 6])
        assert share.tolist() == [3]
        assert mean.tolist() == pytest.approx([14 / 6])


def test_a_model_that_mixes_vertices_is_refused_unless_unchecked():
    def work(worker):
        with pytest.raises(UnsupportedLayerError, match=r"^Net mixes vertices: .*Layer second"):
            worker.wrap(mixing())
        return worker.wrap(mixing(), unchecked=True)

    assert len(workers_run(make_data(0, directed=False), work)) == WORKERS


class Needy(nn.Module):
    def forward(self, x, edges, distances):
        return x


def test_worker_0_warns_of_a_model_that_cannot_be_checked():
    def work(worker):
        worker.wrap(Needy())

    with pytest.warns(UserWarning) as said:
        workers_run(make_data(0, directed=False), work)
    assert [str(each.message) for each in said] == [
        "Whether Needy mixes vertices was not checked, because a copy of it raised TypeError: "
        "Needy.forward() missing 1 required positional argument: 'distances'."
    ]
