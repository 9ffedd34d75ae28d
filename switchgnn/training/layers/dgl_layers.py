"""The layers of DGL 1.1.3 as sums: GraphConv, SAGEConv, GINConv. Graphs of DGL from and to `Data`.

DGL adds no self-loops; those of the graph count, in degrees as well.
"""

from typing import Any

import dgl
import torch
from dgl.nn import GINConv, GraphConv, SAGEConv
from torch import Tensor
from torch_geometric.data import Data

from switchgnn.training.base.errors import JobError, UnsupportedLayerError
from switchgnn.training.data.partition import Partition
from switchgnn.training.layers import summed
from switchgnn.training.layers.forward import Anywhere
from switchgnn.training.layers.halo import PartEdges

# The modules of DGL in these mix vertices, or are parts of others that do.
_MIXING = tuple(f"dgl.nn.pytorch.{name}" for name in ("conv", "glob", "hetero"))
# The names in a `Data`, and those that DGL's data sets use.
_MASKS = ("train_mask", "val_mask", "test_mask")
_NAMES = {"x": "feat", "y": "label", **{mask: mask for mask in _MASKS}}
_USUAL = "`graph_of(worker.data)`"


def graph_of(data: Data) -> Any:  # noqa: ANN401 - DGL has no types
    """Return a worker's ``data`` as a DGLGraph: its vertices, and the edges between them.

    Its ``ndata`` has `feat`, `label`, the masks and, as ``dgl.NID``, the ids in the whole graph.
    Degrees and messages of your own see these edges alone; layers see the whole graph.
    """
    graph = dgl.graph(tuple(data.edge_index), num_nodes=len(data.x))
    for name, feature in {**_NAMES, "n_id": dgl.NID}.items():
        if name in data:
            graph.ndata[feature] = data[name]
    return graph


def data_of(graph: Any, name: str) -> Data:  # noqa: ANN401
    """Return a DGLGraph of a data set, with `feat`, `label` and the masks, as a ``Data``."""
    if missing := [each for each in _NAMES.values() if each not in graph.ndata]:
        raise JobError(
            f"The graph {name} has no {missing[0]}: ndata must have {', '.join(_NAMES.values())}."
        )
    if graph.is_multigraph:
        raise JobError(f"The graph {name} has parallel edges: remove them with dgl.to_simple().")
    features = {name: graph.ndata[feature] for name, feature in _NAMES.items()}
    return Data(edge_index=torch.stack(graph.edges()), **features)


def _graph_conv(layer: GraphConv, partition: Partition, order: Tensor) -> summed.Scaled:
    """``GraphConv``: D_in^-1/2 A D_out^-1/2 X W + b; `norm` says which degrees count, and how."""
    incoming, outgoing = _degrees(partition, order)
    if not layer._allow_zero_in_degree and (incoming == 0).any():
        raise UnsupportedLayerError(
            "GraphConv refuses graphs with vertices without incoming edges, as here: write the "
            "job of dgl.add_self_loop(g), or set allow_zero_in_degree=True."
        )
    power = -0.5 if layer._norm == "both" else -1.0
    source, destination = (
        Anywhere(degrees.clamp(min=1).pow(power)) if layer._norm in ("both", norm) else None
        for degrees, norm in ((outgoing, "left"), (incoming, "right"))
    )

    def finish(_: Tensor, sums: Tensor) -> Tensor:
        return _finished(sums, layer.bias, layer._activation)

    linear = None if layer.weight is None else (lambda rows: rows @ layer.weight)
    return summed.Scaled(finish, layer._out_feats, linear, source, destination)


def _sage_conv(layer: SAGEConv, partition: Partition, order: Tensor) -> summed.Scaled:
    """``SAGEConv``: X W2 + b + mean of X W1; as `gcn` b + mean of X W1 with the own row."""
    gcn = layer._aggre_type == "gcn"
    incoming, _ = _degrees(partition, order)

    linear, rest = summed.split_map(layer.fc_neigh)

    def finish(inputs: Tensor, sums: Tensor) -> Tensor:
        means = rest(sums)
        if not gcn:
            means = layer.fc_self(inputs) + means
        return _finished(means, layer.bias if gcn else None, layer.activation, layer.norm)

    factor = Anywhere(1 / (incoming + 1 if gcn else incoming.clamp(min=1)))
    return summed.Scaled(finish, layer._out_feats, linear, destination=factor, own=gcn)


def _gin_conv(layer: GINConv, partition: Partition, order: Tensor) -> summed.Scaled:
    """``GINConv``: h((1 + eps) X + sum or mean of X), where h need not be linear."""

    def finish(inputs: Tensor, sums: Tensor) -> Tensor:
        return _finished((1 + layer.eps) * inputs + sums, None, layer.apply_func, layer.activation)

    factor = Anywhere(1 / _degrees(partition, order)[0].clamp(min=1))
    return summed.Scaled(finish, destination=factor if layer._aggregator_type == "mean" else None)


def _degrees(partition: Partition, order: Tensor) -> list[Tensor]:
    both = (partition.in_degree, partition.out_degree)
    return [torch.from_numpy(each + partition.self_loop).float()[order, None] for each in both]


def _finished(rows: Tensor, bias: Tensor | None, *functions: Any) -> Tensor:  # noqa: ANN401
    rows = rows if bias is None else rows + bias
    for function in functions:
        rows = rows if function is None else function(rows)
    return rows


_KINDS: tuple[tuple[Any, tuple[str, ...], summed.Make], ...] = (
    (GraphConv, ("sum",), _graph_conv),
    (SAGEConv, ("mean", "gcn"), _sage_conv),
    (GINConv, ("sum", "mean"), _gin_conv),
)


def _check(_name: str, layer: Any) -> summed.Make | str:  # noqa: ANN401
    kind = getattr(layer, "_aggre_type", getattr(layer, "_aggregator_type", "sum"))
    return summed.maker_of(layer, kind, _KINDS)


def _rows(  # noqa: PLR0917 - the last ones are those of forward()
    called: str,
    layer: Any,  # noqa: ANN401
    edges: PartEdges,
    graph: Any,  # noqa: ANN401
    feat: object,
    weight: Tensor | None = None,
    edge_weight: Tensor | None = None,
) -> tuple[Tensor, summed.View]:
    if weight is not None and isinstance(layer, GraphConv):
        raise UnsupportedLayerError(f"{called} was given a weight: let it have its own.")
    # Other layers have no `weight` before `edge_weight`.
    weights = edge_weight if weight is None else weight
    if weights is not None:
        raise UnsupportedLayerError(f"{called} was given edge weights: take a layer of PyG.")
    known = isinstance(graph, dgl.DGLGraph)
    against = edges.reverse(
        called, graph, lambda: torch.stack(graph.edges()) if known else None, _USUAL
    )
    rows = summed.checked_rows(called, feat, edges)
    dropped: Tensor = layer.feat_drop(rows) if isinstance(layer, SAGEConv) else rows
    return dropped, summed.View(against=against)


DGL = summed.Framework(
    lambda module: any(each.__module__.startswith(_MIXING) for each in type(module).__mro__),
    _check,
    _rows,
    False,
    (lambda model, x, edges, _: model(graph_of(Data(x=x, edge_index=edges)), x),),
)
