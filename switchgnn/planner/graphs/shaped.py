"""Random graphs, and those with the shapes of the paper's: ``reddit-like:SCALE:SEED``.

Vertices form communities of unequal size and have log-normal weights. An edge joins two vertices
drawn by weight, mostly of one community. Duplicates are drawn again, so the hubs of a small
community reach most of it. docs/data.md has the calibration.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from switchgnn.base.array_types import Float64s, Int64s
from switchgnn.base.machine import require_memory
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.graphs.graph import FIRST_RESERVED_ID, Graph, graph_from_edges


@dataclass(frozen=True)
class Shape:
    """A graph of the paper, and the parameters of similar ones."""

    vertices: int  # at scale 1
    edges: int  # undirected edges at scale 1
    communities: int  # at scale 1
    skew: float  # standard deviation of the logarithm of the weights
    outside: float  # the share of edges drawn without regard to communities


SHAPES: Mapping[str, Shape] = {
    "reddit-like": Shape(232_965, 57_307_946, 16, 2.1, 0.01),
    "yelp-like": Shape(716_847, 6_977_410, 100, 1.2, 0.15),
    "products-like": Shape(2_449_029, 61_859_140, 47, 1.2, 0.05),
}


@dataclass(frozen=True, eq=False)
class _Model:
    """The distribution of edges; vertices are numbered community by community."""

    total: Float64s  # [V + 1], the weights added up
    # [C + 1]; community c has the vertices bounds[c] to bounds[c + 1] - 1
    bounds: Int64s
    outside: float  # see Shape
    ids: Int64s  # [V], the shuffled ids of the vertices


_NAME = re.compile(r"([a-z]+-like):([0-9]*\.?[0-9]+):([0-9]{1,1000})")
_LARGEST_SCALE = 100.0
_FEWEST_VERTICES = 64
# Standard deviation of the logarithm of the communities' sizes.
_UNEVEN = 0.5
# The largest mean degree at small scale, as a share of a mean community; 0.0338 in Reddit.
_DENSEST = 0.034
_SMALLEST_COMMUNITY = 8
# The edges drawn at a time, and the most rounds of drawing.
_DRAW = 8_000_000
_MOST_ROUNDS = 60
# Keys of the edges, those just drawn, both merged, and the rows that they become.
_EDGE_BYTES = 40


@lru_cache(maxsize=1)
def load_shaped(spec: str) -> Graph:
    """Return the undirected graph of a name; the last one is cached, as drawing takes minutes."""
    found = _NAME.fullmatch(spec)
    if found is None:
        kind = spec.partition(":")[0]
        raise PlannerError(f"Cannot read {spec}: write {kind}:SCALE:SEED, as {kind}:0.05:1.")
    shape, scale, seed = SHAPES[found[1]], float(found[2]), int(found[3])
    vertices = round(shape.vertices * scale)
    if vertices < _FEWEST_VERTICES or scale > _LARGEST_SCALE or vertices >= FIRST_RESERVED_ID:
        least = _FEWEST_VERTICES / shape.vertices
        raise PlannerError(
            f"Cannot make {spec}: the scale must be between {least:.1g} and {_LARGEST_SCALE:g}."
        )
    return _make(shape, scale, vertices, np.random.default_rng(seed), spec)


def _make(shape: Shape, scale: float, vertices: int, rng: np.random.Generator, name: str) -> Graph:
    communities = max(4, round(shape.communities * math.sqrt(scale)))
    communities = min(communities, vertices // _SMALLEST_COMMUNITY)
    degree = min(2 * shape.edges / shape.vertices, _DENSEST * vertices / communities)
    edges = shape.edges if scale == 1 else round(vertices * degree / 2)
    require_memory(f"{edges:,} edges of {name}", edges * _EDGE_BYTES, "give a smaller scale")
    bounds = _community_bounds(vertices, communities, rng)
    weights = np.exp(rng.normal(0.0, shape.skew, vertices))
    total = np.concatenate([[0.0], np.cumsum(weights)])
    model = _Model(total, bounds, shape.outside, rng.permutation(vertices))
    keys = _distinct_edges(model, edges, rng)
    both = np.concatenate([keys, keys % vertices * vertices + keys // vertices])
    both.sort()
    indptr = np.searchsorted(both, np.arange(vertices + 1, dtype=np.int64) * vertices)
    both %= vertices
    return Graph(indptr=indptr, indices=both.astype(np.int32), name=name)


def _community_bounds(vertices: int, communities: int, rng: np.random.Generator) -> Int64s:
    share = np.exp(rng.normal(0.0, _UNEVEN, communities))
    spare = vertices - communities * _SMALLEST_COMMUNITY
    ends = np.floor(np.cumsum(share) / share.sum() * spare).astype(np.int64)
    ends[-1] = spare
    sizes = np.diff(ends, prepend=0) + _SMALLEST_COMMUNITY
    return np.concatenate([[0], np.cumsum(sizes)])


def _distinct_edges(model: _Model, edges: int, rng: np.random.Generator) -> Int64s:
    keys = np.empty(0, dtype=np.int64)
    yielded = 1.0
    for _ in range(_MOST_ROUNDS):
        missing = edges - len(keys)
        if missing <= 0:
            break
        wanted = round(missing / yielded) + 16
        drawn = np.concatenate(list(_draw(model, wanted, rng)))
        drawn.sort()
        drawn = np.concatenate([keys, drawn])
        # Two sorted runs: this merges them.
        drawn.sort(kind="stable")
        before = len(keys)
        keys = drawn[np.diff(drawn, prepend=-1) > 0]
        del drawn
        yielded = max(0.05, (len(keys) - before) / wanted)
    surplus = len(keys) - edges
    if surplus > 0:
        stay = np.ones(len(keys), dtype=bool)
        stay[rng.choice(len(keys), surplus, replace=False)] = False
        keys = keys[stay]
    return keys


def _draw(model: _Model, number: int, rng: np.random.Generator) -> Iterator[Int64s]:
    """Yield keys of that many random edges without self-loops, in pieces."""
    total, bounds, ids = model.total, model.bounds, model.ids
    vertices = len(ids)
    start, stop = total[bounds[:-1]], total[bounds[1:]]
    for done in range(0, number, _DRAW):
        size = min(_DRAW, number - done)
        # Sorted draws make the look-ups walk through memory in order.
        draws = np.sort(rng.random(size)) * total[-1]
        one = np.searchsorted(total, draws, side="right") - 1
        community = np.searchsorted(stop, draws, side="right")
        np.minimum(community, len(stop) - 1, out=community)
        low, high = start[community], stop[community]
        far = rng.random(size) < model.outside
        low[far], high[far] = 0.0, total[-1]
        other = np.searchsorted(total, low + rng.random(size) * (high - low), side="right") - 1
        np.clip(one, 0, vertices - 1, out=one)
        np.clip(other, 0, vertices - 1, out=other)
        proper = one != other
        u, v = ids[one[proper]], ids[other[proper]]
        yield np.minimum(u, v) * vertices + np.maximum(u, v)


RANDOM = "random"
# Python's limit on the digits of a number lies above 1,000.
_RANDOM_NAME = re.compile(RANDOM + 3 * ":([0-9]{1,1000})")
# Measured: NetworkX keeps a dictionary for each vertex and each edge.
_RANDOM_VERTEX_BYTES, _RANDOM_EDGE_BYTES = 300, 400


def load_random(spec: str) -> Graph:
    """Return ``random:VERTICES:EDGES:SEED``; every set of that many edges is equally likely."""
    found = _RANDOM_NAME.fullmatch(spec)
    if found is None:
        raise PlannerError(f"Cannot read {spec}: write random:VERTICES:EDGES:SEED, all numbers.")
    vertices, edges, seed = map(int, found.groups())
    if vertices < 1 or edges > vertices * (vertices - 1) // 2:
        raise PlannerError(f"Cannot make {spec}: {vertices} vertices do not take {edges} edges.")
    if vertices >= FIRST_RESERVED_ID:
        raise PlannerError(
            f"Cannot make {spec}: {vertices:,} vertices are too many; 2^31 - 1 are possible."
        )
    require_memory(
        f"{vertices:,} vertices and {edges:,} edges of {spec}",
        vertices * _RANDOM_VERTEX_BYTES + edges * _RANDOM_EDGE_BYTES,
        "name a graph with fewer",
    )
    import networkx  # noqa: PLC0415 - slow to import

    made = networkx.gnm_random_graph(vertices, edges, seed=seed)
    ends = np.array(list(made.edges()), dtype=np.int64).reshape(-1, 2)
    return graph_from_edges(ends[:, 0], ends[:, 1], name=spec, vertices=vertices, directed=False)
