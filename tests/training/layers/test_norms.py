"""Normalisations on several workers train as PyG's and PyTorch's do on the whole graph."""

import copy
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn

from switchgnn.planner.presets import PlanRequest
from switchgnn.training.base.errors import UnsupportedLayerError
from switchgnn.training.data.partition import partition_dataset
from switchgnn.training.exchange.sums import RemoteSum
from switchgnn.training.layers.models import distribute
from switchgnn.training.layers.norms import VertexSums
from tests.support.speed import seconds_here
from tests.training.gathering import Gathering, in_threads
from tests.training.layers.test_layers import NARROW, WIDE, half, make_data, whole_edges
from tests.training.threads import ThreadSums

WORKERS, STEPS, HIDDEN = 3, 4, 6
# Float32 sums in another order, through the steps.
TOLERANCE = 2e-5

NORMS = {
    "batch": lambda: nn.BatchNorm1d(HIDDEN),
    "batch, averaging all": lambda: nn.BatchNorm1d(HIDDEN, momentum=None),
    "batch, plain": lambda: nn.BatchNorm1d(HIDDEN, affine=False, track_running_stats=False),
    "pyg batch": lambda: pyg.BatchNorm(HIDDEN, momentum=0.3, allow_single_element=True),
    "instance": lambda: pyg.InstanceNorm(HIDDEN),
    "instance, running": lambda: pyg.InstanceNorm(HIDDEN, affine=True, track_running_stats=True),
    "layer": lambda: pyg.LayerNorm(HIDDEN),
    "layer, plain": lambda: pyg.LayerNorm(HIDDEN, affine=False),
    "layer by vertex": lambda: pyg.LayerNorm(HIDDEN, mode="node"),
    "graph": lambda: pyg.GraphNorm(HIDDEN),
    "pair": lambda: pyg.PairNorm(scale=1.5),
    "pair by vertex": lambda: pyg.PairNorm(scale_individually=True),
    "mean subtraction": pyg.MeanSubtractionNorm,
    "graph size": pyg.GraphSizeNorm,
    "differentiable group": lambda: pyg.DiffGroupNorm(HIDDEN, 2, lamda=0.5),
}


class Net(nn.Module):
    def __init__(self, norm):
        super().__init__()
        torch.manual_seed(2)
        self.first, self.norm = pyg.GCNConv(WIDE, HIDDEN), norm
        self.second = pyg.SAGEConv(HIDDEN, NARROW)
        with torch.no_grad():
            # Those that begin with 0 or 1 would hide what they multiply.
            for weights in norm.parameters():
                weights.add_(torch.randn_like(weights) * 0.3)

    def forward(self, x, edges):
        return self.second(self.norm(self.first(x, edges) + 3).relu(), edges)


def train(model, features, edges, targets, add=lambda parameters: None, own=None):
    """Return the outputs in evaluation after some steps, and those of each step before it.

    Only the first rows, `own`, count in the loss.
    """
    optimizer, outputs = torch.optim.SGD(model.parameters(), lr=0.01), []
    for _ in range(STEPS):
        optimizer.zero_grad()
        outputs.append(model(features, edges))
        (outputs[-1] - targets)[:own].square().mean(1).sum().mul(1 / 40).backward()
        add(model.parameters())
        optimizer.step()
    with torch.no_grad():
        return [each.detach() for each in (*outputs, model.eval()(features, edges))]


def assigned(vertices):
    """Return an uneven assignment, with a worker that has a single vertex."""
    return np.minimum(np.arange(vertices) % 5, 1) + (np.arange(vertices) == vertices - 1)


@pytest.mark.parametrize("cut", [None, "vertex-cut"])
@pytest.mark.parametrize("name", NORMS)
def test_several_workers_train_as_one_process(name, cut):
    data = make_data(3, directed=True)
    data.features[::5] *= 3
    if cut is not None:
        data = replace(data, cut=PlanRequest(partition=cut).cut(data.graph, WORKERS, 0))
    features, targets = torch.from_numpy(data.features), torch.randn(data.vertices, NARROW)
    alone = Net(NORMS[name]())
    start = copy.deepcopy(alone)
    expected = train(alone, features, whole_edges(data), targets)

    assignment = assigned(data.vertices)
    gathering = Gathering(*data.exchanged(assignment))
    parts = list(partition_dataset(data, assignment))
    shared = (threading.Barrier(WORKERS, timeout=seconds_here(60)), [])

    def work(worker):
        model, part, sums = copy.deepcopy(start), parts[worker], ThreadSums(shared)
        with RemoteSum(gathering.transports[worker]) as remote:
            distribute(model, part, remote, vertex_sums=VertexSums(sums.add, part))
            own = torch.from_numpy(part.features)
            outputs = train(
                *(model, own, torch.from_numpy(part.edges), targets[part.vertices]),
                lambda _: sums.add_with_gradients(model, torch.zeros(1)),
                part.own,
            )
        return outputs, model.state_dict()

    found = in_threads(work, WORKERS, gathering.barrier, shared[0])
    for part, (outputs, state) in zip(parts, found, strict=True):
        pairs = [(one[part.vertices], other) for one, other in zip(expected, outputs, strict=True)]
        assert state.keys() == alone.state_dict().keys()
        pairs += [(values, state[name]) for name, values in alone.state_dict().items()]
        for one, other in pairs:
            assert (one - other).abs().max() <= TOLERANCE * max(1, one.abs().max())


def distributed(norm):
    """Return a norm on one of two workers, whose numbers are those of both."""
    sums = VertexSums(lambda values: 2 * values)
    return distribute(norm, half(), RemoteSum(None), vertex_sums=sums)


def test_several_graphs_are_refused():
    rows = torch.randn(20, HIDDEN)
    norm = distributed(pyg.GraphNorm(HIDDEN))
    assert torch.allclose(norm(rows, None, None), pyg.GraphNorm(HIDDEN)(rows), atol=1e-5)
    with pytest.raises(UnsupportedLayerError, match=r"^GraphNorm was given several graphs"):
        norm(rows, torch.zeros(20, dtype=torch.int64))


def test_a_norm_of_equal_numbers_has_gradients():
    rows = torch.zeros(20, HIDDEN, requires_grad=True)
    distributed(pyg.LayerNorm(HIDDEN))(rows).square().sum().backward()
    assert rows.grad.isfinite().all()


def test_sums_have_the_digits_of_float64():
    """Sums of squares in float32 would lose a variance of 1 at a mean of 10,000."""
    rows = (torch.randn(50, HIDDEN).double() + 1e4).float()
    norm = distributed(nn.BatchNorm1d(HIDDEN))
    assert torch.allclose(norm(rows).var(0, unbiased=False), torch.ones(HIDDEN), atol=1e-2)


def test_a_subclass_with_another_forward_is_left_alone():
    class Own(nn.BatchNorm1d):
        def forward(self, x):
            return 2 * x

    assert distributed(Own(HIDDEN))(torch.ones(3, HIDDEN)).eq(2).all()
