"""DGL's layers on partitions give what DGL gives on the whole graph, and train as it does."""

import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("dgl", reason="DGL is not installed")

import dgl
import torch
from torch import nn
from torch.nn import functional

import switchgnn.dgl as sg
from switchgnn.host.direct import copy_schedules
from switchgnn.training.errors import UnsupportedLayerError
from switchgnn.training.join import Seat, Worker
from switchgnn.training.layers.models import check_layers
from switchgnn.training.partition import partition_dataset
from switchgnn.training.sums import RemoteSum
from tests.host.direct.crew import on_hub
from tests.support.speed import seconds_here
from tests.training.gathering import in_threads
from tests.training.layers.test_layers import LAYERS, NARROW, WIDE, compare, mlp, whole_edges
from tests.training.threads import ThreadSums, shared_out

# No copy of a model goes unchecked.
pytestmark = pytest.mark.filterwarnings("error:Whether")

WORKERS, EPOCHS, SEEDS, HIDDEN = 3, 5, (0, 1, 2), 16
MAKE = {
    **{
        f"graph, {norm}, {width}": lambda norm=norm, width=width: dgl.nn.GraphConv(
            WIDE, width, norm=norm, activation=torch.tanh, allow_zero_in_degree=True
        )
        for norm in ("both", "left", "right", "none")
        for width in (NARROW, 2 * WIDE)
    },
    "graph without weights": lambda: dgl.nn.GraphConv(
        WIDE, WIDE, weight=False, bias=False, allow_zero_in_degree=True
    ),
    **{
        f"sage, {kind}, {width}": lambda kind=kind, width=width: dgl.nn.SAGEConv(
            WIDE, width, kind, bias=width == NARROW, norm=torch.sigmoid, activation=torch.tanh
        )
        for kind in ("mean", "gcn")
        for width in (NARROW, 2 * WIDE)
    },
    "gin": lambda: dgl.nn.GINConv(mlp(), "sum", init_eps=0.3, learn_eps=True),
    "gin, mean": lambda: dgl.nn.GINConv(mlp(), "mean", activation=torch.tanh),
    "gin, no function": dgl.nn.GINConv,
}


def graph_of_edges(edges, vertices):
    return dgl.graph((edges[0], edges[1]), num_nodes=vertices)


class Called(nn.Module):
    """A layer that is called as PyG's are."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, edges):
        return self.layer(graph_of_edges(edges, len(x)), x)


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("name", MAKE)
def test_a_layer_on_partitions_is_the_layer_on_the_whole(name, directed, monkeypatch):
    monkeypatch.setitem(LAYERS, "dgl", lambda: Called(MAKE[name]()))
    assert compare("dgl", WORKERS, directed=directed)[0] < 1e-5


class Net(nn.Module):
    def __init__(self, features, classes, mix=False):
        super().__init__()
        self.first = dgl.nn.GraphConv(features, HIDDEN)
        self.second = dgl.nn.SAGEConv(HIDDEN, HIDDEN, "mean", feat_drop=0.0, activation=torch.relu)
        self.third = dgl.nn.SAGEConv(HIDDEN, HIDDEN, "gcn")
        self.last = dgl.nn.GINConv(nn.Linear(HIDDEN, classes), "mean", learn_eps=True)
        self.mix = mix

    def forward(self, g, x):
        h = self.third(g, self.second(g, self.first(g, x).relu()).relu())
        if self.mix:
            with g.local_scope():
                g.ndata["h"] = h
                g.update_all(dgl.function.copy_u("h", "m"), dgl.function.sum("m", "h"))
                h = g.ndata["h"]
        return self.last(g, h)


def workers_run(data, work):
    """Return work(worker) of threads that exchange as `host` does."""
    assignment = shared_out(data.vertices, WORKERS).astype(np.int32)
    transports = on_hub(copy_schedules(data.graph, assignment, WORKERS))
    shared = (threading.Barrier(WORKERS, timeout=seconds_here(60)), [])
    job = SimpleNamespace(train=int(data.train.sum()), multilabel=False, vertices=data.vertices)
    parts = list(partition_dataset(data, assignment))

    def run(number):
        with RemoteSum(transports[number]) as remote:
            seat = Seat(job, Path(), parts[number], transports[number], first=0, session=0)
            worker = Worker(seat, remote, seed=0)
            worker._sums = ThreadSums(shared, own=number == 0)
            worker._vertices.add = worker._sums.add
            found = work(worker)
            transports[number].close()
            return found

    return in_threads(run, WORKERS, shared[0])


def trained(model, g, x, loss_of, reduce):
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=0.01), []
    for _ in range(EPOCHS):
        optimizer.zero_grad()
        loss = loss_of(model(g, x))
        loss.backward()
        losses.append(reduce(model, loss))
        optimizer.step()
    return losses


@pytest.mark.parametrize("seed", SEEDS)
def test_losses_are_those_of_dgl_on_the_whole_graph(karate, seed):
    torch.manual_seed(seed)
    alone = Net(karate.features.shape[1], karate.classes)
    state = {name: value.clone() for name, value in alone.state_dict().items()}
    x, y, train = map(torch.from_numpy, (karate.features, karate.labels, karate.train))

    def loss_of(out):
        return functional.cross_entropy(out[train], y[train])

    g = graph_of_edges(whole_edges(karate), karate.vertices)
    expected = trained(alone, g, x, loss_of, lambda _, loss: loss.item())

    def work(worker):
        model, part = Net(karate.features.shape[1], karate.classes), sg.graph_of(worker)
        model.load_state_dict(state)
        mine, label = part.ndata["train_mask"], part.ndata["label"]

        def share_of(out):
            return worker.mean(functional.cross_entropy(out[mine], label[mine], reduction="sum"))

        return trained(worker.wrap(model), part, part.ndata["feat"], share_of, worker.reduce)

    for losses in workers_run(karate, work):
        assert losses == pytest.approx(expected, rel=3e-6)
    assert expected[-1] < 0.95 * expected[0]


def test_models_that_mix_vertices_and_vertices_that_get_nothing_are_refused(karate):
    def work(worker):
        with pytest.raises(UnsupportedLayerError, match=r"^Net mixes vertices: .*another"):
            worker.wrap(Net(karate.features.shape[1], karate.classes, mix=True))
        worker.partition.in_degree[0] = 0
        with pytest.raises(UnsupportedLayerError, match=r"without incoming .*add_self_loop"):
            worker.wrap(Net(karate.features.shape[1], karate.classes))
        return worker.number

    assert workers_run(karate, work) == [0, 1, 2]


class Halved(dgl.nn.GraphConv):
    def forward(self, g, feat):
        return super().forward(g, feat / 2)


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        (dgl.nn.SAGEConv(4, 2, "pool"), r"'pool', and a switch can only add: use 'mean' or 'gcn'"),
        (dgl.nn.SAGEConv(4, 2, "lstm"), "'lstm', and a switch can only add"),
        (dgl.nn.GINConv(None, "max"), "'max', and a switch can only add: use 'sum' or 'mean'"),
        (dgl.nn.GATConv(4, 2, 1), "GATConv.* cannot be summed by the switch"),
        (dgl.nn.SumPooling(), "SumPooling.* cannot be summed by the switch"),
        (Halved(4, 2), r"changes forward\(\) of GraphConv"),
    ],
)
def test_what_is_no_sum_of_rows_is_refused(layer, words):
    with pytest.raises(UnsupportedLayerError, match=words):
        check_layers(nn.Sequential(layer))


CALLS = {
    "edge weights": lambda net, g, x: net.second(g, x, torch.ones(g.num_edges())),
    "given edge weights": lambda net, g, x: net.first(g, x, edge_weight=torch.ones(g.num_edges())),
    "given a weight": lambda net, g, x: net.first(g, x, torch.ones(WIDE, WIDE)),
    "bipartite": lambda net, g, x: net.last(g, (x, x)),
    "other edges": lambda net, g, x: net.first(dgl.add_self_loop(g), x),
    r"other edges .* call the model with": lambda net, g, x: net.first(torch.ones(2, 3), x),
}


def test_what_a_layer_cannot_be_called_with_is_refused(karate):
    def work(worker):
        net, g = worker.wrap(Net(karate.features.shape[1], karate.classes)), sg.graph_of(worker)
        for words, call in CALLS.items():
            with pytest.raises(UnsupportedLayerError, match=words):
                call(net, g, g.ndata["feat"])
        return g.ndata[dgl.NID].tolist() == worker.partition.vertices.tolist()

    assert workers_run(karate, work) == [True] * WORKERS
