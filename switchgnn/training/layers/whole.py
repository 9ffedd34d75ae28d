# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Lets models of PyG layers see the neighbours on other workers.

The parameters of a layer stay where they are; its sum over neighbours becomes a sparse product
for those on this worker and an exchange for the others.
"""

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from switchgnn.training.errors import UnsupportedLayerError
from switchgnn.training.layers.dropout import drop_by_vertex
from switchgnn.training.layers.pyg_layers import (
    called_by,
    check_layer,
    local_edges,
    summed_layer,
)
from switchgnn.training.layers.summed import SummedLayer
from switchgnn.training.partition import Partition
from switchgnn.training.sums.kept import KeptSum
from switchgnn.training.sums.neighbours import LocalSum, NeighbourSum
from switchgnn.training.sums.remote_sum import RemoteSum


def distribute(
    model: nn.Module,
    partition: Partition,
    remote: RemoteSum,
    *,
    seed: int = 0,
    precompute: bool = True,
) -> nn.Module:
    """Make a model of PyG layers compute on a partition what it computes on the whole graph.

    Call the model with the partition's ``edges`` afterwards. The model is changed in place;
    its parameters keep their names and shapes.

    Args:
        model: built with GCNConv, SAGEConv (mean, sum) and GINConv layers.
        partition: this worker's part of the graph.
        remote: the sums over remote neighbours.
        seed: the seed of dropout, the same on every worker; each ``nn.Dropout`` then drops
            the same units as on the whole graph.
        precompute: whether the sums of inputs that do not change are made once and kept. An
            input is the same if it is the same tensor and PyTorch has not changed it since.

    Returns:
        The same model.

    Raises:
        UnsupportedLayerError: a layer needs more than one sum of per-source rows.
    """
    check_layers(model)
    rows, others = len(partition.vertices), remote if partition.workers > 1 else None
    sums: dict[bool, NeighbourSum] = {}
    for name, module in model.named_modules():
        if not isinstance(module, MessagePassing):
            continue
        layer = summed_layer(name, module, partition)
        if layer.loops not in sums:
            local = LocalSum(local_edges(partition, loops=layer.loops), (rows, rows))
            sums[layer.loops] = NeighbourSum(local, others)
        kept = KeptSum(remote.ledger) if precompute and layer.constant else None
        whole = _Whole(called_by(name, module), layer, sums[layer.loops], partition, kept)
        object.__setattr__(module, "forward", whole.forward)
    drop_by_vertex(model, torch.from_numpy(partition.vertices), seed)
    return model


def check_layers(model: nn.Module) -> None:
    """Refuse the models that :func:`distribute` would refuse, before anything else is done.

    Raises:
        UnsupportedLayerError: a layer needs more than one sum of per-source rows.
    """
    for name, module in model.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            raise UnsupportedLayerError(
                f"{called_by(name, module)} takes means over the vertices of one worker only, so "
                "the result would depend on the partition: use LayerNorm, or no normalisation."
            )
        if isinstance(module, MessagePassing):
            check_layer(name, module)


class _Whole:
    """The forward pass of a layer over the whole graph."""

    def __init__(
        self,
        called: str,
        layer: SummedLayer,
        sums: NeighbourSum,
        partition: Partition,
        kept: KeptSum | None,
    ) -> None:
        self._called = called
        self._layer = layer
        self._sum = sums
        self._edges = partition.edges.shape
        self._kept = kept

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        size: tuple[int, int] | None = None,
    ) -> Tensor:
        """Return [n, F'], given the inputs [n, F] of this worker's vertices."""
        self._check(x, edge_index, edge_weight, size)
        return self._layer.after(x, self._mapped_sums(x))

    def _mapped_sums(self, inputs: Tensor) -> Tensor:
        kept = None if inputs.requires_grad else self._kept
        sums = None if kept is None else kept.of(inputs)
        if sums is not None:
            return self._layer.map(sums)
        if not torch.is_grad_enabled():
            # Hidden rows would look like inputs that do not change.
            kept = None
        rows = self._layer.before(inputs)
        if self._layer.sums_first(rows) or (kept is not None and kept.pays(rows.shape[1])):
            sums = self._sum(rows)
            if kept is not None:
                kept.keep(sums)
            return self._layer.map(sums)
        mapped = self._layer.map(rows)
        if kept is not None:
            kept.sent(mapped.shape[1] * (1 + mapped.requires_grad))
        return self._sum(mapped)

    def _check(
        self,
        x: object,
        edge_index: object,
        edge_weight: Tensor | None,
        size: tuple[int, int] | None,
    ) -> None:
        if edge_weight is not None:
            raise UnsupportedLayerError(
                f"{self._called} was given edge weights: a weight per edge means another row per "
                "edge, and a source is sent once."
            )
        if not isinstance(x, Tensor) or size is not None:
            raise UnsupportedLayerError(
                f"{self._called} was given a bipartite graph: call it with one tensor of rows."
            )
        if not isinstance(edge_index, Tensor) or edge_index.shape != self._edges:
            raise UnsupportedLayerError(
                f"{self._called} was given other edges than those of this worker's part: call the "
                f"model with the part's {self._edges[1]:,} edges, as a tensor."
            )
