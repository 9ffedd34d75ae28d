# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The independent checker: does a plan on disk serve every boundary edge exactly once?

It reads the files by their description in docs/planner.md and shares no code with what
writes them. What it looks at, in this order: the files and their digests, the switch's part,
the workers' parts, and the edges: those of the graph, or, without it, those that the workers
believe in.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.check.files import (
    PlanCheckError,
    RawPlan,
    read_raw_manifest,
    read_raw_plan,
    require,
)
from switchgnn.planner.check.switch import Deliveries, check_switch
from switchgnn.planner.check.workers import Neighbours, Packets, check_workers, rows_left
from switchgnn.planner.graphs.graph import Graph

_FORWARD, _BACKWARD = "forward", "backward"
_LOW = 0xFFFFFFFF
# Ids from here on name partial sums.
_PARTIAL = 2**31
# The first version in which they are not among the predicted entries.
_WITHOUT_PARTIAL_SUMS = 4


@dataclass(frozen=True)
class CheckedPlan:
    """A plan that was found to be right.

    Attributes:
        workers: their number.
        blocks: their number.
        packets: sent by all workers in all blocks.
        sums: received by all workers in all blocks.
        edges: boundary edges that the switch serves, those of each direction that has blocks of
            its own.
    """

    workers: int
    blocks: int
    packets: int
    sums: int
    edges: int


@dataclass(frozen=True)
class _Blocks:
    """The blocks of a direction."""

    name: str
    first: int
    last: int


@dataclass(frozen=True)
class _Served:
    """Edges and the blocks that serve them, one row each; `key` is source << 32 | destination."""

    block: NDArray[np.int64]
    key: NDArray[np.int64]


def check_plan(folder: str | Path, graph: Graph | None = None) -> CheckedPlan:
    """Check everything that a plan promises.

    Every boundary edge is served once, in one block, by one packet, or its destination is left to
    the hosts, with all its edges; no slot is used twice in
    a block or lies outside its bank; every slot's expected count is what its packets carry;
    every worker holds, sends and receives what is its own, and knows its neighbours.

    Args:
        folder: the plan.
        graph: what it is for. Without it the switch and the workers have to agree on the edges,
            but nothing tells whether those are the edges of the graph.

    Returns:
        How large it is.

    Raises:
        PlanCheckError: the first thing that is wrong.
    """
    try:
        return _check(read_raw_plan(Path(folder)), graph)
    except (KeyError, TypeError, AttributeError) as error:
        raise PlanCheckError(f"{folder}/plan.json lacks a field or has a strange one") from error


def name_of_graph(folder: str | Path) -> str:
    """Return what the plan calls its graph; a file's is its name without folder and ending."""
    try:
        return str(read_raw_manifest(Path(folder))["graph"]["name"])
    except (KeyError, TypeError) as error:
        raise PlanCheckError(f"{folder}/plan.json does not name its graph") from error


def _check(plan: RawPlan, graph: Graph | None) -> CheckedPlan:
    if graph is not None:
        _check_graph(plan, graph)
    _check_assignment(plan)
    deliveries = check_switch(plan)
    packets, neighbours = check_workers(plan, deliveries)
    served, believed = _served(plan, deliveries, packets), _believed(neighbours)
    directions = list(_directions(plan))
    forward = _believed_edges(plan, believed) if graph is None else _edges_of(plan, graph)
    edges = 0
    for names, first, last in directions:
        for name in names:
            whole = _reversed(forward) if name == _BACKWARD else forward
            blocks = _Blocks(name, first, last)
            left = rows_left(plan, name)
            _check_left(plan, blocks, left, whole if graph is not None else None)
            boundary = whole[~left[whole & _LOW]]
            _check_edges(boundary, served, blocks, "the switch serves")
            _check_edges(boundary, believed, blocks, "the workers expect")
            _check_prediction(
                plan, deliveries, blocks, whole=whole, known=graph is not None or not left.any()
            )
        edges += len(boundary)
    _check_no_others_left(plan)
    _check_same_blocks(served, believed)
    sums = len(plan.switch["result_block"])
    packet_number = len(deliveries.packet_id)
    return CheckedPlan(len(plan.workers), plan.manifest["blocks"], packet_number, sums, edges)


def _check_graph(plan: RawPlan, graph: Graph) -> None:
    record = plan.manifest["graph"]
    same = record["digest"] == graph.digest() and record["vertices"] == graph.vertices
    require(same, f"the plan is for graph {record['name']}, not for this {graph.name}")


def _check_assignment(plan: RawPlan) -> None:
    workers, assignment = len(plan.workers), plan.assignment
    fits = len(assignment) == plan.manifest["graph"]["vertices"]
    require(fits, "assignment.npy does not fit the graph")
    inside = bool(np.all((assignment >= 0) & (assignment < workers)))
    require(inside, f"assignment.npy names a worker outside 0..{workers - 1}")


def _check_left(
    plan: RawPlan, blocks: _Blocks, left: NDArray[np.bool_], boundary: NDArray[np.int64] | None
) -> None:
    """Raise unless what is left to the hosts has edges, and no sum of the switch in the blocks.

    Args:
        plan: the plan.
        blocks: of the direction.
        left: bool[V], the destinations that are left.
        boundary: the keys of all boundary edges; None where nobody knows those that are left.
    """
    block, vertex = plan.switch["result_block"], plan.switch["result_vertex"].astype(np.int64)
    here = (block >= blocks.first) & (block <= blocks.last)
    both = vertex[here][left[vertex[here]]]
    if len(both):
        raise PlanCheckError(
            f"{blocks.name}: vertex {both[0]} is left to the hosts, and the switch sums it, too"
        )
    if boundary is None:
        return
    idle = np.setdiff1d(np.flatnonzero(left), boundary & _LOW)
    if len(idle):
        raise PlanCheckError(
            f"{blocks.name}: vertex {idle[0]} is left to the hosts without any remote neighbour"
        )


def _check_no_others_left(plan: RawPlan) -> None:
    """Raise if something is left of a direction that the plan does not have, or nothing at all."""
    left = {name: bool(rows_left(plan, name).any()) for name in (_FORWARD, _BACKWARD)}
    for name, any_left in left.items():
        known = not any_left or name in plan.manifest["directions"]
        require(known, f"{name} sums are left to the hosts, but the plan has none")
    empty = plan.leaves_any and not any(left.values())
    require(not empty, "the workers list what is left to the hosts, and nothing is")


def _directions(plan: RawPlan) -> Iterator[tuple[list[str], int, int]]:
    """Yield (names, first block, last block) of each range; together they are all blocks."""
    ranges: dict[tuple[int, int], list[str]] = {}
    for name, record in plan.manifest["directions"].items():
        require(name in (_FORWARD, _BACKWARD), f"plan.json has a strange direction {name}")
        ranges.setdefault((record["first_block"], record["last_block"]), []).append(name)
    require(bool(ranges), "plan.json has no direction")
    following = 1
    for first, last in sorted(ranges):
        require(
            first == following and last >= first - 1,
            f"the blocks {first} to {last} of a direction do not follow those before them",
        )
        following = last + 1
        yield ranges[first, last], first, last
    require(following == plan.manifest["blocks"] + 1, "some blocks are of no direction")


def _edges_of(plan: RawPlan, graph: Graph) -> NDArray[np.int64]:
    """Return the keys of all boundary edges of a graph, ascending."""
    tail = np.repeat(np.arange(graph.vertices), np.diff(graph.indptr))
    crosses = plan.assignment[tail] != plan.assignment[graph.indices]
    return np.sort((tail[crosses] << 32) | graph.indices[crosses].astype(np.int64))


def _believed_edges(plan: RawPlan, believed: _Served) -> NDArray[np.int64]:
    """Return the keys of the edges that the workers expect in one direction, ascending, as forward.

    What they expect more than once is found when they are compared with it. Where something is
    left to the hosts, what is expected backward may be left forward, so that counts as well.
    """
    directions = plan.manifest["directions"]
    if plan.leaves_any and len(directions) > 1:
        forward, backward = (_believed_in(plan, believed, name) for name in (_FORWARD, _BACKWARD))
        return np.union1d(forward, _reversed(backward))
    name = _FORWARD if _FORWARD in directions else _BACKWARD
    keys = _believed_in(plan, believed, name)
    return keys if name == _FORWARD else _reversed(keys)


def _believed_in(plan: RawPlan, believed: _Served, name: str) -> NDArray[np.int64]:
    """Return the keys of the edges that the workers expect in a direction, ascending."""
    directions = plan.manifest["directions"]
    first, last = directions[name]["first_block"], directions[name]["last_block"]
    keys = np.unique(believed.key[(believed.block >= first) & (believed.block <= last)])
    inside = plan.assignment[keys >> 32] == plan.assignment[keys & _LOW]
    if np.any(inside):
        edge = _edge(keys[np.argmax(inside)])
        raise PlanCheckError(f"{name}: the edge {edge} has both ends on one worker")
    edges = plan.manifest["graph"]["edges"]
    require(len(keys) <= edges, f"the plan serves {len(keys)} edges of a graph with {edges}")
    return keys


def _reversed(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.sort(((keys & _LOW) << 32) | (keys >> 32))


def _served(plan: RawPlan, deliveries: Deliveries, packets: Packets) -> _Served:
    """Return what the switch adds: each vertex in a packet, for each destination of the packet."""
    rows = np.diff(packets.indptr)[deliveries.packet]
    # Both counts agree already, so this is what the slots expect: it cannot run away.
    total = np.concatenate([[0], np.cumsum(rows)])
    within = np.arange(total[-1]) - np.repeat(total[:-1], rows)
    source = packets.vertex[np.repeat(packets.indptr[deliveries.packet], rows) + within]
    result = np.repeat(deliveries.result, rows)
    destination = plan.switch["result_vertex"][result].astype(np.int64)
    block = plan.switch["result_block"][result].astype(np.int64)
    return _Served(block, (source << 32) | destination)


def _believed(neighbours: Neighbours) -> _Served:
    return _Served(neighbours.block, (neighbours.source << 32) | neighbours.destination)


def _check_edges(boundary: NDArray[np.int64], served: _Served, blocks: _Blocks, who: str) -> None:
    """Raise unless the blocks serve exactly the boundary edges."""
    name = blocks.name
    inside = (served.block >= blocks.first) & (served.block <= blocks.last)
    keys = np.sort(served.key[inside])
    if np.array_equal(keys, boundary):
        return
    twice = keys[1:][keys[1:] == keys[:-1]]
    strange = np.setdiff1d(keys, boundary)
    missing = np.setdiff1d(boundary, keys)
    for found, problem in (
        (strange, "which is no boundary edge"),
        (twice, "more than once"),
    ):
        if len(found):
            raise PlanCheckError(f"{name}: {who} the edge {_edge(found[0])} {problem}")
    raise PlanCheckError(f"{name}: nobody serves the edge {_edge(missing[0])}, though {who} others")


def _check_same_blocks(served: _Served, believed: _Served) -> None:
    """Raise unless switch and workers put every edge into the same block."""
    one, other = np.lexsort((served.key, served.block)), np.lexsort((believed.key, believed.block))
    same = np.array_equal(served.key[one], believed.key[other])
    same = same and np.array_equal(served.block[one], believed.block[other])
    require(same, "a worker expects an edge in another block than the switch serves it in")


def _check_prediction(
    plan: RawPlan,
    deliveries: Deliveries,
    blocks: _Blocks,
    *,
    whole: NDArray[np.int64],
    known: bool,
) -> None:
    """Raise unless the manifest counts what there is.

    Args:
        plan: the plan.
        deliveries: what the switch adds where.
        blocks: of the direction.
        whole: the keys of its boundary edges, with those that are left to the hosts.
        known: whether those are there as well.
    """
    name, first, last = blocks.name, blocks.first, blocks.last
    said: dict[str, Any] = plan.manifest["directions"][name]["prediction"]
    source, destination = whole >> 32, whole & _LOW
    workers = len(plan.workers)
    copies = np.unique((source << 32) | plan.assignment[destination])
    host_up = np.bincount(plan.assignment[copies >> 32], minlength=workers)
    host_down = np.bincount(copies & _LOW, minlength=workers)
    block = plan.switch["entry_block"]
    here = (block >= first) & (block <= last)
    passes = int(np.count_nonzero(here))
    entries = passes
    if plan.manifest["version"] >= _WITHOUT_PARTIAL_SUMS:
        entries = int(np.count_nonzero(plan.switch["entry_source"][here] < _PARTIAL))
    added = plan.switch["result_block"][deliveries.result]
    of_all = {
        "boundary_vertices": len(np.union1d(source, destination)),
        "boundary_edges": len(whole),
        "host_packets_up": host_up.tolist(),
        "host_packets_down": host_down.tolist(),
    }
    counted = {
        **(of_all if known else {}),
        "packets_up": [_rows(part["send_indptr"], first, last) for part in plan.workers],
        "packets_down": [_rows(part["receive_indptr"], first, last) for part in plan.workers],
        "contributions": int(np.count_nonzero((added >= first) & (added <= last))),
        "entries": entries,
        "passes": passes,
    }
    for field, value in counted.items():
        require(said[field] == value, f"plan.json predicts a wrong {field} of {name}")


def _rows(indptr: NDArray[np.int64], first: int, last: int) -> int:
    return int(indptr[last] - indptr[first - 1])


def _edge(key: np.int64) -> str:
    return f"{int(key) >> 32}->{int(key) & _LOW}"
