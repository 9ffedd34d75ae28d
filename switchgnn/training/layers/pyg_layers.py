"""The layers of PyG as sums: GCNConv, SAGEConv, GINConv, GraphConv."""

import inspect
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, GINConv, GraphConv, MessagePassing, SAGEConv

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.files import private_folder
from switchgnn.training.errors import ModelError, UnsupportedLayerError
from switchgnn.training.layers.attention import SourceAttentionConv, sum_source_attention
from switchgnn.training.layers.dropout import Anywhere
from switchgnn.training.layers.summed import (
    Framework,
    Make,
    Scaled,
    called_by,
    check_weights,
    checked_rows,
    maker_of,
    own_weights,
)
from switchgnn.training.partition import Partition

_SUMS = ("sum", "add")


def _check(name: str, layer: MessagePassing) -> Make | str:
    if layer.flow != "source_to_target":
        raise UnsupportedLayerError(
            f"{called_by(name, layer)} sends messages from target to source: give it the "
            "transposed edges and the flow source_to_target."
        )
    return maker_of(layer, layer.aggr, KINDS, _reason(layer))


def _reason(layer: MessagePassing) -> str:
    """Return why a layer is not one sum of a row per source, or not known to be."""
    if any(
        name == "alpha" or name[-2:] == "_i" for name in inspect.signature(layer.message).parameters
    ):
        return (
            "as in attention, its messages depend on both ends of an edge, not on the source alone"
        )
    if _repeats(layer):
        return f"it sums over neighbours K times in one call, here {layer.K}, and not once"
    return "it is not known to be one sum of a row per source"


def _repeats(layer: MessagePassing) -> bool:
    return isinstance(getattr(layer, "K", None), int)


def _rows(  # noqa: PLR0917 - the last ones are those of forward()
    called: str,
    _layer: MessagePassing,
    partition: Partition,
    x: object,
    edge_index: object,
    edge_weight: Tensor | None = None,
    size: tuple[int, int] | None = None,
) -> Tensor:
    fits = isinstance(edge_index, Tensor) and edge_index.shape == partition.edges.shape
    graph = f"the part's {partition.edges.shape[1]:,} edges, as a tensor"
    check_weights(called, edge_weight, partition.edge_weights)
    x = None if size is not None else x
    return checked_rows(called, x, fits=fits, graph=graph)


def _weighs(x: object, edge_index: object, edge_weight: object = None, **_: object) -> bool:
    return edge_weight is not None


def _call(model: nn.Module, x: Tensor, edges: Tensor, weights: Tensor | None) -> object:
    return model(x, edges) if weights is None else model(x, edges, weights)


PYG = Framework(
    lambda module: isinstance(module, MessagePassing),
    _check,
    _rows,
    lambda layer: not _repeats(layer),
    (
        _call,
        lambda model, x, edges, weights: model(Data(x=x, edge_index=edges, edge_weight=weights)),
    ),
    _weighs,
)


def _gcn(layer: GCNConv, partition: Partition, order: Tensor) -> Scaled:
    """``GCNConv``: D^-1/2 (A + I) D^-1/2 X W + b, with the degrees of the whole graph.

    The norm of an edge is a factor of its source times one of its destination.
    """

    def finish(_: Tensor, sums: Tensor) -> Tensor:
        return sums if layer.bias is None else sums + layer.bias

    if not layer.normalize:
        return Scaled(finish, layer.out_channels, layer.lin, *_ends(partition, order, None, None))
    # Without edge weights PyG takes 1 for all, even when `improved`.
    missing = 1.0 if partition.in_weight is None else 1.0 + layer.improved
    loops = missing if layer.add_self_loops else 0.0
    entering = partition.in_degree if partition.in_weight is None else partition.in_weight
    degree = torch.from_numpy(entering + own_weights(partition, loops)).float()
    factor = degree.pow(-0.5).masked_fill(degree == 0, 0.0)
    ends = _ends(partition, order, factor, factor)
    return Scaled(finish, layer.out_channels, layer.lin, *ends, loops=loops)


def _ends(
    partition: Partition, order: Tensor, source: Tensor | None, destination: Tensor | None
) -> tuple[Anywhere | None, Anywhere | None]:
    """Return what rows of sources and sums of destinations are multiplied by.

    These are the layer's own factors, float32[n] each, if any, times those of the weights, if any.
    """
    known = (
        [None, None] if partition.factors is None else [*map(torch.from_numpy, partition.factors)]
    )

    def both(own: Tensor | None, factor: Tensor | None) -> Anywhere | None:
        if own is not None and factor is not None:
            own = own * factor
        found = factor if own is None else own
        return None if found is None else Anywhere(found[order, None])

    return both(source, known[0]), both(destination, known[1])


def _sage(layer: SAGEConv, partition: Partition, order: Tensor) -> Scaled:
    """``SAGEConv`` with a mean or a sum: W1 (sum of X) / n + b + W2 X."""

    def finish(inputs: Tensor, outputs: Tensor) -> Tensor:
        if layer.lin_l.bias is not None:
            outputs = outputs + layer.lin_l.bias
        if layer.root_weight:
            outputs = outputs + layer.lin_r(inputs)
        return nn.functional.normalize(outputs, dim=-1) if layer.normalize else outputs

    return Scaled(
        finish,
        layer.out_channels,
        lambda rows: nn.functional.linear(rows, layer.lin_l.weight),
        destination=_ends(partition, order, None, _share(layer, partition))[1],
        project=(lambda inputs: layer.lin(inputs).relu()) if layer.project else None,
    )


def _graph(layer: GraphConv, partition: Partition, order: Tensor) -> Scaled:
    """``GraphConv`` with a mean or a sum: W1 (sum of X) / n + b + W2 X."""

    def finish(inputs: Tensor, outputs: Tensor) -> Tensor:
        if layer.lin_rel.bias is not None:
            outputs = outputs + layer.lin_rel.bias
        rooted: Tensor = outputs + layer.lin_root(inputs)
        return rooted

    return Scaled(
        finish,
        layer.out_channels,
        lambda rows: nn.functional.linear(rows, layer.lin_rel.weight),
        *_ends(partition, order, None, _share(layer, partition)),
    )


def _share(layer: MessagePassing, partition: Partition) -> Tensor | None:
    """Return the shares of neighbours in a mean; None: it is a sum."""
    if layer.aggr != "mean":
        return None
    total = torch.from_numpy(partition.in_degree_with_self_loops).clamp(min=1).float()
    return 1 / total


def _gin(layer: GINConv, _partition: Partition, _order: Tensor) -> Scaled:
    """``GINConv``: h((1 + eps) X + sum of X), where h need not be linear."""
    width = getattr(layer.nn, "out_channels", 0)  # of the MLP of PyG's own model, for bins
    return Scaled(lambda inputs, sums: layer.nn(sums + (1 + layer.eps) * inputs), width)


KINDS: tuple[tuple[Any, tuple[str, ...], Make], ...] = (
    (GCNConv, _SUMS, _gcn),
    (SAGEConv, ("mean", *_SUMS), _sage),
    (GINConv, _SUMS, _gin),
    (GraphConv, (*_SUMS, "mean"), _graph),
    (SourceAttentionConv, _SUMS, sum_source_attention),
)


@contextmanager
def templates_removed() -> Iterator[None]:
    """Delete the temporary files that this process makes in the block; threads share the folder."""
    before = tempfile.tempdir
    with private_folder("switchgnn-") as folder:
        tempfile.tempdir = str(folder)
        try:
            yield
        finally:
            tempfile.tempdir = before


# The traceback of an endless recursion would be as long.
_MOST_BYTES = 20_000


@contextmanager
def own_code(model: str, *, loading: bool = False) -> Iterator[None]:
    """Raise exceptions that passed through the user's file as ModelError, except our own.

    The model is ``FILE.py:NAME``, or the name of a built-in one, which has no such file. While the
    file is loaded, every exception is the user's.
    """
    file, colon, _ = model.rpartition(":")
    try:
        yield
    except SwitchGNNError:
        raise
    except Exception as error:
        begin = _first_in(file, error) if colon else None
        if begin is None and not loading:
            raise
        own = [frame for frame in traceback.extract_tb(begin) if frame.filename == file]
        where = f", in line {own[-1].lineno} ({own[-1].name})" if own else ""
        words = str(error).strip().partition("\n")[0].rstrip(".")
        reason = f"{type(error).__name__}: {words}" if words else type(error).__name__
        details = _details(error, begin)
        raise ModelError(f"The model {model} failed{where}: {reason}.", details) from error


def _first_in(file: str, error: Exception) -> TracebackType | None:
    """Return the part of a traceback from the first frame of a file on, if it has one."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != file:
        trace = trace.tb_next
    return trace


def _details(error: Exception, begin: TracebackType | None) -> str:
    """Return the traceback; an empty text if it has no line of the user's."""
    if begin is None and not isinstance(error, SyntaxError):
        return ""
    text = "".join(traceback.format_exception(type(error), error, begin, chain=False))
    if len(text) > _MOST_BYTES:
        half = _MOST_BYTES // 2
        text = f"{text[:half]}\n[...]\n{text[-half:]}"
    return text
