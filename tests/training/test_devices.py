"""Models on other devices than the CPU. What needs CUDA runs where it is."""

import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

from torch_geometric.nn import models  # noqa: E402

from switchgnn.host.links.transport import NO_TRAFFIC  # noqa: E402
from switchgnn.planner.base.direction import Direction  # noqa: E402
from switchgnn.training import load_dataset, partition_dataset  # noqa: E402
from switchgnn.training.exchange.gradients import GradientSums  # noqa: E402
from switchgnn.training.exchange.sums import LocalSum, RemoteSum  # noqa: E402
from switchgnn.training.layers.halo import PartEdges  # noqa: E402
from switchgnn.training.layers.models import distribute  # noqa: E402
from tests.support.gpu import cuda_missing  # noqa: E402
from tests.support.speed import seconds_here  # noqa: E402

CPU, META = torch.device("cpu"), torch.device("meta")


class Doubling:
    """A transport that doubles rows once `may` is set."""

    def __init__(self):
        self.may = threading.Event()

    def aggregate(self, rows, _direction, _tensor_id):
        assert self.may.wait(seconds_here(60))
        return 2 * rows

    def expected_traffic(self, _width, _direction):
        return NO_TRAFFIC


def test_other_things_are_computed_while_rows_travel():
    transport, rows = Doubling(), torch.arange(6, dtype=torch.float64).reshape(2, 3).t()
    with RemoteSum(transport) as remote:
        exchange = remote.submit(rows.requires_grad_(), Direction.FORWARD)
        # This does not need the exchange.
        local = rows + 1
        transport.may.set()
        sums = remote.result(exchange)
    assert torch.equal(sums, 2 * (local - 1).float())


class FromMeta(RemoteSum):
    """Exchanges the rows of the meta device, which has none."""

    exchanged = 0

    def submit(self, rows, *what):
        assert rows.device == META
        self.exchanged += 1
        return super().submit(torch.ones(rows.shape), *what)


@pytest.mark.parametrize("kind", ["GCN", "GraphSAGE", "GIN"])
@pytest.mark.parametrize("first", ["moved", "wrapped"])
def test_all_of_a_model_is_where_its_weights_are(kind, first, monkeypatch):
    """On the meta device, which refuses operations with other devices."""
    # It lacks sparse products and comparisons.
    monkeypatch.setattr(PartEdges, "_compared", lambda _self, _edges: False)
    monkeypatch.setattr(LocalSum, "sums", lambda _self, rows, _direction: torch.empty_like(rows))
    data = load_dataset("karate")
    (part, _) = partition_dataset(data, np.arange(data.vertices) % 2)
    transport = Doubling()
    transport.may.set()
    model = getattr(models, kind)(data.features.shape[1], 8, 3, data.classes, dropout=0.5)
    with FromMeta(transport) as remote:
        if first == "moved":
            model = model.to(META)
        distribute(model, part, remote)
        model = model.to(META)
        inputs = torch.from_numpy(part.features).to(META).requires_grad_()
        outputs = model(inputs, torch.from_numpy(part.edges).to(META))
        outputs.sum().backward()
    assert outputs.device == META
    assert remote.exchanged == 6
    assert all(each.grad.device == META for each in model.parameters())


class OnCpu(GradientSums):
    """One of two workers; records the device of the values to add."""

    def __init__(self):
        super().__init__()
        self._alone = False
        self.seen = []

    def _reduce(self, values):
        self.seen.append(values.device)
        values.mul_(2)

    _broadcast = _reduce


@pytest.mark.skipif(cuda_missing() is not None, reason=f"{cuda_missing()}")
@pytest.mark.parametrize("device", ["cuda"])
class TestOnAGpu:
    @pytest.mark.parametrize("kind", ["GCN", "GraphSAGE", "GIN"])
    def test_a_model_computes_what_it_does_on_the_cpu(self, device, kind):
        data = load_dataset("karate")
        (part, _) = partition_dataset(data, np.arange(data.vertices) % 2)
        transport = Doubling()
        transport.may.set()
        found = []
        for where in ("cpu", device):
            torch.manual_seed(0)
            model = getattr(models, kind)(data.features.shape[1], 8, 3, data.classes, dropout=0.5)
            with RemoteSum(transport) as remote:
                model = distribute(model, part, remote).to(where)
                inputs = torch.from_numpy(part.features).to(where)
                outputs = model(inputs, torch.from_numpy(part.edges).to(where))
                outputs.square().sum().backward()
            found.append([outputs.cpu(), *(each.grad.cpu() for each in model.parameters())])
        for one, other in zip(*found, strict=True):
            assert torch.allclose(one, other, rtol=1e-3, atol=1e-3)

    def test_gradients_and_sums_go_over_the_cpu(self, device):
        sums, model = OnCpu(), torch.nn.Linear(2, 1).to(device)
        loss = model(torch.ones(1, 2, device=device)).sum()
        loss.backward()
        assert sums.add_with_gradients(model, loss.reshape(1)) == (float(2 * loss),)
        assert (model.weight.grad == 2).all()
        assert (sums.spread(torch.ones(3, device=device)) == 2).all()
        assert set(sums.seen) == {CPU}
