"""Layers that need the rows of remote neighbours themselves, and not just a sum: maxima, attention.

The layer runs as PyG wrote it on a worker's own vertices and copies of their remote neighbours. It
is exact if messages depend on the two ends of an edge alone: all edges into an own vertex are here.
What depends on all edges of a copy is fetched: its degree, and its row after each of several steps.
"""

import inspect
from collections.abc import Callable, Mapping
from types import FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch_geometric.nn import MessagePassing

from switchgnn.training.base.errors import UnsupportedLayerError
from switchgnn.training.exchange.sums import KeptSum
from switchgnn.training.layers.dropout import Draws, dropped, edge_ids
from switchgnn.training.layers.forward import Replaced, replaced
from switchgnn.training.layers.halo import Halo, PartEdges, check_row_count

# Functions of PyG that add up the edges of each vertex, and whether these are the edges out of it.
_DEGREES = {"gcn_norm": False, "get_laplacian": True}
# How arguments begin that belong to edges, or to several graphs.
_OF_EDGES = ("edge_", "neg_", "size", "batch")


class CopiedForward(Replaced):
    """The forward pass of a layer over a worker's vertices and copies of their neighbours.

    `draws`: of the layer's own dropout. `kept`: keeps the copies of inputs that do not change;
    None: they are fetched each time.
    """

    def __init__(
        self,
        module: MessagePassing,
        called: str,
        edges: PartEdges,
        halo: Halo,
        draws: Draws,
        *,
        kept: KeptSum | None,
    ) -> None:
        super().__init__(module)
        self.called, self.draws = called, draws
        self._edges, self._halo, self._kept = edges, halo, kept
        self._signature = inspect.signature(type(module).forward)
        methods = inspect.getmembers(type(module), inspect.isfunction)
        self._methods = {
            name: (method, used)
            for name, method in methods
            if (used := _DEGREES.keys() & set(method.__code__.co_names))
        }
        self._degrees: dict[object, Tensor] = {}
        for inner in filter(None, map(replaced, module.modules())):
            inner.halo = halo

    def compute(self, *arguments: object, **named: object) -> object:
        """Return what the layer returns for this worker's vertices, and for edges into these."""
        layer = self.module
        bound = list(self._signature.bind(layer, *arguments, **named).arguments.items())
        given = {name: value for name, value in bound[1:] if value is not None}
        against = self._against(given)
        taken = {name: self._taken(name, value) for name, value in given.items()}
        edges = self._halo.edges(taken["edge_index"].device)
        taken["edge_index"] = edges.flip(0) if against else edges
        hops = _Hops(layer, self._halo, self.draws, self._degrees)
        patches: dict[str, Any] = {"propagate": hops.propagate, "edge_updater": hops.edge_updater}
        for name, (method, used) in self._methods.items():
            normalised = {each: hops.normalised(method.__globals__[each]) for each in used}
            patches[name] = MethodType(_with_globals(method, normalised), layer)
        forward = patches.pop("forward", self.original)
        before = {name: vars(layer)[name] for name in patches if name in vars(layer)}
        vars(layer).update(patches)
        try:
            with hops:
                return self._own(forward(**taken))
        finally:
            for name in patches:
                del vars(layer)[name]
            vars(layer).update(before)

    def _against(self, given: Mapping[str, object]) -> bool:
        """Return whether the layer sends messages from target to source; refuse other edges."""
        edges = given.get("edge_index")
        if not isinstance(edges, Tensor):
            raise UnsupportedLayerError(f"{self.called} was called without `edge_index`, a tensor.")
        against: bool = self.module.flow != "source_to_target"
        if unknown := [
            name for name in given if name.startswith(_OF_EDGES) and name != "edge_index"
        ]:
            raise UnsupportedLayerError(
                f"{self.called} was called with {unknown[0]}, which other workers do not know: "
                "call it with rows and edges only."
            )
        reverse = self._edges.reverse(self.called, edges, lambda: edges, self._edges.usual)
        if reverse != against and not self._edges.partition.undirected:
            raise UnsupportedLayerError(
                f"{self.called} sends messages against the edges of a directed graph, and copies "
                "travel along them only: use a layer of sums, or a graph with both directions."
            )
        return against

    def _taken(self, name: str, value: Any) -> Any:  # noqa: ANN401
        """Return what the layer is called with in place of an argument."""
        if name == "edge_index":
            return value
        if isinstance(value, tuple):
            made = {id(each): self._taken("", each) for each in value}  # the same travel once
            return tuple(made[id(each)] for each in value)
        if not isinstance(value, Tensor) or not value.dim():
            return value
        check_row_count(self.called, value, self._halo.rows)
        kept = None if name != "x" or value.requires_grad else self._kept
        copied = None if kept is None else kept.of(value)
        if copied is None:
            copied = self._halo.extend(value)
            # Hidden rows would look like constant inputs.
            if kept is not None and torch.is_grad_enabled():
                kept.keep(copied)
        return copied

    def _own(self, outputs: Any) -> Any:  # noqa: ANN401
        rows = self._halo.rows
        if isinstance(outputs, Tensor):
            return outputs[:rows]
        if isinstance(outputs, tuple):
            edges = outputs[0] if len(outputs) == 2 else None
            if isinstance(edges, Tensor) and edges.dtype == torch.int64 and len(edges) == 2:
                own = edges[1] < rows
                return edges[:, own], outputs[1][own]
            return tuple(map(self._own, outputs))
        return outputs


def _with_globals(function: Any, changed: Mapping[str, object]) -> FunctionType:  # noqa: ANN401
    """Return a function that finds other objects under some names of its module."""
    known = {**function.__globals__, **changed}
    made = FunctionType(function.__code__, known, None, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


class _Hops(TorchFunctionMode):
    """One call of a layer: its steps over the edges, its dropout, and the degrees that it takes."""

    def __init__(
        self, layer: MessagePassing, halo: Halo, draws: Draws, degrees: dict[object, Tensor]
    ) -> None:
        super().__init__()
        self._layer, self._halo, self._draws, self._degrees = layer, halo, draws, degrees
        self._propagate, self._update = layer.propagate, layer.edge_updater
        names = {*layer._user_args, *layer._edge_user_args}
        self._of_vertices = {name[:-2] for name in names if name.endswith(("_i", "_j"))}
        self._edges: Tensor | None = None  # of the last step
        self._stale = False  # whether copies lack what a step has added

    def propagate(self, edge_index: Tensor, *sizes: object, **named: object) -> Any:  # noqa: ANN401
        """Send messages, those of copies with their rows as the last step left them."""
        fresh = self._fresh(edge_index, named)
        self._stale = True
        return self._propagate(edge_index, *sizes, **fresh)

    def edge_updater(self, edge_index: Tensor, *sizes: object, **named: object) -> Any:  # noqa: ANN401
        """Compute values of edges, as `propagate` does messages."""
        return self._update(edge_index, *sizes, **self._fresh(edge_index, named))

    def _fresh(self, edge_index: Tensor, named: dict[str, Any]) -> dict[str, Any]:
        self._edges, dim = edge_index, self._layer.node_dim

        def fresh(rows: Any) -> Any:  # noqa: ANN401
            if isinstance(rows, Tensor):
                own = rows.movedim(dim, 0)[: self._halo.rows]
                return self._halo.extend(own).movedim(0, dim)
            return tuple(map(fresh, rows)) if isinstance(rows, tuple) else rows

        stale = self._of_vertices if self._stale else ()
        return {name: fresh(each) if name in stale else each for name, each in named.items()}

    def normalised(self, function: Any) -> Callable[..., Any]:  # noqa: ANN401
        """Return a function of `_DEGREES` that takes degrees in the whole graph."""
        name = function.__name__

        def scatter(values: Tensor, *where: Any, **named: Any) -> Tensor:  # noqa: ANN401
            known = name, len(values), values.dtype
            if known not in self._degrees:
                found = function.__globals__["scatter"](values, *where, **named)
                own = self._halo.total(found) if _DEGREES[name] else found[: self._halo.rows]
                self._degrees[known] = self._halo.extend(own).detach()
            return self._degrees[known].clone()

        changed = _with_globals(function, {"scatter": scatter})

        def normalise(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401
            edges, weights = changed(*arguments, **named)
            self._edges = edges
            return edges, weights

        return normalise

    def __torch_function__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
        called = self._drop if function is functional.dropout else function
        return called(*args, **(kwargs or {}))

    def _drop(
        self, rows: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> Tensor:
        """Drop the same units of edges and vertices on any number of workers."""
        ids = None
        if self._edges is not None and len(rows) == self._edges.shape[1]:
            ids = edge_ids(*self._halo.ids(rows.device)[self._edges])
        elif len(rows) == self._halo.size:
            ids = self._halo.ids(rows.device)
        if not training or p == 0 or ids is None:
            return functional.dropout(rows, p, training, inplace)
        self._draws.begin_call()
        kept = self._draws.kept(ids, rows.numel() // max(1, len(rows)), p).view_as(rows)
        return dropped(rows, kept, p, inplace=inplace)
