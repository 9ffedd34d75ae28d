# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Lets unmodified PyG layers see the neighbours on other workers.

A layer runs on the edges within the worker; hooks that PyG and PyTorch offer launch an
exchange before it propagates and add the sums over remote neighbours afterwards.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, GINConv, MessagePassing, SAGEConv

from switchgnn.training.errors import UnsupportedLayerError
from switchgnn.training.layers.anywhere import Anywhere
from switchgnn.training.layers.dropout import drop_by_vertex
from switchgnn.training.partition import Partition
from switchgnn.training.sums.remote_sum import Launched, RemoteSum

_SUMS = ("sum", "add")


def distribute(
    model: nn.Module, partition: Partition, remote: RemoteSum, *, seed: int = 0
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

    Returns:
        The same model.

    Raises:
        UnsupportedLayerError: a layer needs more than one sum of per-source rows.
    """
    check_layers(model)
    for name, module in model.named_modules():
        if isinstance(module, MessagePassing):
            _adapter_of(name, module)(module, partition, remote)
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
                f"{_called(name, module)} takes means over the vertices of one worker only, so "
                "the result would depend on the partition: use LayerNorm, or no normalisation."
            )
        if isinstance(module, MessagePassing):
            _adapter_of(name, module)


def check_layer(name: str, layer: MessagePassing) -> None:
    """Refuse a layer that needs more than one sum of per-source rows.

    Raises:
        UnsupportedLayerError: this is one.
    """
    _adapter_of(name, layer)


def _adapter_of(name: str, layer: MessagePassing) -> Callable[[Any, Partition, RemoteSum], None]:
    called = _called(name, layer)
    if layer.flow != "source_to_target":
        raise UnsupportedLayerError(
            f"{called} sends messages from target to source: give it the transposed edges and "
            "the flow source_to_target."
        )
    if isinstance(layer, GCNConv):
        return _adapt_gcn
    aggregation = layer.aggr
    if isinstance(layer, SAGEConv) and aggregation in ("mean", *_SUMS):
        return _adapt_sage
    if isinstance(layer, GINConv) and aggregation in _SUMS:
        return _adapt_gin
    if isinstance(layer, (SAGEConv, GINConv)):
        raise UnsupportedLayerError(
            f"{called} aggregates with {aggregation!r}, and a switch can only add: "
            "take 'mean' or 'sum'."
        )
    raise UnsupportedLayerError(
        f"{called} cannot be summed by the switch: it may weigh a message by both ends of its "
        "edge, as attention does, so there is no one row per source that serves all its "
        "neighbours. GCNConv, SAGEConv and GINConv can."
    )


def _called(name: str, layer: nn.Module) -> str:
    return f"Layer {name} ({type(layer).__name__})" if name else type(layer).__name__


class _Pending:
    """The one exchange of a layer that is running."""

    def __init__(self, remote: RemoteSum) -> None:
        self._remote = remote
        self._launched: Launched | None = None

    def launch(self, rows: Tensor) -> None:
        self._launched = self._remote.launch(rows)

    def land(self) -> Tensor:
        launched, self._launched = self._launched, None
        assert launched is not None  # noqa: S101  a layer propagates before it goes on
        return launched.land()


def _adapt_gcn(layer: GCNConv, partition: Partition, remote: RemoteSum) -> None:
    """Normalise with the degrees of the whole graph: D^-1/2 (A + I) D^-1/2.

    The weight of an edge is a factor of its source times one of its destination, so rows
    are scaled before they are sent, and sums after they have arrived.
    """
    _refuse_edge_weights(layer)
    factor = gcn_factor(layer, partition)
    factors = Anywhere(factor)
    if layer.normalize:
        edges, _ = gcn_edges(layer, partition)
        normalised = Anywhere(edges, (factor[edges[0]] * factor[edges[1]])[:, 0])

        def cache(_layer: object, inputs: tuple[Any, ...]) -> None:
            # The layer reads its normalised edges here when it is told to cache them.
            layer.cached, layer._cached_edge_index = True, normalised.on(inputs[0].device)

        layer.register_forward_pre_hook(cache)
    pending = _Pending(remote)

    def before(_layer: object, inputs: tuple[Any, ...]) -> None:
        rows = inputs[-1]["x"]
        (factor,) = factors.on(rows.device)
        pending.launch(rows * factor)

    def after(_layer: object, _inputs: object, local: Tensor) -> Tensor:
        (factor,) = factors.on(local.device)
        return local + pending.land() * factor

    layer.register_propagate_forward_pre_hook(before)
    layer.register_propagate_forward_hook(after)


def gcn_factor(layer: GCNConv, partition: Partition) -> Tensor:
    """Return float32[n, 1], the factor of each row, before and after the sum."""
    if not layer.normalize:
        return torch.ones(len(partition.vertices), 1)
    _, loops = gcn_edges(layer, partition)
    degree = torch.from_numpy(partition.in_degree).float() + loops
    return degree.pow(-0.5).masked_fill(degree == 0, 0.0)[:, None]


def gcn_edges(layer: GCNConv, partition: Partition) -> tuple[Tensor, Tensor]:
    """Return the local edges with at most one loop per vertex, and how many loops each has."""
    edges = torch.from_numpy(partition.edges)
    if not layer.add_self_loops:
        return edges, torch.from_numpy(partition.self_loop).float()
    # Loops have weight 1 even when `improved`: without edge weights PyG takes 1 for all.
    rows = torch.arange(len(partition.vertices))
    proper = edges[:, edges[0] != edges[1]]
    return torch.cat([proper, torch.stack([rows, rows])], dim=1), torch.ones(len(rows))


def _refuse_edge_weights(layer: nn.Module) -> None:
    def check(_layer: object, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        if named.get("edge_weight") is not None or len(arguments) > 2:
            raise UnsupportedLayerError(
                f"{type(layer).__name__} was given edge weights: a weight per edge means another "
                "row per edge, and a source is sent once."
            )

    layer.register_forward_pre_hook(check, with_kwargs=True)


def _adapt_sage(layer: SAGEConv, partition: Partition, remote: RemoteSum) -> None:
    degrees = Anywhere(*_degrees(partition))
    mean = layer.aggr == "mean"
    pending = _Pending(remote)
    narrow = layer.lin_l.weight.shape[0] < layer.lin_l.weight.shape[1]

    def before(_layer: object, inputs: tuple[Any, ...]) -> None:
        rows = inputs[-1]["x"][0]
        # A sum and a linear map can be exchanged, so the narrower rows are sent.
        pending.launch(nn.functional.linear(rows, layer.lin_l.weight) if narrow else rows)

    def after(_layer: object, _inputs: object, sums: Tensor) -> Tensor:
        if mean:
            local, total = degrees.on(sums.device)
            sums = sums * local / total
        return sums if narrow else sums + _remote(sums)

    def transformed(_linear: object, _inputs: object, sums: Tensor) -> Tensor:
        return sums + _remote(sums)

    def _remote(like: Tensor) -> Tensor:
        _, total = degrees.on(like.device)
        return pending.land() / total if mean else pending.land()

    layer.register_propagate_forward_pre_hook(before)
    layer.register_propagate_forward_hook(after)
    if narrow:
        layer.lin_l.register_forward_hook(transformed)


def _degrees(partition: Partition) -> tuple[Tensor, Tensor]:
    """Return the neighbours that a mean divides by: on this worker, and in all; at least 1."""
    targets = torch.from_numpy(partition.edges)[1]
    local = torch.bincount(targets, minlength=len(partition.vertices))
    total = torch.from_numpy(partition.in_degree_with_self_loops)
    return local.clamp(min=1).float()[:, None], total.clamp(min=1).float()[:, None]


def _adapt_gin(layer: GINConv, _partition: Partition, remote: RemoteSum) -> None:
    pending = _Pending(remote)

    def before(_layer: object, inputs: tuple[Any, ...]) -> None:
        pending.launch(inputs[-1]["x"][0])

    def after(_layer: object, _inputs: object, sums: Tensor) -> Tensor:
        return sums + pending.land()

    layer.register_propagate_forward_pre_hook(before)
    layer.register_propagate_forward_hook(after)
