"""The layers of DGL 1.1.3 as sums: GraphConv, SAGEConv, GINConv; graphs of DGL from and to `Data`.

DGL adds no self-loops: those of the graph count, in degrees, too.
"""

from dataclasses import dataclass
from typing import Any

import dgl
import torch
from dgl.nn import GINConv, GraphConv, SAGEConv
from torch import Tensor, nn
from torch_geometric.data import Data

from switchgnn.training.errors import JobError, UnsupportedLayerError
from switchgnn.training.layers.dropout import Anywhere
from switchgnn.training.layers.summed import (
    ALL_ROWS,
    Framework,
    Make,
    SummedLayer,
    called_by,
    checked_rows,
    known_layer,
)
from switchgnn.training.partition import Partition

# Modules of DGL in these mix vertices, or are parts of others that do.
_MIXING = tuple(f"dgl.nn.pytorch.{name}" for name in ("conv", "glob", "hetero"))
_MASKS = ("train_mask", "val_mask", "test_mask")
# The names in a `Data`, and those that DGL's data sets use.
_NAMES = {"x": "feat", "y": "label", **{mask: mask for mask in _MASKS}}


def graph_of(data: Data) -> Any:  # noqa: ANN401 - DGL has no types
    """Return a ``Data`` as a DGLGraph with `feat`, `label`, the masks, and the ids in dgl.NID."""
    graph = dgl.graph(tuple(data.edge_index), num_nodes=len(data.x))
    for name, feature in {**_NAMES, "n_id": dgl.NID}.items():
        if name in data:
            graph.ndata[feature] = data[name]
    return graph


def data_of(graph: Any, name: str) -> Data:  # noqa: ANN401 - DGL has no types
    """Return a DGLGraph of whole data, with the node data of :func:`graph_of`, as a ``Data``."""
    if not graph.is_homogeneous:
        raise JobError(
            f"The graph {name} has several types of nodes or edges: it must be homogeneous, as "
            "from dgl.to_homogeneous()."
        )
    if graph.is_multigraph:
        raise JobError(
            f"The graph {name} has parallel edges, whose sources would count once: remove them "
            "with dgl.to_simple()."
        )
    if missing := [each for each in _NAMES.values() if each not in graph.ndata]:
        raise JobError(
            f"The graph {name} has no {missing[0]}: its ndata must have "
            f"{', '.join(_NAMES.values())}."
        )
    features = {name: graph.ndata[feature] for name, feature in _NAMES.items()}
    return Data(edge_index=torch.stack(graph.edges()), **features)


@dataclass(frozen=True, eq=False)
class _Scaled(SummedLayer):
    """A sum with factors of sources and of destinations, [n, 1]; None is 1."""

    layer: Any
    source: Anywhere | None = None
    destination: Anywhere | None = None

    @property
    def width(self) -> int:
        return int(self.layer._out_feats)

    def before(self, inputs: Tensor, span: slice = ALL_ROWS) -> Tensor:
        return _times(inputs, self.source, span)

    def _averaged(self, sums: Tensor, span: slice) -> Tensor:
        return _times(sums, self.destination, span)


def _times(rows: Tensor, factor: Anywhere | None, span: slice) -> Tensor:
    return rows if factor is None else rows * factor.on(rows.device)[0][span]


class _GraphConv(_Scaled):
    """``GraphConv``: D_in^-1/2 A D_out^-1/2 X W + b; `norm` says which degrees count, and how."""

    @classmethod
    def of(cls, layer: GraphConv, partition: Partition, order: Tensor) -> "_GraphConv":
        incoming, outgoing = _degrees(partition, order)
        if not layer._allow_zero_in_degree and (incoming == 0).any():
            raise UnsupportedLayerError(
                "GraphConv refuses graphs with vertices without incoming edges, as here: write the "
                "job of dgl.add_self_loop(g), or set allow_zero_in_degree=True."
            )
        power = -0.5 if layer._norm == "both" else -1.0
        source, destination = (
            Anywhere(degrees.clamp(min=1).pow(power)) if layer._norm in norms else None
            for degrees, norms in ((outgoing, ("both", "left")), (incoming, ("both", "right")))
        )
        return cls(layer, source, destination)

    @property
    def mapped_width(self) -> int | None:
        return None if self.layer.weight is None else self.width

    def map(self, rows: Tensor) -> Tensor:
        return rows if self.layer.weight is None else rows @ self.layer.weight

    def after(self, _inputs: Tensor, sums: Tensor, span: slice = ALL_ROWS) -> Tensor:
        outputs = self._averaged(sums, span)
        if self.layer.bias is not None:
            outputs = outputs + self.layer.bias
        return _applied(outputs, self.layer._activation)


class _SageConv(_Scaled):
    """``SAGEConv``: mean of X W1, plus X W2 + b; `gcn`: mean with the own row, plus b."""

    @classmethod
    def of(cls, layer: SAGEConv, partition: Partition, order: Tensor) -> "_SageConv":
        incoming, _ = _degrees(partition, order)
        own = layer._aggre_type == "gcn"
        return cls(layer, None, Anywhere(1 / (incoming + 1 if own else incoming.clamp(min=1))))

    @property
    def mapped_width(self) -> int:
        return self.width

    def map(self, rows: Tensor) -> Tensor:
        mapped: Tensor = self.layer.fc_neigh(rows)
        return mapped

    def after(self, inputs: Tensor, sums: Tensor, span: slice = ALL_ROWS) -> Tensor:
        if self.layer._aggre_type == "gcn":
            outputs = self._averaged(sums + self.map(inputs), span)
            outputs = outputs if self.layer.bias is None else outputs + self.layer.bias
        else:
            outputs = self.layer.fc_self(inputs) + self._averaged(sums, span)
        return _applied(outputs, self.layer.activation, self.layer.norm)


class _GinConv(_Scaled):
    """``GINConv``: h((1 + eps) X + sum or mean of X), where h need not be linear."""

    @classmethod
    def of(cls, layer: GINConv, partition: Partition, order: Tensor) -> "_GinConv":
        if layer._aggregator_type == "sum":
            return cls(layer)
        return cls(layer, None, Anywhere(1 / _degrees(partition, order)[0].clamp(min=1)))

    def after(self, inputs: Tensor, sums: Tensor, span: slice = ALL_ROWS) -> Tensor:
        outputs = (1 + self.layer.eps) * inputs + self._averaged(sums, span)
        return _applied(outputs, self.layer.apply_func, self.layer.activation)


def _degrees(partition: Partition, order: Tensor) -> tuple[Tensor, Tensor]:
    """Return the degrees into and out of vertices, float32[n, 1]."""
    both = (partition.in_degree, partition.out_degree)
    incoming, outgoing = (
        torch.from_numpy(each + partition.self_loop).float()[order, None] for each in both
    )
    return incoming, outgoing


def _applied(rows: Tensor, *functions: Any) -> Tensor:  # noqa: ANN401
    for function in functions:
        rows = rows if function is None else function(rows)
    return rows


_KINDS: tuple[tuple[Any, tuple[str, ...], Make], ...] = (
    (GraphConv, ("sum",), _GraphConv.of),
    (SAGEConv, ("mean", "gcn"), _SageConv.of),
    (GINConv, ("sum", "mean"), _GinConv.of),
)


def _check(name: str, layer: nn.Module) -> Make:
    aggregation = getattr(layer, "_aggre_type", getattr(layer, "_aggregator_type", "sum"))
    make = known_layer(called_by(name, layer), layer, aggregation, _KINDS, "forward")
    if make is None:
        raise UnsupportedLayerError(
            f"{called_by(name, layer)} cannot be summed by the switch: it is not known to be one "
            "sum of a row per source. Use GraphConv, SAGEConv or GINConv."
        )
    return make


def _rows(  # noqa: PLR0917 - the last ones are those of forward()
    called: str,
    layer: nn.Module,
    partition: Partition,
    graph: Any,  # noqa: ANN401
    feat: object,
    weight: Tensor | None = None,
    edge_weight: Tensor | None = None,
) -> Tensor:
    size = (len(partition.vertices), partition.edges.shape[1])
    fits = isinstance(graph, dgl.DGLGraph) and (graph.num_nodes(), graph.num_edges()) == size
    if weight is not None:
        # GraphConv alone has the argument; the third one of others is the weights of edges.
        if isinstance(layer, GraphConv):
            raise UnsupportedLayerError(f"{called} was given a weight: let it have its own.")
        edge_weight = weight
    rows = checked_rows(called, feat, edge_weight, fits=fits, graph="`graph_of(worker)`")
    dropped: Tensor = layer.feat_drop(rows) if isinstance(layer, SAGEConv) else rows
    return dropped


DGL = Framework(
    lambda module: any(each.__module__.startswith(_MIXING) for each in type(module).__mro__),
    _check,
    _rows,
    (lambda model, x, edges: model(graph_of(Data(x=x, edge_index=edges)), x),),
)
