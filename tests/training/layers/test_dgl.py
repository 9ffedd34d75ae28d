"""DGL's layers on partitions give what DGL gives on the whole graph, and train as it does."""

from itertools import product

import numpy as np
import pytest

pytest.importorskip("dgl", reason="DGL is not installed")

import dgl
import torch
from dgl import function
from dgl.nn import GATConv, GINConv, GraphConv, SAGEConv, SumPooling
from torch import nn
from torch.nn.functional import cross_entropy

from switchgnn.dgl import graph_of
from switchgnn.host.direct import copy_schedules
from switchgnn.training.base.errors import UnsupportedLayerError
from switchgnn.training.layers.models import check_layers
from tests.host.direct.crew import on_hub
from tests.training.layers.test_layers import LAYERS, NARROW, WIDE, compare, mlp, whole_edges
from tests.training.layers.test_norms import WORKERS, assigned
from tests.training.test_wrap import workers_run

# No copy of a model goes unchecked.
pytestmark = pytest.mark.filterwarnings("error:Whether")

FREE = {"activation": torch.tanh, "allow_zero_in_degree": True}
WIDTHS = (NARROW, 2 * WIDE)
MAKE = [
    *(
        lambda norm=norm, width=width: GraphConv(WIDE, width, norm=norm, **FREE)
        for norm, width in product(("both", "left", "right", "none"), WIDTHS)
    ),
    lambda: GraphConv(WIDE, WIDE, weight=False, bias=False, **FREE),
    *(
        lambda kind=kind, width=width: SAGEConv(
            WIDE, width, kind, bias=width == NARROW, norm=torch.sigmoid, activation=torch.tanh
        )
        for kind, width in product(("mean", "gcn"), WIDTHS)
    ),
    lambda: GINConv(mlp(), "sum", init_eps=0.3, learn_eps=True),
    lambda: GINConv(mlp(), "mean", activation=torch.tanh),
    GINConv,
]


class Called(nn.Module):
    """A layer that is called as PyG's are."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, edges):
        return self.layer(dgl.graph(tuple(edges), num_nodes=len(x)), x)


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("make", MAKE)
def test_a_layer_on_partitions_is_the_layer_on_the_whole(make, directed, monkeypatch):
    monkeypatch.setitem(LAYERS, "dgl", lambda: Called(make()))
    assert compare("dgl", WORKERS, directed=directed) < 1e-5


class Net(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.first = GraphConv(34, 16, activation=torch.relu)
        self.second = SAGEConv(16, 16, "mean", feat_drop=dropout, activation=torch.relu)
        self.third, self.last = SAGEConv(16, 8, "gcn"), GINConv(nn.Linear(8, 2), "mean")

    def forward(self, g, x):
        return self.last(g, self.third(g, self.second(g, self.first(g, x))))


class Mixing(Net):
    def forward(self, g, x):
        g.ndata["h"] = super().forward(g, x)
        g.update_all(function.copy_u("h", "m"), function.sum("m", "h"))
        return g.ndata.pop("h")


def losses(model, g, loss_of, reduce):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        optimizer.zero_grad()
        loss = loss_of(model(g, g.ndata["feat"])[g.ndata["train_mask"]])
        loss.backward()
        yield reduce(model, loss)
        optimizer.step()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_losses_over_host_are_those_of_dgl_on_the_whole_graph(karate, seed):
    torch.manual_seed(seed)
    alone, labels, train = Net(), torch.from_numpy(karate.labels), torch.from_numpy(karate.train)
    state = {name: value.clone() for name, value in alone.state_dict().items()}
    g = dgl.graph(tuple(whole_edges(karate)), num_nodes=karate.vertices)
    g.ndata.update(feat=torch.from_numpy(karate.features), train_mask=train)
    whole = list(
        losses(alone, g, lambda out: cross_entropy(out, labels[train]), lambda _, loss: loss.item())
    )

    def work(worker):
        model, part = Net(), graph_of(worker.data)
        model.load_state_dict(state)
        mine = part.ndata["label"][part.ndata["train_mask"]]

        def share(out):
            return worker.mean(cross_entropy(out, mine, reduction="sum"), int(train.sum()))

        return list(losses(worker.wrap(model), part, share, worker.reduce))

    assignment = assigned(karate.vertices).astype(np.int32)
    hosts = on_hub(copy_schedules(karate.graph, assignment, WORKERS))
    for found in workers_run(karate, work, hosts):
        assert found == pytest.approx(whole, rel=3e-6)
    assert whole[-1] < 0.95 * whole[0]


class Halved(GraphConv):
    def forward(self, g, feat):
        return super().forward(g, feat / 2)


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        (SAGEConv(4, 2, "pool"), "'pool', and a switch can only add: use 'mean' or 'gcn'"),
        (GINConv(None, "max"), "'max', and a switch can only add: use 'sum' or 'mean'"),
        (GATConv(4, 2, 1), r"GATConv\) cannot be summed by the switch"),
        (SumPooling(), r"SumPooling\) cannot be summed by the switch"),
        (Halved(4, 2), r"changes forward\(\) of GraphConv"),
    ],
)
def test_what_is_no_sum_of_rows_is_refused(layer, words):
    with pytest.raises(UnsupportedLayerError, match=words):
        check_layers(nn.Sequential(layer), copies=True)


CALLS = {
    "edge weights": lambda net, g, x: net.second(g, x, torch.ones(g.num_edges())),
    "given edge weights": lambda net, g, x: net.first(g, x, edge_weight=torch.ones(g.num_edges())),
    "given a weight": lambda net, g, x: net.first(g, x, torch.ones(34, 16)),
    "bipartite": lambda net, g, x: net.last(g, (x, 2 * x)),
    "other edges": lambda net, g, x: net.first(dgl.add_self_loop(g), x),
}


def test_models_calls_and_graphs_that_would_depend_on_the_partition_are_refused(karate):
    def work(worker):
        net, g = worker.wrap(Net(dropout=0.5)), graph_of(worker.data)
        for words, call in CALLS.items():
            with pytest.raises(UnsupportedLayerError, match=words):
                call(net, g, g.ndata["feat"])
        ones = torch.ones(g.num_nodes(), 16)
        # Both calls drop other units.
        assert not torch.equal(net.second(g, ones), net.second(g, ones))
        with pytest.raises(UnsupportedLayerError, match=r"^Mixing mixes vertices: .*another"):
            worker.wrap(Mixing())
        worker.partition.in_degree[0] = 0
        with pytest.raises(UnsupportedLayerError, match=r"without incoming .*add_self_loop"):
            worker.wrap(Net())
        return g.ndata[dgl.NID].tolist() == worker.partition.vertices.tolist()

    assert workers_run(karate, work) == [True] * WORKERS
