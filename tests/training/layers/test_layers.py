"""PyG's layers on partitions give what they give on the whole graph, forward and backward."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch_geometric.nn as pyg

from switchgnn.host.direct.kinds import copy_schedules
from switchgnn.planner import Direction, PlanRequest, graph_from_edges
from switchgnn.training import Dataset, partition_dataset
from switchgnn.training.base.errors import UnsupportedLayerError
from switchgnn.training.exchange.sums import RemoteSum
from switchgnn.training.layers import models
from switchgnn.training.layers.attention import SourceAttentionConv
from switchgnn.training.layers.pyg_layers import KINDS
from tests.host.direct.crew import on_hub
from tests.training.gathering import Gathering, in_threads

WIDE, NARROW = 12, 5
PASSES = 4  # of `passes_on_two`


def mlp():
    return torch.nn.Sequential(
        torch.nn.Linear(WIDE, 8), torch.nn.ReLU(), torch.nn.Linear(8, NARROW)
    )


class Doubled(pyg.GINConv):
    def __init__(self):
        super().__init__(mlp())

    def message(self, x_j):
        return 2 * x_j


LAYERS = {
    "gcn": lambda: pyg.GCNConv(WIDE, NARROW),
    "gcn improved": lambda: pyg.GCNConv(WIDE, NARROW, improved=True),
    "gcn wider": lambda: pyg.GCNConv(WIDE, 2 * WIDE),
    "gcn without loops": lambda: pyg.GCNConv(WIDE, NARROW, add_self_loops=False),
    "gcn plain": lambda: pyg.GCNConv(WIDE, NARROW, normalize=False, add_self_loops=False),
    "sage mean, narrower": lambda: pyg.SAGEConv(WIDE, NARROW),
    "sage mean, wider": lambda: pyg.SAGEConv(WIDE, 2 * WIDE),
    "sage sum": lambda: pyg.SAGEConv(WIDE, NARROW, aggr="sum"),
    "sage normalised": lambda: pyg.SAGEConv(WIDE, NARROW, normalize=True),
    "sage projected": lambda: pyg.SAGEConv(WIDE, 2 * WIDE, project=True),
    "gin": lambda: pyg.GINConv(mlp()),
    "gin, learnt eps": lambda: pyg.GINConv(mlp(), train_eps=True, eps=0.3),
    "gin model": lambda: pyg.models.GIN(WIDE, 8, 3, NARROW),
    "gcn model": lambda: pyg.models.GCN(WIDE, 8, 3, NARROW),
    "sage model": lambda: pyg.models.GraphSAGE(WIDE, 8, 3, NARROW),
    "sage model, projected": lambda: pyg.models.GraphSAGE(
        WIDE, 8, 3, NARROW, project=True, normalize=True
    ),
    "graph": lambda: pyg.GraphConv(WIDE, NARROW),
    "graph mean": lambda: pyg.GraphConv(WIDE, 2 * WIDE, aggr="mean"),
    "source attention": lambda: SourceAttentionConv(WIDE, NARROW, heads=2),
}
# Over a transport that copies rows; others in test_convolutions.py.
COPIED = {
    "sage max": lambda: pyg.SAGEConv(WIDE, NARROW, aggr="max"),
    "sage min": lambda: pyg.SAGEConv(WIDE, NARROW, aggr="min"),
    "sage mean and max": lambda: pyg.SAGEConv(WIDE, NARROW, aggr=["mean", "max"]),
    # Half of the rows are 0 in a column: there are ties.
    "sage model, max": lambda: pyg.models.GraphSAGE(WIDE, 8, 3, NARROW, aggr="max"),
    "gin max": lambda: pyg.GINConv(mlp(), aggr="max"),
    "gat model": lambda: pyg.models.GAT(WIDE, 8, 3, NARROW, v2=True),
    "changed messages": Doubled,
}
LAYERS |= COPIED


class WeighedOnce(torch.nn.Module):
    """Weights count in one of its two layers."""

    def __init__(self):
        super().__init__()
        self.first, self.second = pyg.GCNConv(WIDE, 6), pyg.SAGEConv(6, NARROW)

    def forward(self, x, edges, weights):
        return self.second(self.first(x, edges, weights).tanh(), edges)


# Called with edge weights.
WEIGHTED = {
    name: LAYERS[name]
    for name in LAYERS
    if name.startswith(("gcn", "graph")) and name not in COPIED
} | {"weighed once": WeighedOnce}
LAYERS |= {"weighed once": WeighedOnce}
WEIGHTS = {
    "factors": lambda rng, ends: np.exp(rng.normal(size=ends.max() + 1) / 2)[ends].prod(axis=0),
    "any": lambda rng, ends: np.abs(rng.normal(1, 0.5, ends.shape[1])) + 0.1,
}


def make_data(seed, *, directed, weights=None):
    rng = np.random.default_rng(seed)
    vertices = 40
    u, v = (rng.integers(0, vertices, 150) for _ in range(2))
    graph = graph_from_edges(u, v, name="random", vertices=vertices, directed=directed)
    self_loops = np.arange(0, vertices, 7)
    if weights is not None:
        made = WEIGHTS[weights](rng, np.stack(graph.edges())).astype(np.float32)
        own = rng.uniform(0.5, 2, len(self_loops)).astype(np.float32)
        graph = replace(graph, weights=made, loop_weights=own, self_loops=self_loops)
    graph = replace(graph, self_loops=self_loops)
    masks = rng.integers(0, 3, vertices)
    return Dataset(
        graph=graph,
        features=rng.standard_normal((vertices, WIDE)).astype(np.float32),
        labels=rng.integers(0, NARROW, vertices),
        train=masks == 0,
        validation=masks == 1,
        test=masks == 2,
        classes=NARROW,
    )


def half(**options):
    """Return the part of the first of two workers."""
    data = make_data(0, directed=False, **options)
    return next(partition_dataset(data, np.arange(data.vertices) % 2))


def whole_edges(data):
    loops = np.stack([data.self_loops, data.self_loops])
    return torch.from_numpy(np.concatenate([np.stack(data.graph.edges()), loops], axis=1)).long()


def called_with(data):
    if data.graph.weights is None:
        return [whole_edges(data)]
    weights = np.concatenate([data.graph.weights, data.graph.loop_weights])
    return [whole_edges(data), torch.from_numpy(weights)]


def on_one(model, data, weights):
    features = torch.from_numpy(data.features).requires_grad_()
    outputs = model(features, *called_with(data))
    (outputs * weights).sum().backward()
    return outputs.detach(), features.grad, [p.grad.clone() for p in model.parameters()]


def on_many(name, state, data, assignment, weights):
    """The same from all workers; parameters' gradients are added up."""
    make, gathering = LAYERS[name], Gathering(*data.exchanged(assignment))
    parts, ends = list(partition_dataset(data, assignment)), gathering.transports
    if name in COPIED:
        ends = on_hub(copy_schedules(data.graph, assignment, len(parts)))

    def work(worker):
        model, part = make(), parts[worker]
        model.load_state_dict(state)
        with RemoteSum(ends[worker]) as remote:
            models.distribute(model, part, remote)
            features = torch.from_numpy(part.features).requires_grad_()
            graph = [part.edges] if part.edge_weights is None else [part.edges, part.edge_weights]
            outputs = model(features, *map(torch.from_numpy, graph))[: part.own]
            (outputs * weights[part.vertices[: part.own]]).sum().backward()
        return outputs.detach(), features.grad, [p.grad.clone() for p in model.parameters()]

    results = in_threads(work, len(parts), gathering.barrier)
    outputs = torch.zeros(data.vertices, results[0][0].shape[1])
    inputs = torch.zeros(data.vertices, WIDE)
    for part, (out, gradient, _) in zip(parts, results, strict=True):
        outputs[part.vertices[: part.own]] = out
        inputs[part.vertices] += gradient
    summed = [sum(each) for each in zip(*(result[2] for result in results), strict=True)]
    return outputs, inputs, summed


def compare(name, workers, *, directed, weighted=None, cut=None):
    """Return the largest difference between several workers and one."""
    torch.manual_seed(1)
    data = make_data(workers, directed=directed, weights=weighted)
    if cut is not None:
        data = replace(data, cut=PlanRequest(partition=cut).cut(data.graph, workers, 0))
    model = LAYERS[name]()
    state = {key: value.clone() for key, value in model.state_dict().items()}
    with torch.no_grad():
        width = model(torch.from_numpy(data.features), *called_with(data)).shape[1]
    weights = torch.randn(data.vertices, width)
    expected = on_one(model, data, weights)
    assignment = np.random.default_rng(workers).permutation(np.arange(data.vertices) % workers)
    found = on_many(name, state, data, assignment, weights)
    pairs = [*zip(expected[:2], found[:2], strict=True), *zip(expected[2], found[2], strict=True)]
    return max(float((a - b).abs().max() / (1 + a.abs().max())) for a, b in pairs)


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("name", [name for name in LAYERS if name != "weighed once"])
def test_a_layer_on_partitions_is_the_layer_on_the_whole(name, workers, directed):
    assert compare(name, workers, directed=directed) < 1e-5


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_of_edges_count_as_on_the_whole(name, weights, workers, directed):
    assert compare(name, workers, directed=directed, weighted=weights) < 1e-5


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize(
    ("name", "weighted"),
    [(name, None) for name in LAYERS if name not in COPIED and name != "weighed once"]
    + [(name, weights) for name in WEIGHTED for weights in WEIGHTS],
)
def test_a_layer_on_replicas_is_the_layer_on_the_whole(name, directed, weighted):
    assert compare(name, 3, directed=directed, weighted=weighted, cut="vertex-cut") < 1e-5


def test_each_kind_of_layer_is_compared():
    compared = {type(make()) for name, make in LAYERS.items() if name not in COPIED}
    assert {kind for kind, _, _ in KINDS} <= compared


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: pyg.GATConv(4, 2), "attention"),
        (lambda: pyg.TransformerConv(4, 2), "attention"),
        (lambda: pyg.SAGEConv(4, 2, aggr="max"), "'max'"),
        (lambda: pyg.SGConv(4, 2, K=3), "sums over neighbours K times in one call, here 3"),
        (lambda: pyg.APPNP(2, 0.1), "sums over neighbours K times in one call, here 2"),
        (pyg.LGConv, "not known to be one sum"),
    ],
)
def test_what_is_no_sum_of_rows_is_refused(make, words):
    with pytest.raises(UnsupportedLayerError, match=words):
        models.distribute(make(), half(), RemoteSum(SimpleNamespace(copied_edges=None)))


@pytest.mark.parametrize("make", [pyg.GCNConv, pyg.GATConv], ids=["of sums", "with copies"])
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda layer, x, edges: layer(x, edges, torch.ones(edges.shape[1])),
            "given edge weights|called with edge_",
        ),
        (lambda layer, x, edges: layer(x, edges[:, 1:]), "other edges"),
        (
            lambda layer, x, edges: layer(x, torch.stack([edges[0], edges[1].roll(1)])),
            "other edges",
        ),
        (lambda layer, x, edges: layer(x[1:], edges), "rows for a part of 20 vertices"),
    ],
)
def test_what_a_layer_cannot_be_called_with_is_refused(make, call, words):
    part = half()
    copying = SimpleNamespace(copied_edges=np.zeros((2, 0), dtype=np.int64))
    layer = models.distribute(make(WIDE, 2), part, RemoteSum(copying))
    with pytest.raises(UnsupportedLayerError, match=words):
        call(layer, torch.from_numpy(part.features), torch.from_numpy(part.edges))


def test_a_layer_that_changes_messages_is_refused():
    class Halved(pyg.GCNConv):
        def message(self, x_j, edge_weight):
            return x_j / 2

    with pytest.raises(UnsupportedLayerError, match="message"):
        models.check_layers(Halved(WIDE, 2), copies=False)


THERE, BACK = Direction.FORWARD, Direction.BACKWARD


def unchanged(features, _number):
    return features


def passes_on_two(make, inputs=unchanged, *, precompute=True, evaluate=()):
    """Check four passes and the last gradients; return exchanges and passes with kept sums."""
    data = make_data(3, directed=True)
    assignment = np.arange(data.vertices) % 2
    gathering = Gathering(data.graph, assignment)
    ends, parts = gathering.transports, list(partition_dataset(data, assignment))
    torch.manual_seed(0)
    alone, expected = make(), []
    features = torch.from_numpy(data.features.copy())
    for number in range(PASSES):
        alone.zero_grad()
        expected.append(alone(inputs(features, number), whole_edges(data)))
        expected[-1].square().sum().backward()
    gradients = [each.grad for each in alone.parameters()]
    found = [torch.empty_like(each) for each in expected]

    def work(worker):
        layer, part = make(), parts[worker]
        layer.load_state_dict(alone.state_dict())
        own = torch.from_numpy(part.features.copy())
        with RemoteSum(ends[worker]) as remote:
            models.distribute(layer, part, remote, precompute=precompute)
            for number in range(PASSES):
                layer.zero_grad()
                with torch.set_grad_enabled(number not in evaluate):
                    outputs = layer(inputs(own, number), torch.from_numpy(part.edges))
                found[number][part.vertices] = outputs.detach()
                if number not in evaluate:
                    outputs.square().sum().backward()
        return remote.ledger.kept, [each.grad for each in layer.parameters()]

    kept, grads = zip(*in_threads(work, 2, gathering.barrier), strict=True)
    assert len(set(kept)) == 1
    summed = [sum(each) for each in zip(*grads, strict=True)]
    for one, other in zip((*expected, *gradients), (*found, *summed), strict=True):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-4)
    return ends[0].calls, kept[0]


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("kind", ["gcn", "sage", "gin"])
@pytest.mark.parametrize("hidden", [3, 4, WIDE, 2 * WIDE])
def test_the_exchanges_of_all_epochs_are_known_before(kind, layers, hidden, kept):
    """Also those of mapped rows, narrow ones, before the inputs are exchanged and kept."""
    options = models.ModelOptions(kind, layers, hidden)
    calls, _ = passes_on_two(lambda: models.build_model(options, WIDE, 3), precompute=kept)
    expected = models.exchanged_widths(options, WIDE, 3, PASSES, kept=kept)
    assert Counter(width for _, width in calls) == expected


def doubled_once(features, number):
    return features.mul_(2) if number == 2 else features


def made_anew(features, number):
    """As dropout does, perhaps at the same address."""
    return features * (number + 1)


NARROW_KEPT = [(THERE, 4), (BACK, 4)]


@pytest.mark.parametrize(
    ("make", "options", "calls", "kept"),
    [
        pytest.param(lambda: pyg.GCNConv(WIDE, 8), {}, [(THERE, WIDE)], 3, id="gcn"),
        pytest.param(lambda: pyg.SAGEConv(WIDE, WIDE), {}, [(THERE, WIDE)], 3, id="sage"),
        pytest.param(lambda: pyg.GINConv(pyg.Linear(WIDE, WIDE)), {}, [(THERE, WIDE)], 3, id="gin"),
        pytest.param(
            *(lambda: pyg.GCNConv(WIDE, 8), {"precompute": False}, 4 * [(THERE, WIDE)], 0),
            id="not asked for",
        ),
        pytest.param(
            *(lambda: pyg.GCNConv(WIDE, 4), {}, [*NARROW_KEPT, *NARROW_KEPT, (THERE, WIDE)], 1),
            id="narrow rows until they have cost as much",
        ),
        pytest.param(
            *(lambda: pyg.GCNConv(WIDE, WIDE), {"evaluate": (0, 2)}, 2 * [(THERE, WIDE)], 2),
            id="evaluations use kept sums and keep none",
        ),
        pytest.param(
            *(lambda: pyg.GCNConv(WIDE, 8), {"inputs": doubled_once}, 2 * [(THERE, WIDE)], 2),
            id="changed in place",
        ),
        pytest.param(
            *(lambda: pyg.GCNConv(WIDE, 8), {"inputs": made_anew}, 4 * [(THERE, WIDE)], 0),
            id="other tensors",
        ),
        pytest.param(
            lambda: pyg.SAGEConv(WIDE, WIDE, project=True),
            *({}, 4 * [(THERE, WIDE), (BACK, WIDE)], 0),
            id="rows made by weights",
        ),
    ],
)
def test_inputs_that_do_not_change_are_exchanged_once(make, options, calls, kept):
    assert passes_on_two(make, **options) == (calls, kept)
