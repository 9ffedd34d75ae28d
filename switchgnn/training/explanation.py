# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Which columns explain a worker's predictions: the explanation graph of DGS.

The graph is a star. Its centre stands for all vertices of the worker, with the mean of their
features, and its leaves for remote neighbours. Masks for the leaves, and for the columns of the
rows that each layer sends along the edges, are learned as in GNNExplainer (Ying et al., NeurIPS
2019): the prediction of the centre should stay the mean of the worker's predictions, with masks
that are small and close to 0 or 1.

Unlike in DGS, a leaf stands for all remote neighbours of one vertex, with the mean of their
features, as workers get sums of neighbours only. These cost one exchange of the features, once.
There is a mask for the columns of each layer, as each layer exchanges rows of its own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import MessagePassing

from switchgnn.planner.direction import Direction
from switchgnn.training.columns import Scores, Tensors
from switchgnn.training.device import device_of
from switchgnn.training.layers.pyg_layers import summed_layer
from switchgnn.training.layers.summed import SummedLayer
from switchgnn.training.partition import Partition
from switchgnn.training.sums import RemoteSum

# Of DGS: steps of an explanation, and the loss with which it ends earlier.
STEPS, LOW_LOSS = 50, 0.01
# Of GNNExplainer: the step of Adam, and the weights of sizes (a sum over leaves, a mean over
# columns) and entropies.
_RATE = 0.01
_LEAF_SIZE, _LEAF_ENTROPY, _COLUMN_SIZE, _COLUMN_ENTROPY = 0.005, 1.0, 1.0, 0.1
# More leaves would take longer than the training, and change the sums of columns little.
_MOST_LEAVES = 1024


class Explanation:
    """Explains the predictions of a model on one worker; all workers make the same calls."""

    def __init__(self, model: nn.Module, partition: Partition, remote: RemoteSum) -> None:
        self._model = model
        self._multilabel = partition.multilabel
        leaves = _leaf_features(partition, remote)
        centre = partition.features.mean(axis=0, keepdims=True)
        device = device_of(model)
        self._features = torch.from_numpy(np.concatenate([centre, leaves])).to(device)
        star = _star(partition, self._features.shape[0] - 1)
        self._edges = torch.from_numpy(star.edges).to(device)
        self._layers = {
            module: (summed_layer(name, module, star), remote.sites[module])
            for name, module in model.named_modules()
            if isinstance(module, MessagePassing)
        }

    def scores(self, outputs: Tensor) -> Scores:
        """Return the mask of each layer's columns, float64[F] from 0 to 1 each.

        Args:
            outputs: [n, C], those of the model for this worker's vertices.
        """
        shares = outputs.sigmoid() if self._multilabel else outputs.softmax(dim=1)
        masks = _Masks(len(self._features) - 1, outputs.device)
        training = self._model.training
        self._model.eval()
        try:
            with self._on_star(masks):
                self._learn(masks, shares.mean(dim=0))
        finally:
            self._model.train(training)
        return masks.of_columns()

    def _learn(self, masks: "_Masks", target: Tensor) -> None:
        optimizer: torch.optim.Adam | None = None
        for _ in range(STEPS):
            # The first pass makes a mask for each layer.
            outputs = self._model(self._features, self._edges)[0]
            loss = self._difference(outputs, target) + masks.penalty()
            if float(loss.detach()) <= LOW_LOSS:
                return
            learned = masks.learned()
            if optimizer is None:
                optimizer = torch.optim.Adam(learned, lr=_RATE)
            # Only the masks learn: the gradients of the weights stay as they are.
            gradients = torch.autograd.grad(loss, learned, allow_unused=True)
            for mask, gradient in zip(learned, gradients, strict=True):
                mask.grad = gradient
            optimizer.step()

    def _difference(self, outputs: Tensor, target: Tensor) -> Tensor:
        if self._multilabel:
            return functional.binary_cross_entropy_with_logits(outputs, target)
        return -(target * outputs.log_softmax(dim=0)).sum()

    @contextmanager
    def _on_star(self, masks: "_Masks") -> Iterator[None]:
        """Let the layers sum over the star in the block."""
        before = {module: module.forward for module in self._layers}
        for module, (layer, site) in self._layers.items():
            object.__setattr__(module, "forward", _OnStar(layer, site, masks))
        try:
            yield
        finally:
            for module, forward in before.items():
                object.__setattr__(module, "forward", forward)


class _Masks:
    """The masks of an explanation, as the sigmoids of what is learned; all begin at 1/2."""

    def __init__(self, leaves: int, device: torch.device) -> None:
        self._leaves = torch.zeros(leaves, 1, device=device, requires_grad=True)
        self._columns: dict[Tensors, Tensor] = {}

    @property
    def leaves(self) -> Tensor:
        """The mask of the leaves, [L, 1]."""
        return self._leaves.sigmoid()

    def columns(self, site: int, rows: Tensor) -> Tensor:
        """Return the mask of the columns of rows [n, F], [F]."""
        key = site, rows.shape[1]
        if key not in self._columns:
            self._columns[key] = torch.zeros(key[1], device=rows.device, requires_grad=True)
        return self._columns[key].sigmoid()

    def learned(self) -> list[Tensor]:
        """Return all that is learned."""
        return [self._leaves, *self._columns.values()]

    def penalty(self) -> Tensor:
        """Return the regularisers: small for masks that are small and close to 0 or 1."""
        leaves = self.leaves
        total = _LEAF_SIZE * leaves.sum()
        if len(leaves):
            total = total + _LEAF_ENTROPY * _entropy(leaves).mean()
        for learned in self._columns.values():
            mask = learned.sigmoid()
            total = total + _COLUMN_SIZE * mask.mean() + _COLUMN_ENTROPY * _entropy(mask).mean()
        return total

    def of_columns(self) -> Scores:
        """Return the masks of columns, float64[F] each; 0 if there are no leaves."""
        share = float(len(self._leaves) > 0)
        return {
            key: share * learned.detach().sigmoid().double().cpu()
            for key, learned in self._columns.items()
        }


def _entropy(mask: Tensor) -> Tensor:
    return -(mask * mask.log() + (1 - mask) * (1 - mask).log())


class _OnStar:
    """The forward pass of a layer over the star, whose first row is the centre."""

    def __init__(self, layer: SummedLayer, site: int, masks: _Masks) -> None:
        self._layer = layer
        self._site = site
        self._masks = masks

    def __call__(self, inputs: Tensor, *_: object, **__: object) -> Tensor:
        """Return [1 + L, F'] of inputs [1 + L, F]; the edges are always those of the star."""
        rows = self._layer.before(inputs)
        if self._layer.sums_first(rows):
            return self._layer.after(inputs, self._layer.map(self._sums(rows)))
        return self._layer.after(inputs, self._sums(self._layer.map(rows)))

    def _sums(self, rows: Tensor) -> Tensor:
        sent = rows * self._masks.columns(self._site, rows)
        leaves = self._masks.leaves
        centre = (sent[1:] * leaves).sum(dim=0, keepdim=True)
        sums = torch.cat([centre, sent[:1] * leaves])
        if self._layer.loops:
            return sums + rows
        return torch.cat([sums[:1] + rows[:1], sums[1:]])


def _leaf_features(partition: Partition, remote: RemoteSum) -> NDArray[np.float32]:
    """Return the mean features of the remote neighbours of some vertices, float32[L, F]."""
    features = partition.features
    ones = np.ones((len(features), 1), dtype=np.float32)
    rows = torch.from_numpy(np.concatenate([features, ones], axis=1))
    exchange = remote.submit(rows, Direction.FORWARD, remote.new_site())
    sums = remote.result(exchange).numpy()
    # With fewer bits counts are not whole.
    counts = np.rint(sums[:, -1:])
    (found,) = np.nonzero(counts[:, 0] > 0)
    if len(found) > _MOST_LEAVES:
        found = found[np.linspace(0, len(found) - 1, _MOST_LEAVES).astype(np.int64)]
    means: NDArray[np.float32] = sums[found, :-1] / counts[found]
    return means.astype(np.float32)


def _star(partition: Partition, leaves: int) -> Partition:
    """Return the star as the only part of a graph: edges both ways, and a loop at the centre."""
    outer, centre = np.arange(1, leaves + 1), np.zeros(leaves, dtype=np.int64)
    edges = np.stack([np.concatenate([[0], centre, outer]), np.concatenate([[0], outer, centre])])
    degrees = np.concatenate([[leaves], np.ones(leaves, dtype=np.int64)])
    rows, nobody = leaves + 1, np.zeros(leaves + 1, dtype=np.bool_)
    multilabel = (partition.classes,) if partition.multilabel else ()
    return replace(
        partition,
        worker=0,
        workers=1,
        vertices=np.arange(rows),
        edges=edges.astype(np.int64),
        self_loop=np.arange(rows) == 0,
        in_degree=degrees,
        out_degree=degrees,
        features=np.zeros((rows, partition.features.shape[1]), dtype=np.float32),
        labels=np.zeros((rows, *multilabel), dtype=partition.labels.dtype),
        train=nobody,
        validation=nobody,
        test=nobody,
    )
