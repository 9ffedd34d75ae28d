"""The training graph, as compressed sparse rows of out-edges."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.array_types import Float32s, Int32s, Int64s, Integers
from switchgnn.base.arrays import ArrayKind, check_arrays
from switchgnn.base.machine import require_memory
from switchgnn.planner.base.arrays import indptr_of, starts_group, strange_row
from switchgnn.planner.base.errors import PlannerError

# Ids from here on name partial sums on the wire, not vertices.
FIRST_RESERVED_ID = 2**31
FIRST_BUNDLE_ID = 3 * 2**30

_VERTEX_BYTES = 16

# Values of `Graph.split`.
SPLIT_NONE, SPLIT_TRAIN, SPLIT_VALIDATION, SPLIT_TEST = range(4)
UNLABELLED = -1

_KINDS: Mapping[str, ArrayKind] = {
    "indptr": ArrayKind(("<i8",), shape="V+1", cuts="E"),
    "indices": ArrayKind(("<i4",), shape="E", below="V"),
    "labels": ArrayKind(("i", "f"), (1, 2), shape="V"),
    "split": ArrayKind(("i",), shape="V"),
    "original_ids": ArrayKind(("i", "U"), shape="V"),
    "self_loops": ArrayKind(("<i8",), shape="L", below="V", ascending=True),
    "weights": ArrayKind(("<f4",), shape="E"),
    "loop_weights": ArrayKind(("<f4",), shape="L"),
}


@dataclass(frozen=True, eq=False)
class Graph:
    """A directed graph; along edge u→v the feature of u contributes to the sum of v.

    An undirected graph holds each edge in both directions. Rows are sorted, without duplicates and
    self-loops: models that use self-loops (GCN) add them on the worker. `graph_from_edges` accepts
    any list of edges.

    Raises:
        PlannerError: the arrays do not have this form.
    """

    # int64[V + 1]; the out-neighbours of u are indices[indptr[u]:indptr[u + 1]]
    indptr: Int64s
    indices: Int32s  # int32[E], ascending within each row
    name: str  # for messages and manifests
    features: Float32s | None = None  # float32[V, F], finite, or None
    # int64[V], or float32[V, C] of zeros and ones, or None
    labels: Int64s | Float32s | None = None
    # int8[V], SPLIT_NONE, SPLIT_TRAIN, SPLIT_VALIDATION or SPLIT_TEST; None without a split
    split: NDArray[np.int8] | None = None
    # int64[V] or str[V], ascending, the ids of the input where they were renumbered, or None
    original_ids: Int64s | NDArray[np.str_] | None = None
    # int64[L], ascending, the vertices with dropped self-loops, or None
    self_loops: Int64s | None = None
    weights: Float32s | None = None  # float32[E], finite, or None
    loop_weights: Float32s | None = None  # float32[L], of self_loops, or None

    def __post_init__(self) -> None:
        arrays = {name: getattr(self, name) for name in _KINDS if getattr(self, name) is not None}
        try:
            check_arrays(arrays, _KINDS, {})
        except ValueError as error:
            raise PlannerError(f"Graph {self.name} is refused: {error}.") from error
        if not self.vertices:
            raise PlannerError(f"Graph {self.name} has no vertices.")
        if strange := strange_row(self.indptr, self.indices):
            kind, row = strange
            what = "self-loops" if kind == "loop" else "rows that are not strictly ascending"
            raise PlannerError(
                f"Graph {self.name} holds {what}, as that of vertex {row}; build it with "
                "graph_from_edges."
            )
        if self.features is not None and (why := why_no_features(self.features, self.vertices)):
            raise PlannerError(f"Graph {self.name} {why}.")
        for weights in (self.weights, self.loop_weights):
            if weights is not None and not np.isfinite(weights).all():
                raise PlannerError(f"Graph {self.name} needs weights that are finite as float32.")

    @property
    def vertices(self) -> int:
        """The number of vertices, V."""
        return len(self.indptr) - 1

    def edges(self) -> tuple[Int32s, Int32s]:
        """Return all edges as (source, destination), int32[E] each, sorted by both."""
        source = np.repeat(np.arange(self.vertices, dtype=np.int32), np.diff(self.indptr))
        return source, self.indices

    def digest(self) -> str:
        """Return SHA-256 in hex over the vertices and the edges, which a plan depends on."""
        sha = hashlib.sha256(b"switchgnn-graph 1\n")
        sha.update(np.ascontiguousarray(self.indptr, dtype="<i8").data)
        sha.update(np.ascontiguousarray(self.indices, dtype="<i4").data)
        return sha.hexdigest()


@np.errstate(over="ignore")  # an overflow becomes an infinity, which Graph refuses
def graph_from_edges(
    source: Integers,
    destination: Integers,
    *,
    name: str,
    vertices: int,
    directed: bool,
    features: Float32s | None = None,
    labels: Int64s | None = None,
    split: NDArray[np.int8] | None = None,
    original_ids: Int64s | NDArray[np.str_] | None = None,
    weights: NDArray[Any] | None = None,
) -> Graph:
    """Build a Graph from a list of edges; drop duplicates and self-loops.

    Args:
        source: integers[N], 0 <= id < vertices.
        destination: integers[N].
        name: see Graph.
        vertices: their number; those without an edge are isolated.
        directed: False adds the reverse of every edge, with its weight, where it is not there.
        features: see Graph.
        labels: see Graph.
        split: see Graph.
        original_ids: see Graph.
        weights: numbers[N], or None.

    Returns:
        The graph, with ascending rows.

    Raises:
        PlannerError: no vertices, ids out of range, features that do not fit, or an edge with two
            weights.
    """
    if not 0 < vertices < FIRST_RESERVED_ID:
        raise PlannerError(
            f"Graph {name} has {vertices} vertices; between 1 and 2^31 - 1 are possible."
        )
    require_memory(
        f"{vertices:,} vertices of {name}", vertices * _VERTEX_BYTES, "number them without gaps"
    )
    u = source.astype(np.int64)
    v = destination.astype(np.int64)
    if len(u) and (min(u.min(), v.min()) < 0 or max(u.max(), v.max()) >= vertices):
        raise PlannerError(f"Graph {name} has an edge to a vertex outside 0..{vertices - 1}.")
    key = u * vertices + v
    if not directed:
        reverse = v * vertices + u
        if weights is not None:
            # Both directions may have weights of their own.
            new = ~np.isin(reverse, key)
            reverse, weights = reverse[new], np.concatenate([weights, weights[new]])
        key = np.concatenate([key, reverse])
    if weights is None:
        key.sort()
    else:
        order = np.argsort(key)
        key, weights = key[order], weights[order].astype(np.float32)
    keep = starts_group(key)
    if weights is not None:
        twice = ~keep[1:] & (weights[1:] != weights[:-1])
        if twice.any():
            at = int(np.argmax(twice))
            edge = " to ".join(map(str, divmod(int(key[at]), vertices)))
            raise PlannerError(
                f"Graph {name} has the weights {weights[at]} and {weights[at + 1]} for the edge "
                f"{edge}: give each edge one."
            )
        weights = weights[keep]
    u, v = np.divmod(key[keep], vertices)
    proper = u != v
    loops, u, v = u[~proper], u[proper], v[proper]
    return Graph(
        indptr=indptr_of(np.bincount(u, minlength=vertices)),
        indices=v.astype(np.int32),
        name=name,
        features=features,
        labels=labels,
        split=split,
        original_ids=original_ids,
        self_loops=loops if len(loops) else None,
        weights=None if weights is None else weights[proper],
        loop_weights=weights[~proper] if weights is not None and len(loops) else None,
    )


def why_no_features(features: NDArray[Any], vertices: int) -> str:
    """Return why an array is not float32[vertices, F] of finite numbers; empty if it is."""
    if features.ndim != 2 or features.dtype != np.float32 or features.shape[1] == 0:
        return "needs features of float32[V, F], with F at least 1"
    if len(features) != vertices:
        return f"has {vertices} vertices but features for {len(features)}"
    bad = ~np.isfinite(features).all(axis=1)
    if bad.any():
        vertex = int(np.argmax(bad))
        return f"has a NaN or an infinity in the features of vertex {vertex}; give finite numbers"
    return ""
