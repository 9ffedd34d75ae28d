# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""PyG's layers on partitions give what they give on the whole graph, forward and backward."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pyg = pytest.importorskip("torch_geometric.nn", reason="PyTorch Geometric is not installed")

from switchgnn.planner.direction import Direction  # noqa: E402
from switchgnn.planner.graphs.graph import graph_from_edges  # noqa: E402
from switchgnn.training.data.dataset import Dataset  # noqa: E402
from switchgnn.training.errors import UnsupportedLayerError  # noqa: E402
from switchgnn.training.layers.models import check_layers, distribute  # noqa: E402
from switchgnn.training.partition import partition_dataset  # noqa: E402
from switchgnn.training.sums import RemoteSum  # noqa: E402
from tests.training.gathering import Gathering, in_threads  # noqa: E402

WIDE, NARROW = 12, 5


def mlp():
    return torch.nn.Sequential(
        torch.nn.Linear(WIDE, 8), torch.nn.ReLU(), torch.nn.Linear(8, NARROW)
    )


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
}


def make_data(seed, *, directed, loops=True):
    rng = np.random.default_rng(seed)
    vertices = 40
    graph = graph_from_edges(
        rng.integers(0, vertices, 150),
        rng.integers(0, vertices, 150),
        name="random",
        vertices=vertices,
        directed=directed,
    )
    masks = rng.integers(0, 3, vertices)
    return Dataset(
        graph=graph,
        features=rng.standard_normal((vertices, WIDE)).astype(np.float32),
        labels=rng.integers(0, NARROW, vertices),
        train=masks == 0,
        validation=masks == 1,
        test=masks == 2,
        classes=NARROW,
        multilabel=False,
        name="random",
        self_loops=np.arange(0, vertices, 7) if loops else np.arange(0),
        undirected=not directed,
    )


def whole_edges(data):
    loops = np.stack([data.self_loops, data.self_loops])
    return torch.from_numpy(np.concatenate([np.stack(data.graph.edges()), loops], axis=1)).long()


def on_one(model, data, weights):
    """Outputs, and gradients by the inputs and the parameters, on the whole graph."""
    features = torch.from_numpy(data.features).requires_grad_()
    outputs = model(features, whole_edges(data))
    (outputs * weights).sum().backward()
    return outputs.detach(), features.grad, [p.grad.clone() for p in model.parameters()]


def on_many(make, state, data, assignment, weights, *, spoil=None):
    """The same from all workers; parameters' gradients are added up."""
    gathering = Gathering(data.graph, assignment, spoil=spoil)
    parts, ends = list(partition_dataset(data, assignment)), gathering.transports

    def work(worker):
        model, part = make(), parts[worker]
        model.load_state_dict(state)
        with RemoteSum(ends[worker]) as remote:
            distribute(model, part, remote)
            features = torch.from_numpy(part.features).requires_grad_()
            outputs = model(features, torch.from_numpy(part.edges))
            (outputs * weights[part.vertices]).sum().backward()
        return outputs.detach(), features.grad, [p.grad.clone() for p in model.parameters()]

    results = in_threads(work, len(parts), gathering.barrier)
    outputs = torch.zeros(data.vertices, results[0][0].shape[1])
    inputs = torch.zeros(data.vertices, WIDE)
    for part, (out, gradient, _) in zip(parts, results, strict=True):
        outputs[part.vertices], inputs[part.vertices] = out, gradient
    summed = [sum(each) for each in zip(*(result[2] for result in results), strict=True)]
    return outputs, inputs, summed, ends


def compare(name, workers, *, directed, loops=True, spoil=None):
    torch.manual_seed(1)
    data = make_data(workers, directed=directed, loops=loops)
    model = LAYERS[name]()
    state = {key: value.clone() for key, value in model.state_dict().items()}
    with torch.no_grad():
        width = model(torch.from_numpy(data.features), whole_edges(data)).shape[1]
    weights = torch.randn(data.vertices, width)
    expected = on_one(model, data, weights)
    assignment = np.random.default_rng(workers).permutation(np.arange(data.vertices) % workers)
    *found, ends = on_many(LAYERS[name], state, data, assignment, weights, spoil=spoil)
    pairs = [
        (expected[0], found[0]),
        (expected[1], found[1]),
        *zip(expected[2], found[2], strict=True),
    ]
    off = max(float((a - b).abs().max() / (1 + a.abs().max())) for a, b in pairs)
    return off, ends


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_on_partitions_is_the_layer_on_the_whole(name, workers, directed):
    off, _ = compare(name, workers, directed=directed)
    assert off < 1e-5


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("sage mean, narrower", NARROW),
        ("sage mean, wider", WIDE),
        ("gcn", NARROW),
        ("gcn wider", WIDE),
        ("gin", WIDE),
    ],
)
def test_the_narrower_rows_travel(name, width):
    _, ends = compare(name, 2, directed=True)
    assert ends[0].calls == [(Direction.FORWARD, width), (Direction.BACKWARD, width)]


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda u, v: (u[1:], v[1:]), id="a neighbour dropped"),
        pytest.param(lambda u, v: (np.append(u, u[0]), np.append(v, v[0])), id="counted twice"),
        pytest.param(lambda u, v: (v, u), id="the wrong direction"),
    ],
)
@pytest.mark.parametrize("name", ["gcn", "sage sum", "gin"])
def test_a_mistake_is_found(name, spoil):
    off, _ = compare(name, 3, directed=True, spoil=spoil)
    assert off > 1e-3


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: pyg.GATConv(4, 2), "attention"),
        (lambda: pyg.TransformerConv(4, 2), "attention"),
        (lambda: pyg.SAGEConv(4, 2, aggr="max"), "'max'"),
        (lambda: pyg.GCNConv(4, 2, flow="target_to_source"), "target to source"),
        (lambda: pyg.models.GCN(4, 4, 2, norm="batch_norm"), "LayerNorm"),
    ],
)
def test_what_is_no_sum_of_rows_is_refused(make, words):
    data = make_data(0, directed=False)
    part = next(partition_dataset(data, np.arange(data.vertices) % 2))
    with pytest.raises(UnsupportedLayerError, match=words):
        distribute(make(), part, RemoteSum(None))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda layer, x, edges: layer(x, edges, torch.ones(edges.shape[1])), "edge weights"),
        (lambda layer, x, edges: layer(x, edges[:, 1:]), "other edges"),
        (lambda layer, x, edges: layer((x, x), edges), "bipartite"),
    ],
)
def test_what_a_layer_cannot_be_called_with_is_refused(call, words):
    data = make_data(0, directed=False)
    part = next(partition_dataset(data, np.arange(data.vertices) % 2))
    layer = distribute(pyg.GCNConv(WIDE, 2), part, RemoteSum(None))
    with pytest.raises(UnsupportedLayerError, match=words):
        call(layer, torch.from_numpy(part.features), torch.from_numpy(part.edges))


def test_a_layer_that_changes_messages_is_refused():
    class Halved(pyg.GCNConv):
        def message(self, x_j, edge_weight):
            return x_j / 2

    with pytest.raises(UnsupportedLayerError, match="message"):
        check_layers(Halved(WIDE, 2))
