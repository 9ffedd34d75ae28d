"""Epochs of one process, compared with a GCN written by hand around PyTorch's sparse product."""

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bench.line import Goal, ResultLine
from bench.loads.training import lacks_packages
from bench.measure import alternate
from bench.settings import Settings

if TYPE_CHECKING:
    from switchgnn.training.data.dataset import Dataset

NAME = "local"
OWN_NAMESPACE = False

# As many vertices and edges as Amazon's co-purchases of computers.
_GRAPH = "random:13752:245861:1"
_FEATURES, _HIDDEN, _RATE = 64, 32, 0.01
_RATIO = 1.2
missing = lacks_packages


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure epochs of two layers, without dropout and evaluation."""
    data = _data()
    what = f"{data.vertices:,} vertices, {len(data.graph.indices):,} directed edges"
    by_hand = _by_hand(data)
    for precompute, words in ((False, "features summed in each epoch"), (True, "and only once")):
        ours = _ours(data, precompute=precompute)
        a, b = alternate(
            settings.pairs,
            ("--transport local", lambda epoch=ours: _seconds(epoch, settings.seconds)),
            ("by hand, torch CSR", lambda: _seconds(by_hand, settings.seconds)),
        )
        yield ResultLine(NAME, f"{what}: epoch, {words}", "s", a, b, Goal(ratio_most=_RATIO))


def _seconds(epoch: Callable[[], object], at_least: float) -> float:
    """Return the mean time of an epoch, over as many as take some time."""
    epoch()
    started, epochs = time.perf_counter(), 0
    while time.perf_counter() - started < at_least:
        epoch()
        epochs += 1
    return (time.perf_counter() - started) / epochs


def _data() -> "Dataset":
    from switchgnn.training import load_dataset  # noqa: PLC0415

    data = load_dataset(_GRAPH)
    drawn = np.random.default_rng(0).standard_normal((data.vertices, _FEATURES))
    return replace(data, features=drawn.astype(np.float32))


def _ours(data: "Dataset", *, precompute: bool) -> Callable[[], object]:
    """Return one epoch as `switchgnn train --transport local` runs it."""
    import torch  # noqa: PLC0415

    from switchgnn.host.registry import LocalTransport  # noqa: PLC0415
    from switchgnn.training import partition_dataset  # noqa: PLC0415
    from switchgnn.training.base.options import ModelOptions, TrainOptions  # noqa: PLC0415
    from switchgnn.training.exchange.sums import RemoteSum  # noqa: PLC0415
    from switchgnn.training.layers.models import build_model, distribute  # noqa: PLC0415
    from switchgnn.training.trainer import Trainer  # noqa: PLC0415

    torch.manual_seed(0)
    (part,) = partition_dataset(data, np.zeros(data.vertices, dtype=np.int32))
    model = build_model(ModelOptions("gcn", 2, _HIDDEN), _FEATURES, data.classes)
    remote = RemoteSum(LocalTransport(data.vertices))
    distribute(model, part, remote, precompute=precompute)
    endless = TrainOptions(1 << 40, learning_rate=_RATE, weight_decay=0.0, evaluate_every=1 << 40)
    return Trainer(model, part, remote, endless).run().__next__


def _by_hand(data: "Dataset") -> Callable[[], object]:
    """Return one epoch of the same model with PyTorch alone: A_hat (relu(A_hat X W1 + b1)) W2 + b2.

    The narrower side of each map is multiplied, and the symmetric matrix serves both passes.
    """
    import torch  # noqa: PLC0415
    from scipy.sparse import coo_matrix, diags, identity  # noqa: PLC0415
    from torch import nn  # noqa: PLC0415
    from torch.nn import functional  # noqa: PLC0415

    source, destination = data.graph.edges()
    ones = np.ones(len(source), dtype=np.float32)
    adjacency = coo_matrix((ones, (destination, source)), shape=2 * (data.vertices,)).tocsr()
    adjacency = adjacency + identity(data.vertices, dtype=np.float32, format="csr")
    factor = diags(np.asarray(adjacency.sum(axis=1)).ravel() ** -0.5)
    scaled = (factor @ adjacency @ factor).tocsr().astype(np.float32)
    arrays = map(torch.from_numpy, (scaled.indptr, scaled.indices, scaled.data))
    with warnings.catch_warnings():
        # PyTorch calls its CSR tensors beta.
        warnings.simplefilter("ignore", UserWarning)
        matrix = torch.sparse_csr_tensor(*arrays, scaled.shape)

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(_ctx: object, rows: torch.Tensor) -> torch.Tensor:
            return matrix @ rows

        @staticmethod
        def backward(_ctx: object, gradient: torch.Tensor) -> torch.Tensor:
            return matrix @ gradient

    torch.manual_seed(0)
    first, second = nn.Linear(_FEATURES, _HIDDEN), nn.Linear(_HIDDEN, data.classes)
    weights = [*first.parameters(), *second.parameters()]
    optimizer = torch.optim.Adam(weights, lr=_RATE)
    features, labels = torch.from_numpy(data.features), torch.from_numpy(data.labels)
    train = torch.from_numpy(data.train)

    def epoch() -> float:
        optimizer.zero_grad()
        hidden = (Product.apply(features @ first.weight.T) + first.bias).relu()
        outputs = Product.apply(hidden @ second.weight.T) + second.bias
        loss = functional.cross_entropy(outputs[train], labels[train])
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return epoch
