"""Rows between a device and NumPy: copied beside other work, and never used too early.

The stand-in for a device does no copy before somebody waits for it, as a GPU may, and its tensors
are on the CPU or on no device at all. What needs CUDA runs where it is.
"""

import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

from torch_geometric.nn import models  # noqa: E402

from switchgnn.host.links.transport import NO_TRAFFIC  # noqa: E402
from switchgnn.planner.base.direction import Direction  # noqa: E402
from switchgnn.training.data.load import load_dataset  # noqa: E402
from switchgnn.training.data.partition import partition_dataset  # noqa: E402
from switchgnn.training.exchange.gradients import GradientSums  # noqa: E402
from switchgnn.training.exchange.sums import LocalSum, RemoteSum, Staging  # noqa: E402
from switchgnn.training.layers.halo import PartEdges  # noqa: E402
from switchgnn.training.layers.models import distribute  # noqa: E402
from tests.support.gpu import cuda_missing  # noqa: E402
from tests.support.speed import seconds_here  # noqa: E402

CPU, META = torch.device("cpu"), torch.device("meta")


class LazyEvent:
    def __init__(self, copy):
        self.copy = copy

    def synchronize(self):
        self.copy()


class LazyLane:
    """Copies only when somebody waits for it."""

    def __init__(self, device=CPU):
        self.device = device
        self.log = []

    def down(self, rows):
        self.log.append("down")
        pinned = torch.full(rows.shape, float("nan"))
        source = torch.ones(rows.shape) if rows.device == META else rows
        return pinned, LazyEvent(lambda: pinned.copy_(source))

    def up(self, values):
        self.log.append("up")
        rows = torch.full(values.shape, float("nan"), device=self.device)
        return rows, LazyEvent(lambda: rows.copy_(values))

    def need(self, _rows, event):
        self.log.append("need")
        event.synchronize()


class Elsewhere(torch.Tensor):
    """A tensor on the CPU that pretends to be on a GPU, so that it is staged."""

    @property
    def device(self):
        return torch.device("cuda", 0)


def elsewhere(tensor):
    return tensor.as_subclass(Elsewhere)


@pytest.fixture
def lane():
    return LazyLane()


def rows_of(value, shape=(3, 2)):
    return torch.full(shape, float(value))


def test_on_the_cpu_nothing_is_copied():
    def no_lane(_device):
        pytest.fail("a lane was made")

    staging, rows = Staging(no_lane), torch.ones(3, 2)
    assert staging.to_host(rows)().ctypes.data == rows.data_ptr()
    sums = np.ones((3, 2), dtype=np.float32)
    assert staging.to_device(sums, CPU)().data_ptr() == sums.ctypes.data


def test_rows_are_made_what_is_exchanged():
    rows = torch.arange(6, dtype=torch.float64).reshape(2, 3).t()
    values = Staging().to_host(rows.requires_grad_())()
    assert values.dtype == np.float32
    assert values.flags.c_contiguous
    assert np.array_equal(values, rows.detach().numpy())


class Doubling:
    """A transport that doubles rows once `may` is set."""

    def __init__(self):
        self.may = threading.Event()

    def aggregate(self, rows, _direction, _tensor_id):
        assert self.may.wait(seconds_here(60))
        return 2 * rows

    def expected_traffic(self, _width, _direction):
        return NO_TRAFFIC


def test_other_things_are_computed_while_rows_travel(lane):
    transport, staging = Doubling(), Staging(lambda _device: lane)
    with RemoteSum(transport, staging) as remote:
        exchange = remote.submit(elsewhere(rows_of(3)), Direction.FORWARD)
        # This needs neither the copy nor the exchange.
        local = rows_of(3) + 1
        transport.may.set()
        assert (remote.result(exchange) == 6).all()
    assert (local == 4).all()
    assert lane.log == ["down", "up", "need"]


@pytest.mark.parametrize("kind", ["GCN", "GraphSAGE", "GIN"])
@pytest.mark.parametrize("first", ["moved", "wrapped"])
def test_all_of_a_model_is_where_its_weights_are(kind, first, monkeypatch):
    """On the meta device, which refuses operations with other devices."""
    # It lacks sparse products and comparisons.
    monkeypatch.setattr(PartEdges, "_compared", lambda _self, _edges: False)
    monkeypatch.setattr(LocalSum, "sums", lambda _self, rows, _direction: torch.empty_like(rows))
    data = load_dataset("karate")
    (part, _) = partition_dataset(data, np.arange(data.vertices) % 2)
    transport, lane = Doubling(), LazyLane(META)
    transport.may.set()
    model = getattr(models, kind)(data.features.shape[1], 8, 3, data.classes, dropout=0.5)
    with RemoteSum(transport, Staging(lambda _device: lane)) as remote:
        if first == "moved":
            model = model.to(META)
        distribute(model, part, remote)
        model = model.to(META)
        inputs = torch.from_numpy(part.features).to(META).requires_grad_()
        outputs = model(inputs, torch.from_numpy(part.edges).to(META))
        outputs.sum().backward()
    assert outputs.device == META
    assert lane.log.count("down") == lane.log.count("up") == 6
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
    def test_rows_and_sums_are_those_of_the_cpu(self, device):
        generator = torch.Generator().manual_seed(0)
        staging = Staging()
        for width in (1, 33, 602, 33):
            rows = torch.randn(5000, width, generator=generator)
            there = rows.to(device)
            values = staging.to_host(there * 2)()
            assert np.array_equal(values, (rows * 2).numpy())
            back = staging.to_device(values + 1, there.device)
            assert torch.equal((back() * 3).cpu(), (rows * 2 + 1) * 3)

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
