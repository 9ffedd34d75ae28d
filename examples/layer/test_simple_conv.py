"""SimpleConv on two workers gives what it gives on the whole graph, forward and backward."""

import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nn = pytest.importorskip("torch_geometric.nn", reason="PyTorch Geometric is not installed")

from switchgnn.training import load_dataset, partition_dataset  # noqa: E402
from switchgnn.training.base.errors import UnsupportedLayerError  # noqa: E402
from switchgnn.training.exchange.sums import RemoteSum  # noqa: E402
from switchgnn.training.layers.models import check_layers, distribute  # noqa: E402
from tests.training.gathering import Gathering  # noqa: E402

WORKERS = 2


def output_and_gradient(layer, features, edges):
    output = layer(features, edges)
    output.square().sum().backward()
    return output.detach(), features.grad


@pytest.mark.parametrize("spoil", [None, lambda u, v: (u[1:], v[1:])], ids=["whole", "spoiled"])
def test_simple_conv(spoil):
    data = load_dataset("karate")
    edges = torch.from_numpy(np.stack(data.graph.edges())).long()
    layer = nn.SimpleConv(combine_root="sum")
    features = torch.from_numpy(data.features).requires_grad_()
    expected = output_and_gradient(layer, features, edges)
    assignment = (np.arange(data.vertices) % WORKERS).astype(np.int32)
    gathering = Gathering(data.graph, assignment, spoil=spoil)
    found = [torch.empty_like(each) for each in expected]

    def work(part):
        own = nn.SimpleConv(combine_root="sum")
        with RemoteSum(gathering.transports[part.worker]) as remote:
            distribute(own, part, remote)
            rows = torch.from_numpy(data.features[part.vertices]).requires_grad_()
            both = output_and_gradient(own, rows, torch.from_numpy(part.edges).long())
        for whole, mine in zip(found, both, strict=True):
            whole[torch.from_numpy(part.vertices).long()] = mine

    parts = partition_dataset(data, assignment)
    threads = [threading.Thread(target=work, args=[part]) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    same = [torch.allclose(*pair, atol=1e-5) for pair in zip(found, expected, strict=True)]
    assert same == ([True, True] if spoil is None else [False, False])


def test_simple_conv_with_a_maximum_is_refused():
    with pytest.raises(UnsupportedLayerError, match="SimpleConv"):
        check_layers(nn.SimpleConv(aggr="max"), copies=False)
