# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Computes a model as G3 does: bin by bin, each as soon as its own neighbours are there.

Wan et al., SIGMOD 2023. A bin's rows are sent while the next one is computed (intra-layer
pipeline), and a bin whose remote rows have arrived is finished, makes its rows for the next
layer and sends them while others still wait (inter-layer pipeline).
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.nn.models.basic_gnn import BasicGNN

from switchgnn.host.direct import visit_order
from switchgnn.training.bins.layers import BinLayer, bin_layer
from switchgnn.training.bins.options import pack_bins, vertices_per_bin
from switchgnn.training.bins.rounds import BinnedSum, LayerRounds
from switchgnn.training.errors import UnsupportedLayerError
from switchgnn.training.layers.dropout import drop_by_vertex
from switchgnn.training.partition import Partition


def distribute_in_bins(
    model: nn.Module, partition: Partition, remote: BinnedSum, *, seed: int = 0
) -> nn.Module:
    """Make a model compute on a partition, in bins, what it computes on the whole graph.

    Call the model with the partition's ``features`` and ``edges`` afterwards. The model is
    changed in place; its parameters keep their names and shapes.

    Args:
        model: PyG's GCN, GraphSAGE or GIN, without normalisation and jumping knowledge.
        partition: this worker's part of the graph.
        remote: the sums over remote neighbours.
        seed: the seed of dropout, as for ``distribute``.

    Returns:
        The same model.

    Raises:
        UnsupportedLayerError: the model cannot be computed in bins.
    """
    drop_by_vertex(model, torch.from_numpy(partition.vertices), seed)
    binned = _Binned(_check(model), partition, remote)
    object.__setattr__(model, "forward", binned.forward)
    return model


def local_order(partition: Partition) -> Tensor:
    """Return int64[n], the rows of a partition in the order in which they are computed."""
    edges, rows = partition.edges, len(partition.vertices)
    proper = edges[:, edges[0] != edges[1]]
    comes = partition.in_degree > np.bincount(proper[1], minlength=rows)
    goes = partition.out_degree > np.bincount(proper[0], minlength=rows)
    return torch.from_numpy(visit_order(proper, comes | goes))


def _check(model: nn.Module) -> BasicGNN:
    if not isinstance(model, BasicGNN):
        raise UnsupportedLayerError(
            f"{type(model).__name__} cannot be computed in bins: take PyG's GCN, GraphSAGE or "
            "GIN, or another transport than g3."
        )
    if model.jk_mode is not None or not all(isinstance(each, nn.Identity) for each in model.norms):
        raise UnsupportedLayerError(
            f"{type(model).__name__} has normalisation or jumping knowledge, which is not done "
            "in bins: leave it out, or take another transport than g3."
        )
    return model


@dataclass(frozen=True, eq=False)
class _Bin:
    """One bin of a layer, and the local edges into it, with the places of both ends."""

    span: slice
    source: Tensor
    destination: Tensor

    def local_sums(self, rows: Tensor) -> Tensor:
        """Add up the neighbours on this worker, given the rows of all."""
        size = self.span.stop - self.span.start
        zeros = rows.new_zeros((size, rows.shape[1]))
        return zeros.index_add(0, self.destination, rows.index_select(0, self.source))


class _Binned:
    """A model that computes bin by bin. Rows are in the order in which they are computed."""

    def __init__(self, model: BasicGNN, partition: Partition, remote: BinnedSum) -> None:
        self._model = model
        self._remote = remote
        self._order = local_order(partition)
        self._place = torch.empty_like(self._order)
        self._place[self._order] = torch.arange(len(self._order))
        self._layers = [
            bin_layer(f"convs.{number}", conv, partition, self._order)
            for number, conv in enumerate(model.convs)
        ]
        self._bins: list[list[_Bin]] = []

    def forward(self, features: Tensor, _edges: Tensor) -> Tensor:
        """Return the model's outputs for all rows of the partition."""
        if not self._bins:
            self._bins = self._pack(features.shape[1])
        pieces = self._first_rows(features[self._order])
        for number in range(len(self._layers)):
            pieces = self._finish(number, pieces)
        return pieces.whole()[0][self._place]

    def _pack(self, width: int) -> list[list[_Bin]]:
        """Cut the rows into bins, whose size per layer follows from its inputs and outputs."""
        bins = []
        for layer in self._layers:
            at_most = vertices_per_bin(self._remote.options, width, layer.width)
            spans = pack_bins(len(self._order), at_most)
            bins.append([_bin(layer, span) for span in spans])
            width = layer.width
        return bins

    def _first_rows(self, features: Tensor) -> "_Pieces":
        """Make and send the first layer's rows."""
        pieces = _Pieces(LayerRounds(self._remote, self._order.numpy()))
        for each in self._bins[0]:
            self._send(0, features[each.span], each.span, pieces)
        return pieces

    def _finish(self, number: int, pieces: "_Pieces") -> "_Pieces":
        """Finish a layer, each bin as soon as possible, and send the next layer's rows."""
        layer, bins = self._layers[number], list(self._bins[number])
        last = number == len(self._layers) - 1
        inputs, rows = pieces.whole()
        kept = None if last else self._kept(layer.width)
        done = _Pieces(LayerRounds(self._remote, self._order.numpy()))
        while bins:
            each = bins.pop(pieces.rounds.first([each.span for each in bins]))
            sums = pieces.rounds.add_remote(each.local_sums(rows), each.span)
            outputs = layer.outputs(inputs[each.span], sums, each.span)
            if last:
                done.take(outputs, outputs, each.span)
                continue
            if self._model.act is not None:
                outputs = self._model.act(outputs)
            if kept is not None:
                outputs = outputs * kept[each.span]
            self._send(number + 1, outputs, each.span, done)
        return done

    def _send(self, number: int, inputs: Tensor, span: slice, pieces: "_Pieces") -> None:
        rows = pieces.rounds.feed(self._layers[number].rows(inputs, span), span)
        pieces.take(inputs, rows, span)

    def _kept(self, width: int) -> Tensor | None:
        """Draw the units of a layer that dropout keeps, the same for bins of any size."""
        dropout = self._model.dropout
        if not dropout.training or not dropout.share:
            return None
        kept: Tensor = dropout(torch.ones(len(self._order), width))[self._order]
        return kept


class _Pieces:
    """A layer's inputs and the rows that its neighbours add, bin by bin.

    Args:
        rounds: the exchange of the rows.
    """

    def __init__(self, rounds: LayerRounds) -> None:
        self.rounds = rounds
        self._pieces: list[tuple[int, Tensor, Tensor]] = []

    def take(self, inputs: Tensor, rows: Tensor, span: slice) -> None:
        """Store the inputs and rows of a bin, in any order."""
        self._pieces.append((span.start, inputs, rows))

    def whole(self) -> tuple[Tensor, Tensor]:
        """Return the inputs and the rows of all bins."""
        in_order = sorted(self._pieces, key=lambda piece: piece[0])
        _, inputs, rows = zip(*in_order, strict=True)
        return torch.cat(inputs), torch.cat(rows)


def _bin(layer: BinLayer, span: slice) -> _Bin:
    source, destination = layer.edges
    here = (destination >= span.start) & (destination < span.stop)
    return _Bin(span, source[here], destination[here] - span.start)
