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
from switchgnn.training.base.errors import ModelError, UnsupportedLayerError, first_line
from switchgnn.training.data.partition import Partition
from switchgnn.training.layers import summed
from switchgnn.training.layers.attention import SourceAttentionConv, sum_source_attention
from switchgnn.training.layers.forward import Anywhere
from switchgnn.training.layers.halo import PartEdges

_SUMS = ("sum", "add")


_STEPS = ("propagate", "message", "aggregate", "message_and_aggregate", "edge_update")
_HOOKS = [f"_{step}_forward{when}_hooks" for step in _STEPS for when in ("", "_pre")]


def _check(_name: str, layer: MessagePassing) -> summed.Make | str:
    if any(getattr(layer, hooks, None) for hooks in _HOOKS):
        return "has hooks on its messages, which a sum does not make one by one"
    return summed.maker_of(layer, layer.aggr, KINDS, _reason(layer))


def _reason(layer: MessagePassing) -> str:
    """Return why a layer is not one sum of a row per source, or not known to be."""
    if any(
        name == "alpha" or name[-2:] == "_i" for name in inspect.signature(layer.message).parameters
    ):
        return (
            "as in attention, its messages depend on both ends of an edge, not on the source alone"
        )
    if isinstance(getattr(layer, "K", None), int):
        return f"it sums over neighbours K times in one call, here {layer.K}, and not once"
    return "it is not known to be one sum of a row per source"


def _rows(  # noqa: PLR0917 - the last ones are those of forward()
    called: str,
    layer: MessagePassing,
    edges: PartEdges,
    x: object,
    edge_index: Any,  # noqa: ANN401
    edge_weight: Tensor | None = None,
    size: tuple[int, int] | None = None,
) -> tuple[Tensor, summed.View]:
    summed.check_weights(called, edge_weight, edges.partition.edge_weights)
    against = edges.reverse(called, edge_index, lambda: edge_index, edges.usual)
    against ^= layer.flow != "source_to_target" and not edges.partition.undirected
    if against and edge_weight is not None:
        raise UnsupportedLayerError(
            f"{called} sums against the edges of a directed graph, whose weights are known along "
            "them only: call it without weights."
        )
    rows = summed.checked_rows(called, None if size is not None else x, edges)
    return rows, summed.View(edge_weight is not None, against)


def _call(model: nn.Module, x: Tensor, edges: Tensor, weights: Tensor | None) -> object:
    return model(x, edges) if weights is None else model(x, edges, weights)


PYG = summed.Framework(
    lambda module: isinstance(module, MessagePassing),
    _check,
    _rows,
    True,
    (
        _call,
        lambda model, x, edges, weights: model(Data(x=x, edge_index=edges, edge_weight=weights)),
    ),
)


def _gcn(layer: GCNConv, partition: Partition, order: Tensor) -> summed.Scaled:
    """``GCNConv``: D^-1/2 (A + I) D^-1/2 X W + b, with the degrees of the whole graph.

    The norm of an edge is a factor of its source times one of its destination.
    """

    def finish(_: Tensor, sums: Tensor) -> Tensor:
        return sums if layer.bias is None else sums + layer.bias

    # A map that is no plain product is called as in one process, before the sum.
    plain, width = summed.is_plain(layer.lin), layer.out_channels
    linear, project = (layer.lin, None) if plain else (None, layer.lin)
    if not layer.normalize:
        ends = _ends(partition, order, None, None)
        return summed.Scaled(finish, width, linear, *ends, project)
    # Without edge weights PyG takes 1 for all, even when `improved`.
    missing = 1.0 if partition.in_weight is None else 1.0 + layer.improved
    loops = missing if layer.add_self_loops else 0.0
    entering = partition.in_degree if partition.in_weight is None else partition.in_weight
    degree = torch.from_numpy(entering + summed.own_weights(partition, loops)).float()
    factor = degree.pow(-0.5).masked_fill(degree == 0, 0.0)
    ends = _ends(partition, order, factor, factor)
    return summed.Scaled(finish, width, linear, *ends, project, loops=loops)


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


def _sage(layer: SAGEConv, partition: Partition, order: Tensor) -> summed.Scaled:
    """``SAGEConv`` with a mean or a sum: W1 (sum of X) / n + b + W2 X."""
    linear, rest = summed.split_map(layer.lin_l)

    def finish(inputs: Tensor, sums: Tensor) -> Tensor:
        outputs = rest(sums)
        if layer.root_weight:
            outputs = outputs + layer.lin_r(inputs)
        return nn.functional.normalize(outputs, dim=-1) if layer.normalize else outputs

    return summed.Scaled(
        finish,
        layer.out_channels,
        linear,
        destination=_ends(partition, order, None, _share(layer, partition))[1],
        project=(lambda inputs: layer.lin(inputs).relu()) if layer.project else None,
    )


def _graph(layer: GraphConv, partition: Partition, order: Tensor) -> summed.Scaled:
    """``GraphConv`` with a mean or a sum: W1 (sum of X) / n + b + W2 X."""
    linear, rest = summed.split_map(layer.lin_rel)

    def finish(inputs: Tensor, sums: Tensor) -> Tensor:
        rooted: Tensor = rest(sums) + layer.lin_root(inputs)
        return rooted

    return summed.Scaled(
        finish, layer.out_channels, linear, *_ends(partition, order, None, _share(layer, partition))
    )


def _share(layer: MessagePassing, partition: Partition) -> Tensor | None:
    """Return the shares of neighbours in a mean; None: it is a sum."""
    if layer.aggr != "mean":
        return None
    total = torch.from_numpy(partition.in_degree + partition.self_loop).clamp(min=1).float()
    return 1 / total


def _gin(layer: GINConv, _partition: Partition, _order: Tensor) -> summed.Scaled:
    """``GINConv``: h((1 + eps) X + sum of X), where h need not be linear."""
    width = getattr(layer.nn, "out_channels", 0)  # of the MLP of PyG's own model, for bins
    return summed.Scaled(lambda inputs, sums: layer.nn(sums + (1 + layer.eps) * inputs), width)


KINDS: tuple[tuple[Any, tuple[str, ...], summed.Make], ...] = (
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
        why = f"The model {model} failed{where}: {first_line(error)}."
        raise ModelError(why, _details(error, begin)) from error


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
    return "".join(traceback.format_exception(type(error), error, begin, chain=False))
