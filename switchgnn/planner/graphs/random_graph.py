# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Random graphs by name: ``random:VERTICES:EDGES:SEED``."""

import numpy as np

from switchgnn.base.machine import require_memory
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.graph import FIRST_RESERVED_ID, Graph, graph_from_edges

PREFIX = "random:"
_FIELDS = 3
# Python's limit on the digits of a number lies above it.
_MOST_DIGITS = 1000
# Measured: NetworkX keeps a dictionary for each vertex and each edge.
_VERTEX_BYTES, _EDGE_BYTES = 300, 400


def load_random(spec: str) -> Graph:
    """Return the undirected graph of a name; every set of that many edges is equally likely."""
    fields = spec.removeprefix(PREFIX).split(":")
    readable = all(field.isdecimal() and len(field) <= _MOST_DIGITS for field in fields)
    if len(fields) != _FIELDS or not readable:
        raise PlannerError(f"cannot read {spec}: write random:VERTICES:EDGES:SEED, all numbers")
    vertices, edges, seed = map(int, fields)
    if vertices < 1 or edges > vertices * (vertices - 1) // 2:
        raise PlannerError(f"cannot make {spec}: {vertices} vertices do not take {edges} edges")
    if vertices >= FIRST_RESERVED_ID:
        raise PlannerError(
            f"cannot make {spec}: {vertices:,} vertices are too many; 2^31 - 1 are possible"
        )
    require_memory(
        f"{vertices:,} vertices and {edges:,} edges of {spec}",
        vertices * _VERTEX_BYTES + edges * _EDGE_BYTES,
        "name a graph with fewer",
    )
    import networkx  # noqa: PLC0415 - slow to import

    made = networkx.gnm_random_graph(vertices, edges, seed=seed)
    ends = np.array(list(made.edges()), dtype=np.int64).reshape(-1, 2)
    return graph_from_edges(ends[:, 0], ends[:, 1], name=spec, vertices=vertices, directed=False)
