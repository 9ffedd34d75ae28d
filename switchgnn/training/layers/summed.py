"""Layers as `after(x, map(sum of before(x)))`, with a linear map, for any way to make the sums."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn

from switchgnn.base.array_types import Float32s, Int64s
from switchgnn.training.base.errors import UnsupportedLayerError
from switchgnn.training.data.partition import Partition
from switchgnn.training.layers.forward import Anywhere
from switchgnn.training.layers.halo import PartEdges, check_row_count

ALL_ROWS = slice(None)
_HOOKS = tuple(f"_{kind}_hooks" for kind in ("forward", "forward_pre", "backward", "backward_pre"))
_MAPS = ("lin", "lin_l", "lin_rel", "fc_neigh")
_COPIES = ", or --transport host without compression, sampling or vertex cut, which copies rows"
_COPIES_IN_SCRIPT = (
    ', or copies of rows: join(..., transport="host") without bits and cache, or a job of '
    "write_job(..., copies=True)"
)


class SummedLayer(ABC):
    """A layer that is ``after(x, map(sum of before(x)))``, where ``map`` is linear."""

    # the weight of each vertex as its own neighbour, once, where it has no self-loop with another
    # one; 0: the self-loops of the input stay as they are
    loops: float = 0.0

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of elements of an output."""

    @property
    def mapped_width(self) -> int | None:
        """The number of elements of a row after ``map``; None if there is no map."""
        return None

    @property
    def constant(self) -> bool:
        """Whether ``before`` returns the same rows for the same inputs in every pass."""
        return True

    def before(self, inputs: Tensor, _span: slice = ALL_ROWS) -> Tensor:
        """Return the rows to sum, [k, F], of the inputs [k, F] of the span."""
        return inputs

    def map(self, rows: Tensor) -> Tensor:
        """Return the rows after the linear map, [k, mapped_width], without a bias."""
        return rows

    @abstractmethod
    def after(self, inputs: Tensor, sums: Tensor, span: slice = ALL_ROWS) -> Tensor:
        """Return the outputs [k, width] of inputs [k, F] and their sums [k, mapped_width]."""

    def sums_first(self, rows: Tensor) -> bool:
        """Return whether summing rows [k, F] before the map exchanges fewer elements.

        Gradients are exchanged as well: of rows that need one, and in training always of mapped
        rows, because the weights of the map need one.
        """
        if self.mapped_width is None:
            return True
        passes = 1 + torch.is_grad_enabled()
        return rows.shape[1] * (1 + rows.requires_grad) <= self.mapped_width * passes


def local_edges(partition: Partition, *, loops: float) -> Int64s:
    """Return the edges with both ends on this worker, int64[2, E]."""
    if not loops:
        return partition.edges
    rows = np.arange(partition.own)
    proper = partition.edges[:, partition.edges[0] != partition.edges[1]]
    return np.concatenate([proper, np.stack([rows, rows])], axis=1)


def local_weights(partition: Partition, *, loops: float) -> Float32s | None:
    """Return the weights of these edges, float32[E], by the factors of their ends; None: all 1."""
    weights = partition.edge_weights
    if weights is None:
        return None
    if loops:
        proper = partition.edges[0] != partition.edges[1]
        own = own_weights(partition, loops)[: partition.own]
        weights = np.concatenate([weights[proper], own])
    if partition.factors is not None:
        source, destination = local_edges(partition, loops=loops)
        weights = weights / (partition.factors[0, source] * partition.factors[1, destination])
    return weights


def own_weights(partition: Partition, missing: float) -> Float32s:
    """Return the weight of each vertex's self-loop, float32[n], or `missing` where it has none."""
    own = np.full(len(partition.vertices), missing, dtype=np.float32)
    if partition.loop_weight is not None:
        return np.where(partition.self_loop, partition.loop_weight, own)
    weights, (source, destination) = partition.edge_weights, partition.edges
    loop = source == destination
    own[source[loop]] = 1.0 if weights is None else weights[loop]
    return own


@dataclass(frozen=True, eq=False)
class Scaled(SummedLayer):
    """A sum of rows times factors of their sources, times factors of destinations, both [n, 1]."""

    finish: Callable[[Tensor, Tensor], Tensor]  # returns the outputs, of the inputs and the sums
    width: int = 0  # of an output; maps and bins need it
    linear: Callable[[Tensor], Tensor] | None = None  # the map
    source: Anywhere | None = None
    destination: Anywhere | None = None
    project: Callable[[Tensor], Tensor] | None = None  # makes the rows of the inputs
    loops: float = 0.0
    own: bool = False  # whether the own row is added, besides self-loops

    @property
    def mapped_width(self) -> int | None:  # noqa: D102
        return None if self.linear is None else self.width

    @property
    def constant(self) -> bool:  # noqa: D102
        return self.project is None

    def before(self, inputs: Tensor, span: slice = ALL_ROWS) -> Tensor:  # noqa: D102
        rows = inputs if self.project is None else self.project(inputs)
        return _times(rows, self.source, span)

    def map(self, rows: Tensor) -> Tensor:  # noqa: D102
        return rows if self.linear is None else self.linear(rows)

    def after(self, inputs: Tensor, sums: Tensor, span: slice = ALL_ROWS) -> Tensor:  # noqa: D102
        sums = sums + self.map(self.before(inputs, span)) if self.own else sums
        return self.finish(inputs, _times(sums, self.destination, span))


def _times(rows: Tensor, factors: Anywhere | None, span: slice) -> Tensor:
    return rows if factors is None else (rows * factors.on(rows.device)[0][span]).to(rows.dtype)


def is_plain(linear: object) -> bool:
    """Return whether a map is a product with its weight, whatever rows it is called with.

    Hooks, as those of pruning, and parametrisations want the calls of one process.
    """
    if type(linear) not in (nn.Linear, pyg.Linear):
        return False
    known = vars(linear)
    return not any(known[hooks] for hooks in _HOOKS)


def has_plain_maps(layer: nn.Module) -> bool:
    """Return whether the maps of a layer may be called before and after a sum alike."""
    maps = map(layer._modules.get, _MAPS)
    return all(is_plain(each) for each in maps if each is not None)


def split_map(linear: Any) -> tuple[Callable[[Tensor], Tensor] | None, Callable[[Tensor], Tensor]]:  # noqa: ANN401
    """Return what of a map may be done before a sum, if anything, and what is done after it."""
    if not is_plain(linear):
        return None, linear
    return (
        lambda rows: nn.functional.linear(rows, linear.weight),
        lambda sums: sums if linear.bias is None else sums + linear.bias,
    )


# Makes a sum of a layer on a partition whose rows are computed in an order, int64[n].
Make = Callable[[Any, Partition, Tensor], SummedLayer]


@dataclass(frozen=True)
class Framework:
    """What the layers of PyG or DGL have in common."""

    is_layer: Callable[[nn.Module], bool]  # whether a module sums over neighbours
    # returns what makes a sum of a layer with a name, or why it is none, to follow the name
    check: Callable[[str, Any], Make | str]
    # from what a layer is called by, the layer, the part's edges and the arguments of a call to its
    # inputs, and to what is summed
    rows: Callable[..., tuple[Tensor, "View"]]
    copies: bool  # whether other layers can be computed with copies of the rows of neighbours
    # of a model, with x, edges and their weights, if there are any
    calls: tuple[Callable[[Any, Tensor, Tensor, Tensor | None], object], ...]


@dataclass(frozen=True)
class View:
    """What a call of a layer sums over: the edges of the part, with weights, or against them."""

    weighted: bool = False
    against: bool = False

    def of(self, part: Partition) -> Partition:
        """Return the part as a layer sees it that adds up along its edges."""
        part = part if self.weighted else part.without_weights()
        if not self.against:
            return part
        edges, entering = part.edges[::-1], part.out_degree
        return replace(part, edges=edges, in_degree=entering, out_degree=part.in_degree)


def called_by(name: str, layer: nn.Module) -> str:
    """Return the name of a layer in messages."""
    return f"Layer {name} ({type(layer).__name__})" if name else type(layer).__name__


def require_sum(
    framework: Framework, name: str, layer: nn.Module, *, in_script: bool = False
) -> Make:
    """Return what makes a sum of a layer, or refuse it, with a way out of the caller's."""
    found = framework.check(name, layer)
    if isinstance(found, str):
        host = (_COPIES_IN_SCRIPT if in_script else _COPIES) if framework.copies else ""
        raise UnsupportedLayerError(f"{called_by(name, layer)} {found}{host}.")
    return found


def maker_of(
    layer: nn.Module,
    aggregation: str,
    kinds: tuple[tuple[Any, tuple[str, ...], Make], ...],
    reason: str = "it is not known to be one sum of a row per source",
) -> Make | str:
    """Return the constructor of a layer of these kinds, each with its aggregations, or why not.

    Others have the reason; so have other aggregations, and subclasses that change the sum.
    """
    for kind, aggregations, make in kinds:
        if not isinstance(layer, kind):
            continue
        methods = [each for each in ("forward", "message") if hasattr(kind, each)]
        if any(getattr(type(layer), each) is not getattr(kind, each) for each in methods):
            return (
                f"changes {'() or '.join(methods)}() of {kind.__name__}, so its sums may be "
                f"others: use {kind.__name__} itself"
            )
        if aggregation in aggregations:
            return make
        return (
            f"aggregates with {aggregation!r}, and a switch can only add: "
            f"use {' or '.join(map(repr, aggregations[:2]))}"
        )
    *names, last = (kind.__name__ for kind, _, _ in kinds)
    return f"cannot be summed by the switch: {reason}. Use {', '.join(names)} or {last}"


def check_weights(called: str, weights: object, known: Float32s | None) -> None:
    """Refuse edge weights other than those of this worker's part."""
    if weights is None:
        return
    if known is None:
        raise UnsupportedLayerError(
            f"{called} was given edge weights, and the data set of the job has none: workers know "
            "those of edges between them from there."
        )
    own = weights.cpu() if isinstance(weights, Tensor) and not weights.requires_grad else None
    if own is None or not np.array_equal(own.flatten(), known):
        raise UnsupportedLayerError(
            f"{called} was given other edge weights than those of this worker's part: call the "
            "model with `data.edge_weight`."
        )


def checked_rows(called: str, x: object, edges: PartEdges) -> Tensor:
    """Return the inputs of a layer; refuse several inputs, and other numbers of rows."""
    if isinstance(x, tuple) and len(x) == 2 and x[0] is x[1]:
        x = x[0]
    if not isinstance(x, Tensor):
        raise UnsupportedLayerError(
            f"{called} was given a bipartite graph: call it with one tensor of rows."
        )
    check_row_count(called, x, len(edges.partition.vertices))
    return x
