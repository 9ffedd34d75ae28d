# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Computes PyG's layers on the rows of a bin, before their exchange and after it.

The sums are those of `layers/whole.py`, for some of the rows: a layer makes a row that is
sent, and computes its output from the sum over all neighbours and its input.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, GINConv, MessagePassing, SAGEConv

from switchgnn.training.errors import UnsupportedLayerError
from switchgnn.training.layers.whole import check_layer, gcn_edges, gcn_factor
from switchgnn.training.partition import Partition


class BinLayer(Protocol):
    """A layer that computes bin by bin. Rows are in the order in which they are computed."""

    @property
    def edges(self) -> Tensor:
        """int64[2, E], the local edges whose rows are added."""

    @property
    def width(self) -> int:
        """The number of elements of an output."""

    def rows(self, inputs: Tensor, span: slice) -> Tensor:
        """Return what is sent to the neighbours, one row for each input."""

    def outputs(self, inputs: Tensor, sums: Tensor, span: slice) -> Tensor:
        """Return the outputs, given the sums over all neighbours.

        Args:
            inputs: float32[k, F], the layer's inputs of a bin.
            sums: float32[k, G], the sums over all neighbours of the rows that are sent.
            span: the places of the bin's k rows.

        Returns:
            float32[k, width].
        """


def bin_layer(name: str, layer: MessagePassing, partition: Partition, order: Tensor) -> BinLayer:
    """Return a layer that computes bin by bin.

    Args:
        name: the name of the layer, for messages.
        layer: the layer whose parameters are used.
        partition: this worker's part of the graph.
        order: int64[n], the rows of the partition in the order in which they are computed.

    Returns:
        The layer; it shares its parameters with ``layer``.

    Raises:
        UnsupportedLayerError: the layer cannot be computed in this way.
    """
    check_layer(name, layer)
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    edges = torch.from_numpy(partition.edges)
    if isinstance(layer, GCNConv):
        factor = gcn_factor(layer, partition)[order]
        if layer.normalize:
            edges = gcn_edges(layer, partition)[0]
        return _BinGCN(layer, place[edges], factor)
    if isinstance(layer, SAGEConv):
        if layer.project or layer.normalize:
            raise UnsupportedLayerError(
                f"Layer {name} (SAGEConv) projects or normalises, which is not done in bins: "
                "take another transport than g3."
            )
        total = torch.from_numpy(partition.in_degree_with_self_loops).clamp(min=1).float()[order]
        divisor = total if layer.aggr == "mean" else torch.ones_like(total)
        narrow = layer.lin_l.weight.shape[0] < layer.lin_l.weight.shape[1]
        return (_BinSAGENarrow if narrow else _BinSAGE)(layer, place[edges], divisor[:, None])
    assert isinstance(layer, GINConv)  # noqa: S101  there are no others
    return _BinGIN(layer, place[edges])


@dataclass(frozen=True, eq=False)
class _BinGCN:
    layer: GCNConv
    edges: Tensor
    factor: Tensor

    @property
    def width(self) -> int:
        return int(self.layer.out_channels)

    def rows(self, inputs: Tensor, span: slice) -> Tensor:
        rows: Tensor = self.layer.lin(inputs) * self.factor[span]
        return rows

    def outputs(self, _inputs: Tensor, sums: Tensor, span: slice) -> Tensor:
        outputs = sums * self.factor[span]
        return outputs if self.layer.bias is None else outputs + self.layer.bias


@dataclass(frozen=True, eq=False)
class _BinSAGE:
    layer: SAGEConv
    edges: Tensor
    divisor: Tensor

    @property
    def width(self) -> int:
        return int(self.layer.out_channels)

    def rows(self, inputs: Tensor, _span: slice) -> Tensor:
        return inputs

    def outputs(self, inputs: Tensor, sums: Tensor, span: slice) -> Tensor:
        return self._with_root(self.layer.lin_l(sums / self.divisor[span]), inputs)

    def _with_root(self, outputs: Tensor, inputs: Tensor) -> Tensor:
        return outputs + self.layer.lin_r(inputs) if self.layer.root_weight else outputs


class _BinSAGENarrow(_BinSAGE):
    """Sends the rows after the linear map, which are narrower; the sums stay the same."""

    def rows(self, inputs: Tensor, _span: slice) -> Tensor:
        return nn.functional.linear(inputs, self.layer.lin_l.weight)

    def outputs(self, inputs: Tensor, sums: Tensor, span: slice) -> Tensor:
        outputs = sums / self.divisor[span]
        if self.layer.lin_l.bias is not None:
            outputs = outputs + self.layer.lin_l.bias
        return self._with_root(outputs, inputs)


@dataclass(frozen=True, eq=False)
class _BinGIN:
    layer: GINConv
    edges: Tensor

    @property
    def width(self) -> int:
        linear = [each for each in self.layer.nn.modules() if hasattr(each, "weight")]
        return int(linear[-1].weight.shape[0]) if linear else 1

    def rows(self, inputs: Tensor, _span: slice) -> Tensor:
        return inputs

    def outputs(self, inputs: Tensor, sums: Tensor, _span: slice) -> Tensor:
        outputs: Tensor = self.layer.nn(sums + (1 + self.layer.eps) * inputs)
        return outputs
