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
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.nn.models.basic_gnn import BasicGNN

from switchgnn.host.direct import outbox as visit_order
from switchgnn.training.bins.options import pack_bins, vertices_per_bin
from switchgnn.training.bins.rounds import BinnedSum, LayerRounds
from switchgnn.training.errors import UnsupportedLayerError
from switchgnn.training.layers.dropout import drop_by_vertex
from switchgnn.training.layers.pyg_layers import local_edges, summed_layer
from switchgnn.training.partition import Partition
from switchgnn.training.sums.kept import KeptSum
from switchgnn.training.sums.neighbours import LocalSum, NeighbourSum


def distribute_in_bins(
    model: nn.Module,
    partition: Partition,
    remote: BinnedSum,
    *,
    seed: int = 0,
    precompute: bool = True,
) -> nn.Module:
    """Make a model compute on a partition, in bins, what it computes on the whole graph.

    Call the model with the partition's ``features`` and ``edges`` afterwards. The model is
    changed in place; its parameters keep their names and shapes.

    Args:
        model: PyG's GCN, GraphSAGE or GIN, without normalisation and jumping knowledge.
        partition: this worker's part of the graph.
        remote: the sums over remote neighbours.
        seed: the seed of dropout, as for ``distribute``.
        precompute: whether the sums of features that do not change are made once and kept.

    Returns:
        The same model.

    Raises:
        UnsupportedLayerError: the model cannot be computed in bins.
    """
    drop_by_vertex(model, torch.from_numpy(partition.vertices), seed)
    binned = _Binned(_check(model), partition, remote, precompute=precompute)
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
    """One bin of a layer, and the sums over the neighbours on this worker, of the rows of all."""

    span: slice
    local: NeighbourSum


class _Pieces:
    """A layer's inputs and the rows that its neighbours add, bin by bin.

    Args:
        rounds: the exchange of the rows.

    Attributes:
        rounds: the exchange of the rows.
        sums_first: whether rows are summed before the layer's linear map.
        kept: [n, F], the sums over all neighbours that were made before; None: there are none.
    """

    def __init__(self, rounds: LayerRounds) -> None:
        self.rounds = rounds
        self.sums_first = False
        self.kept: Tensor | None = None
        self._pieces: list[tuple[int, Tensor, Tensor]] = []

    def take(self, inputs: Tensor, rows: Tensor, span: slice) -> None:
        """Store the inputs and rows of a bin, in any order."""
        self._pieces.append((span.start, inputs, rows))

    def whole(self) -> tuple[Tensor, Tensor]:
        """Return the inputs and the rows of all bins."""
        in_order = sorted(self._pieces, key=lambda piece: piece[0])
        _, inputs, rows = zip(*in_order, strict=True)
        return torch.cat(inputs), torch.cat(rows)

    def first(self, bins: list[_Bin]) -> int:
        """Wait until one of several bins has its sums, and return its index."""
        return 0 if self.kept is not None else self.rounds.first([each.span for each in bins])

    def sums(self, each: _Bin, rows: Tensor) -> Tensor:
        """Return a bin's sums over all neighbours."""
        if self.kept is not None:
            return self.kept[each.span]
        return self.rounds.add_remote(each.local(rows), each.span)


class _Binned:
    """A model that computes bin by bin. Rows are in the order in which they are computed."""

    def __init__(
        self, model: BasicGNN, partition: Partition, remote: BinnedSum, *, precompute: bool
    ) -> None:
        self._model = model
        self._partition = partition
        self._remote = remote
        self._order = local_order(partition)
        self._place = torch.empty_like(self._order)
        self._place[self._order] = torch.arange(len(self._order))
        self._layers = [
            summed_layer(f"convs.{number}", conv, partition, self._order)
            for number, conv in enumerate(model.convs)
        ]
        self._kept = KeptSum(remote.ledger) if precompute and self._layers[0].constant else None
        self._bins: list[list[_Bin]] = []

    def forward(self, features: Tensor, _edges: Tensor) -> Tensor:
        """Return the model's outputs for all rows of the partition."""
        if not self._bins:
            self._bins = self._pack(features.shape[1])
        pieces = self._first_rows(features)
        for number in range(len(self._layers)):
            pieces = self._finish(number, pieces)
        return pieces.whole()[0][self._place]

    def _pack(self, width: int) -> list[list[_Bin]]:
        """Cut the rows into bins, whose size per layer follows from its inputs and outputs."""
        bins = []
        for layer in self._layers:
            at_most = vertices_per_bin(self._remote.options, width, layer.width)
            spans = pack_bins(len(self._order), at_most)
            edges = self._place.numpy()[local_edges(self._partition, loops=layer.loops)]
            bins.append([_bin(edges, span, len(self._order)) for span in spans])
            width = layer.width
        return bins

    def _pieces(self) -> _Pieces:
        return _Pieces(LayerRounds(self._remote, self._order.numpy()))

    def _first_rows(self, features: Tensor) -> _Pieces:
        """Make and send the first layer's rows, unless their sums were kept."""
        pieces, inputs = self._pieces(), features[self._order]
        if self._kept is not None and not features.requires_grad:
            pieces.kept = self._kept.of(features)
        if pieces.kept is not None:
            pieces.sums_first = True
            pieces.take(inputs, inputs, slice(0, len(inputs)))
            return pieces
        for each in self._bins[0]:
            self._send(0, inputs[each.span], each.span, pieces)
        return pieces

    def _finish(self, number: int, pieces: _Pieces) -> _Pieces:
        """Finish a layer, each bin as soon as possible, and send the next layer's rows."""
        layer, bins = self._layers[number], list(self._bins[number])
        last = number == len(self._layers) - 1
        inputs, rows = pieces.whole()
        units = None if last else self._kept_units(layer.width)
        done, all_sums = self._pieces(), {}
        while bins:
            each = bins.pop(pieces.first(bins))
            sums = all_sums[each.span.start] = pieces.sums(each, rows)
            mapped = layer.map(sums) if pieces.sums_first else sums
            outputs = layer.after(inputs[each.span], mapped, each.span)
            if last:
                done.take(outputs, outputs, each.span)
                continue
            if self._model.act is not None:
                outputs = self._model.act(outputs)
            if units is not None:
                outputs = outputs * units[each.span]
            self._send(number + 1, outputs, each.span, done)
        if number == 0 and pieces.sums_first and pieces.kept is None:
            self._keep([all_sums[start] for start in sorted(all_sums)])
        return done

    def _keep(self, sums: list[Tensor]) -> None:
        """Keep the first layer's sums for as long as its inputs do not change."""
        if self._kept is not None and torch.is_grad_enabled() and not sums[0].requires_grad:
            self._kept.keep(torch.cat(sums))

    def _send(self, number: int, inputs: Tensor, span: slice, pieces: _Pieces) -> None:
        layer = self._layers[number]
        rows = layer.before(inputs, span)
        pieces.sums_first = layer.sums_first(rows)
        if not pieces.sums_first:
            rows = layer.map(rows)
        pieces.take(inputs, pieces.rounds.feed(rows, span), span)

    def _kept_units(self, width: int) -> Tensor | None:
        """Draw the units of a layer that dropout keeps, the same for bins of any size."""
        dropout = self._model.dropout
        if not dropout.training or not dropout.share:
            return None
        kept: Tensor = dropout(torch.ones(len(self._order), width))[self._order]
        return kept


def _bin(edges: NDArray[np.int64], span: slice, rows: int) -> _Bin:
    source, destination = edges
    here = (destination >= span.start) & (destination < span.stop)
    own = np.stack([source[here], destination[here] - span.start])
    return _Bin(span, NeighbourSum(LocalSum(own, (span.stop - span.start, rows)), None))
