"""Every convolution of PyG that takes rows and edges: exact, or refused for a reason."""

import inspect
from itertools import chain

import numpy as np
import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn

from switchgnn.training.base.errors import UnsupportedLayerError
from tests.training.layers.test_layers import NARROW, WIDE, make_data, mlp, whole_edges
from tests.training.layers.test_uses import off, together

DEGREES = torch.tensor([0, 4, 9, 10, 8, 5, 3, 1])


class Given(nn.Module):
    """A layer with other arguments than rows and edges."""

    def __init__(self, layer, call):
        super().__init__()
        self.layer, self.call = layer, call

    def forward(self, x, edges):
        return self.call(self.layer, x, edges)


def with_first(layer):
    return Given(layer, lambda layer, x, edges: layer(x.tanh(), 2 * x, edges))


def with_places(layer):
    return Given(layer, lambda layer, x, edges: layer(x, x[:, :3].sin(), edges))


def sized(kind, *more, **named):
    return lambda: kind(WIDE, NARROW, *more, **named)


SCALERS = ["identity", "amplification", "attenuation"]
EXACT = {
    "AGNNConv": pyg.AGNNConv,
    "APPNP": lambda: pyg.APPNP(3, 0.1),
    "ARMAConv": sized(pyg.ARMAConv, num_stacks=2, num_layers=2),
    "AntiSymmetricConv": lambda: pyg.AntiSymmetricConv(WIDE, num_iters=2),
    "CGConv": lambda: pyg.CGConv(WIDE, batch_norm=True),
    "ChebConv": sized(pyg.ChebConv, 3),
    "ClusterGCNConv": sized(pyg.ClusterGCNConv),
    "DNAConv": lambda: Given(
        pyg.DNAConv(WIDE, 2), lambda dna, x, edges: dna(torch.stack([x, x / 2], 1), edges)
    ),
    "DirGNNConv": lambda: pyg.DirGNNConv(pyg.GCNConv(WIDE, NARROW)),
    "EGConv": lambda: pyg.EGConv(WIDE, 8, aggregators=["symnorm", "mean", "max"], num_heads=2),
    "EdgeConv": lambda: pyg.EdgeConv(nn.Linear(2 * WIDE, NARROW)),
    "FAConv": lambda: with_first(pyg.FAConv(WIDE)),
    "FeaStConv": sized(pyg.FeaStConv, heads=2),
    "FiLMConv": sized(pyg.FiLMConv),
    "GATConv": sized(pyg.GATConv, heads=2),
    "GATv2Conv": sized(pyg.GATv2Conv, heads=2),
    "GCN2Conv": lambda: with_first(pyg.GCN2Conv(WIDE, 0.1)),
    "GCNConv": sized(pyg.GCNConv),
    "GENConv": sized(pyg.GENConv),
    "GINConv": lambda: pyg.GINConv(mlp()),
    "GatedGraphConv": lambda: pyg.GatedGraphConv(WIDE, 3),
    "GeneralConv": lambda: pyg.GeneralConv(WIDE, 8, attention=True, heads=2),
    "GraphConv": sized(pyg.GraphConv, aggr="max"),
    "LEConv": sized(pyg.LEConv),
    "LGConv": pyg.LGConv,
    "MFConv": sized(pyg.MFConv),
    "MixHopConv": sized(pyg.MixHopConv),
    "PNAConv": lambda: pyg.PNAConv(WIDE, 8, ["mean", "max", "std"], SCALERS, DEGREES),
    "PPFConv": lambda: Given(
        pyg.PPFConv(nn.Linear(WIDE + 4, NARROW)),
        lambda ppf, x, edges: ppf(x, x[:, :3], nn.functional.normalize(x[:, 3:6]), edges),
    ),
    "PointGNNConv": lambda: with_places(
        pyg.PointGNNConv(nn.Linear(WIDE, 3), nn.Linear(WIDE + 3, 8), nn.Linear(8, WIDE))
    ),
    "PointNetConv": lambda: with_places(pyg.PointNetConv(nn.Linear(WIDE + 3, NARROW))),
    "PointTransformerConv": lambda: with_places(pyg.PointTransformerConv(WIDE, NARROW)),
    "ResGatedGraphConv": sized(pyg.ResGatedGraphConv),
    "SAGEConv": sized(pyg.SAGEConv, aggr=["mean", "median", "softmax"]),
    "SGConv": sized(pyg.SGConv, K=3),
    "SSGConv": sized(pyg.SSGConv, 0.1, K=3),
    "SimpleConv": lambda: pyg.SimpleConv(aggr="mean", combine_root="sum"),
    "SuperGATConv": sized(pyg.SuperGATConv),
    "TAGConv": sized(pyg.TAGConv),
    "TransformerConv": sized(pyg.TransformerConv, heads=2),
    "WLConvContinuous": pyg.WLConvContinuous,
}
# By what they take, in the words of docs/models.md.
REFUSED = {
    "types or attributes of edges, which other workers do not know": (
        *("FastRGCNConv", "GINEConv", "GMMConv", "HEATConv", "NNConv", "PDNConv", "RGATConv"),
        *("RGCNConv", "SplineConv"),
    ),
    "vertices that are not neighbours": ("GPSConv", "WLConv"),
    "something other than one graph": ("HypergraphConv", "MeshCNNConv", "SignedConv"),
    "sparse tensors instead of `edge_index`": ("PANConv",),
}


@pytest.mark.parametrize("name", EXACT)
def test_a_convolution_over_copies_or_sums_is_exact(name):
    make = EXACT[name]
    data, use = make_data(7, directed=True), outputs_and_gradients
    torch.manual_seed(4)
    alone, targets = make(), torch.randn(data.vertices, 2 * WIDE)
    state = {name: each.clone() for name, each in alone.state_dict().items()}
    expected = use(alone, torch.from_numpy(data.features), whole_edges(data), targets)
    assert off(expected, together(make, use, data, targets, state=state)) < 2e-5


def outputs_and_gradients(model, x, edges, targets):
    x = x.clone().requires_grad_()
    outputs = model(x, edges)
    (outputs * targets[:, : outputs.shape[1]]).sum().backward()
    of_weights = [each.grad for each in model.parameters() if each.grad is not None]
    return [outputs, x.grad], of_weights


def taken(kind):
    named = inspect.signature(kind.forward).parameters if inspect.isclass(kind) else ()
    return "x" in named and any(name.endswith("edge_index") for name in named)


def test_every_convolution_of_pyg_is_known():
    found = {
        name
        for name in pyg.conv.__all__
        if taken(getattr(pyg.conv, name)) and not name.startswith("CuGraph")
    }
    assert found == {*EXACT, *chain(*REFUSED.values())}


@pytest.mark.parametrize(
    ("make", "call", "words"),
    [
        (
            lambda: pyg.RGCNConv(WIDE, NARROW, 2),
            lambda layer, x, edges: layer(x, edges, edges[0] % 2),
            "was called with edge_type, which other workers do not know",
        ),
        (
            sized(pyg.HypergraphConv),
            lambda layer, x, edges: layer(x, edges),
            "was called without `edge_index`",
        ),
        (
            sized(pyg.GATConv),
            lambda layer, x, edges: layer(x, edges.flip(0)),
            "sends messages against the edges of a directed graph",
        ),
    ],
)
def test_what_cannot_be_known_is_refused(make, call, words):
    data = make_data(7, directed=True)

    def use(model, x, edges, _targets):
        with pytest.raises(UnsupportedLayerError, match=words):
            model(x, edges)
        return [], []

    together(lambda: Given(make(), call), use, data, torch.zeros(data.vertices))


def test_attention_weights_are_those_of_edges_into_own_vertices():
    data = make_data(7, directed=True)
    torch.manual_seed(4)
    alone = pyg.GATConv(WIDE, NARROW)

    def use(model, x, edges, _targets):
        outputs, (edges, weights) = model(x, edges, return_attention_weights=True)
        assert edges.shape[1] == len(weights)
        return [outputs], [torch.tensor(float(len(weights))), weights.sum().detach()]

    x, targets = torch.from_numpy(data.features), torch.zeros(data.vertices)
    expected = use(alone, x, whole_edges(data), targets)
    found = together(sized(pyg.GATConv), use, data, targets, state=alone.state_dict())
    assert off(expected, found) < 2e-5
    assert np.isclose(float(found[1][1]), data.vertices)
