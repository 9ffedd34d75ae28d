# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs by name or from a file."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs import bundled as load_bundled
from switchgnn.planner.graphs import edge_list as load_edge_list
from switchgnn.planner.graphs import npz_file as load_npz
from switchgnn.planner.graphs import planetoid as load_planetoid
from switchgnn.planner.graphs import shaped as load_shaped
from switchgnn.planner.graphs.graph import Graph

EDGE_LIST_SUFFIXES = (".txt", ".csv", ".tsv", ".edges", ".el")


def load_graph(spec: str, *, directed: bool | None = None) -> Graph:
    """Load the graph with that name, or from that file."""
    path = Path(spec)
    undirected = _undirected_loader(spec, path)
    if undirected is not None:
        if directed:
            raise PlannerError(f"graph {spec} is undirected and has no directed form")
        return undirected()
    if not path.exists():
        bundled = " or ".join(sorted(load_bundled.BUNDLED))
        raise PlannerError(f"no graph {spec}: it is neither a file nor {bundled}")
    if path.suffix.lower() == ".npz":
        return load_npz.load_npz(path, directed=directed is not False)
    if path.suffix.lower() in EDGE_LIST_SUFFIXES:
        return load_edge_list.load_edge_list(path, directed=directed is True)
    raise PlannerError(
        f"cannot tell the format of {spec}: expected one of "
        f"{' '.join(EDGE_LIST_SUFFIXES)} .npz, or a Planetoid file ind.NAME.graph"
    )


def _undirected_loader(spec: str, path: Path) -> Callable[[], Graph] | None:
    if load_bundled.is_bundled(spec):
        return partial(load_bundled.load_bundled, spec)
    if spec.startswith(load_shaped.RANDOM_PREFIX):
        return partial(load_shaped.load_random, spec)
    if load_shaped.is_shaped(spec):
        return partial(load_shaped.load_shaped, spec)
    planetoid = load_planetoid.find_planetoid(path)
    return None if planetoid is None else partial(load_planetoid.load_planetoid, *planetoid)
