# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Random graphs by a name that says all of them: ``random:VERTICES:EDGES:SEED``."""

import numpy as np

from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.graph import Graph, graph_from_edges

PREFIX = "random:"
_FIELDS = 3


def load_random(spec: str) -> Graph:
    """Return the undirected graph that a name says; the same name gives the same graph.

    Every set of that many edges is equally likely.

    Raises:
        PlannerError: the name is malformed, or the edges do not fit.
    """
    fields = spec.removeprefix(PREFIX).split(":")
    if len(fields) != _FIELDS or not all(field.isdecimal() for field in fields):
        raise PlannerError(f"cannot read {spec}: write random:VERTICES:EDGES:SEED, all numbers")
    vertices, edges, seed = map(int, fields)
    if vertices < 1 or edges > vertices * (vertices - 1) // 2:
        raise PlannerError(f"cannot make {spec}: {vertices} vertices do not take {edges} edges")
    import networkx  # noqa: PLC0415 - slow to import

    made = networkx.gnm_random_graph(vertices, edges, seed=seed)
    ends = np.array(list(made.edges()), dtype=np.int64).reshape(-1, 2)
    return graph_from_edges(ends[:, 0], ends[:, 1], name=spec, vertices=vertices, directed=False)
