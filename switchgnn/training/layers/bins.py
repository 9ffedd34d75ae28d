"""Models computed as in G3: bin by bin, each as soon as its own neighbours are there.

Wan et al., SIGMOD 2023. A bin's rows are sent while the next one is computed (intra-layer
pipeline), and a bin whose remote rows have arrived is finished, makes its rows for the next
layer and sends them while others still wait (inter-layer pipeline).
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.nn.models.basic_gnn import BasicGNN

from switchgnn.base.array_types import Float32s, Int64s
from switchgnn.host.direct.outbox import visit_order
from switchgnn.host.direct.stream import Driver, Stream
from switchgnn.host.direct.transport import DirectTransport
from switchgnn.host.links.transport import Transport
from switchgnn.planner.base.direction import Direction
from switchgnn.training.base.errors import UnsupportedLayerError
from switchgnn.training.base.steps import SharedSteps
from switchgnn.training.data.partition import Partition
from switchgnn.training.exchange.cache import SkippedRows
from switchgnn.training.exchange.columns import Columns
from switchgnn.training.exchange.sums import (
    ExchangeClock,
    KeptSum,
    Ledger,
    LocalSum,
    NeighbourSum,
    RemoteSum,
)
from switchgnn.training.layers.dropout import drop_by_vertex
from switchgnn.training.layers.models import distribute
from switchgnn.training.layers.pyg_layers import PYG
from switchgnn.training.layers.summed import local_edges, require_sum

_BYTES_PER_ELEMENT = 4
# With one bin nothing would overlap.
_FEWEST = 2
# (intra, inter) by the names of G3's ablation study.
PIPELINES = {
    "both": (True, True),
    "intra": (True, False),
    "inter": (False, True),
    "sequential": (False, False),
}


@dataclass(frozen=True)
class BinOptions:
    """The size of bins, and the pipelines."""

    # bytes of two bins: one is computed while another one is sent. The default holds G3's 1,000
    # vertices per bin for 100 features and 16 units.
    memory: int = 1_000_000
    intra: bool = True  # whether rows are sent as soon as their bin is computed, or after all bins
    # whether a bin continues as soon as its own remote rows are there, or with those of the whole
    # layer
    inter: bool = True


def vertices_per_bin(options: BinOptions, inputs: int, outputs: int) -> int:
    """Return how many vertices fit in a bin: as in G3, a vertex takes its input and its output."""
    return max(1, options.memory // 2 // (_BYTES_PER_ELEMENT * (inputs + outputs)))


def pack_bins(vertices: int, at_most: int) -> list[slice]:
    """Return the bins in order, at least two of them if there are two vertices."""
    size = min(at_most, -(-vertices // _FEWEST))
    ends = [*range(0, vertices, size), vertices]
    return [slice(start, end) for start, end in pairwise(ends)]


class BinnedSum:
    """Sums over remote neighbours, bin by bin: of all columns and rows. A context manager."""

    columns: Columns | None = None
    skipped: SkippedRows | None = None

    def __init__(self, transport: DirectTransport, options: BinOptions) -> None:
        self.options = options
        self.transport = transport
        self._background = transport.in_background()
        self._driver: Driver | None = None
        self._clock = ExchangeClock()
        self.ledger = Ledger()
        self.steps = SharedSteps()

    def __enter__(self) -> "BinnedSum":
        self._driver = self._background.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:  # noqa: ANN401
        try:
            if error[0] is None:
                self.transport.finish()
                self.steps.leave()
        finally:
            self._background.__exit__(*error)

    def attending(self) -> AbstractContextManager[None]:
        """Answer other workers during a long block."""
        return self._driver.attending() if self._driver else nullcontext()

    @property
    def clock(self) -> ExchangeClock:
        """The seconds of rounds and of waiting until now."""
        self._clock.exchanging = self._driver.seconds if self._driver else 0.0
        return self._clock

    def begin(self, width: int, direction: Direction) -> Stream:
        """Begin a round of rows [n, width]."""
        self.ledger.enter(self.transport, width, direction)
        with self.waiting():
            return self.transport.begin(width, direction)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time of the block as waiting."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._clock.waiting += time.perf_counter() - started


# What exchanges rows for a model: as a whole, or bin by bin.
RemoteSums = RemoteSum | BinnedSum


def sums_over(
    transport: Transport, *, binned: bool, bins: BinOptions | None = None, keep: float = 1.0
) -> RemoteSums:
    """Return what exchanges rows over a transport; ``binned``: see ``TransportKind``."""
    if binned:
        return BinnedSum(cast("DirectTransport", transport), bins or BinOptions())
    return RemoteSum(transport, keep=keep)


def distribute_over(
    model: nn.Module,
    partition: Partition,
    remote: RemoteSums,
    **options: Any,  # noqa: ANN401
) -> nn.Module:
    """Make a model compute on a partition what it does on the whole graph; see ``distribute``."""
    if isinstance(remote, BinnedSum):
        return distribute_in_bins(model, partition, remote, **options)
    return distribute(model, partition, remote, **options)


class _OneRound:
    def __init__(self, remote: BinnedSum, direction: Direction, order: Int64s) -> None:
        self._remote = remote
        self._direction = direction
        self._order = order
        self._stream: Stream | None = None
        self._held: list[tuple[Int64s, Float32s]] = []
        self._left = len(order)
        self._needs: dict[int, Int64s] = {}

    def feed(self, rows: Tensor, span: slice) -> None:
        values = np.ascontiguousarray(rows.detach().numpy(), dtype=np.float32)
        if self._stream is None:
            self._stream = self._remote.begin(values.shape[1], self._direction)
        self._held.append((self._order[span], values))
        self._left -= len(values)
        if self._remote.options.intra or not self._left:
            for order, held in self._held:
                self._stream.feed(order, held)
            self._held.clear()

    def first(self, spans: Sequence[slice]) -> int:
        stream = self._begun
        if not self._remote.options.inter:
            # Without the inter-layer pipeline every bin waits for the rows of all.
            with self._remote.waiting():
                stream.wait_any([stream.needs(self._order)])
            return 0
        for span in spans:
            if span.start not in self._needs:
                self._needs[span.start] = stream.needs(self._order[span])
        with self._remote.waiting():
            return stream.wait_any([self._needs[span.start] for span in spans])

    def sums(self, span: slice) -> Tensor:
        if not self._remote.options.inter:
            self.first([span])
        with self._remote.waiting():
            return torch.from_numpy(self._begun.sums(self._order[span]))

    @property
    def _begun(self) -> Stream:
        assert self._stream is not None  # noqa: S101  a layer feeds rows before it waits
        return self._stream


def distribute_in_bins(
    model: nn.Module,
    partition: Partition,
    remote: BinnedSum,
    *,
    seed: int = 0,
    precompute: bool = True,
    **_: object,
) -> nn.Module:
    """Make a model compute on a partition, in bins, what it computes on the whole graph.

    The arguments are as for ``distribute``; no normalisations are computed in bins.
    """
    if partition.edge_weights is not None:
        raise UnsupportedLayerError("Bins have no edge weights: take another transport.")
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
    if not isinstance(model, BasicGNN) or type(model).forward is not BasicGNN.forward:
        raise UnsupportedLayerError(
            f"{type(model).__name__} cannot be computed in bins: take PyG's GCN, GraphSAGE or "
            "GIN, or another transport."
        )
    if model.jk_mode is not None or not all(isinstance(each, nn.Identity) for each in model.norms):
        raise UnsupportedLayerError(
            f"{type(model).__name__} has normalisation or jumping knowledge, which cannot be "
            "computed in bins: leave it out, or take another transport."
        )
    return model


@dataclass(frozen=True, eq=False)
class _Bin:
    span: slice
    local: NeighbourSum


class _Pieces:
    """A layer's inputs and the rows to sum, bin by bin, with their rounds forward and backward.

    `order`: int64[n], the worker's rows in the order in which they are computed.
    """

    def __init__(self, remote: BinnedSum, order: Int64s) -> None:
        self.sums_first = False  # whether rows are summed before the layer's linear map
        self.kept: Tensor | None = None  # [n, F], the kept sums over all neighbours, if any
        self._there = _OneRound(remote, Direction.FORWARD, order)
        self._back = _OneRound(remote, Direction.BACKWARD, order)
        self._pieces: list[tuple[int, Tensor, Tensor]] = []

    def take(self, inputs: Tensor, rows: Tensor, span: slice) -> None:
        self._pieces.append((span.start, inputs, rows))

    def send(self, inputs: Tensor, rows: Tensor, span: slice) -> None:
        """Send a bin's rows, and take them as a tensor that the sums can depend on."""
        self._there.feed(rows, span)
        fed = rows.view_as(rows)
        if fed.requires_grad:
            fed.register_hook(  # type: ignore[no-untyped-call]
                lambda gradient: gradient + self._back.sums(span)
            )
        self.take(inputs, fed, span)

    def whole(self) -> tuple[Tensor, Tensor]:
        _, inputs, rows = zip(*sorted(self._pieces, key=itemgetter(0)), strict=True)
        return torch.cat(inputs), torch.cat(rows)

    def first(self, bins: list[_Bin]) -> int:
        return 0 if self.kept is not None else self._there.first([each.span for each in bins])

    def sums(self, each: _Bin, rows: Tensor) -> Tensor:
        if self.kept is not None:
            return self.kept[each.span]
        sums = each.local(rows) + self._there.sums(each.span)
        if sums.requires_grad:
            sums.register_hook(  # type: ignore[no-untyped-call]
                lambda gradient: self._back.feed(gradient, each.span)
            )
        return sums


class _Binned:
    """A model that computes bin by bin. Rows are in the order in which they are computed."""

    def __init__(
        self, model: BasicGNN, partition: Partition, remote: BinnedSum, *, precompute: bool
    ) -> None:
        self._model = model
        self._partition = partition
        self._remote = remote
        self._order = local_order(partition)
        self._position = torch.empty_like(self._order)
        self._position[self._order] = torch.arange(len(self._order))
        self._layers = [
            require_sum(PYG, f"convs.{number}", conv)(conv, partition, self._order)
            for number, conv in enumerate(model.convs)
        ]
        self._kept = KeptSum(remote.ledger) if precompute and self._layers[0].constant else None
        self._bins: list[list[_Bin]] = []

    def forward(self, features: Tensor, _edges: Tensor) -> Tensor:
        if not self._bins:
            self._bins = self._pack(features.shape[1])
        pieces = self._first_rows(features)
        for number in range(len(self._layers)):
            pieces = self._finish(number, pieces)
        return pieces.whole()[0][self._position]

    def _pack(self, width: int) -> list[list[_Bin]]:
        bins = []
        for layer in self._layers:
            at_most = vertices_per_bin(self._remote.options, width, layer.width)
            spans = pack_bins(len(self._order), at_most)
            edges = self._position.numpy()[local_edges(self._partition, loops=layer.loops)]
            bins.append([_bin(edges, span, len(self._order)) for span in spans])
            width = layer.width
        return bins

    def _pieces(self) -> _Pieces:
        return _Pieces(self._remote, self._order.numpy())

    def _first_rows(self, features: Tensor) -> _Pieces:
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
            sums = torch.cat([all_sums[start] for start in sorted(all_sums)])
            if self._kept is not None and torch.is_grad_enabled() and not sums.requires_grad:
                self._kept.keep(sums)
        return done

    def _send(self, number: int, inputs: Tensor, span: slice, pieces: _Pieces) -> None:
        layer = self._layers[number]
        rows = layer.before(inputs, span)
        pieces.sums_first = layer.sums_first(rows)
        if not pieces.sums_first:
            rows = layer.map(rows)
        pieces.send(inputs, rows, span)

    def _kept_units(self, width: int) -> Tensor | None:
        """Draw the units of a layer that dropout keeps, independently of the bins."""
        dropout = self._model.dropout
        if not dropout.training or not dropout.p:
            return None
        kept: Tensor = dropout(torch.ones(len(self._order), width))[self._order]
        return kept


def _bin(edges: Int64s, span: slice, rows: int) -> _Bin:
    source, destination = edges
    here = (destination >= span.start) & (destination < span.stop)
    own = np.stack([source[here], destination[here] - span.start])
    return _Bin(span, NeighbourSum(LocalSum(own, (span.stop - span.start, rows)), None))
