"""The independent checker: does a plan on disk serve every boundary edge exactly once?

It follows docs/plans.md and shares no code with the planner. Order: files and digests, the part
of the switch, the parts of the workers, and the edges: those of the graph, or without a graph those
in the workers' lists of neighbours.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from switchgnn.base.array_types import Bools, Int64s, Integers
from switchgnn.planner.check.files import (
    Arrays,
    PlanCheckError,
    RawPlan,
    read_raw_manifest,
    read_raw_plan,
    require,
)
from switchgnn.planner.check.switch import Deliveries, check_switch
from switchgnn.planner.graphs.graph import Graph

_PARTIAL, _BUNDLE = 2**31, 3 * 2**30
_FORWARD, _BACKWARD = "forward", "backward"
_LOW = 0xFFFFFFFF


@dataclass(frozen=True)
class CarriedRows:
    """The vertices that each row of a packet adds up."""

    indptr: Int64s  # [P · K + 1], those of each row, in the order of Deliveries
    vertex: Int64s  # [...]


@dataclass(frozen=True)
class Edges:
    """Edges and the blocks that serve them, one row each; `key` is source << 32 | destination."""

    block: Int64s
    key: Int64s


def check_workers(plan: RawPlan, deliveries: Deliveries) -> tuple[CarriedRows, Edges]:
    """Check what every worker owns, sends and receives."""
    for worker, part in enumerate(plan.workers):
        _check_shapes(worker, part, plan.manifest["blocks"], plan.manifest["rows"])
        own = np.flatnonzero(plan.assignment == worker)
        require(
            np.array_equal(part["vertices"], own),
            f"Worker {worker} does not hold exactly the vertices that are assigned to it.",
        )
        _check_receives(plan, worker, part)
    return _check_sends(plan, deliveries), _neighbours(plan)


def _check_shapes(worker: int, part: Arrays, blocks: int, rows_of_packet: int) -> None:
    sends, receives = len(part["send_source"]), len(part["receive_vertex"])
    for name, rows, total in (
        ("send_indptr", blocks, sends),
        ("receive_indptr", blocks, receives),
        ("send_row_indptr", sends * rows_of_packet, len(part["send_row"])),
        ("neighbour_indptr", receives, len(part["neighbour_vertex"])),
    ):
        array = part[name]
        right = len(array) == rows + 1 and array[0] == 0 and array[-1] == total
        require(
            right and np.all(np.diff(array) >= 0),
            f"Worker {worker}: {name} does not rise from 0 to {total} in {rows} steps.",
        )
    for name, rows in (
        ("send_destination", sends * rows_of_packet),
        ("receive_row", receives),
        ("receive_count", receives),
        ("neighbour_worker", len(part["neighbour_vertex"])),
    ):
        require(len(part[name]) == rows, f"Worker {worker}: {name} has a wrong length.")
    for name in ("send_row", "receive_row"):
        inside = (part[name] >= 0) & (part[name] < len(part["vertices"]))
        require(np.all(inside), f"Worker {worker}: {name} is beyond its vertices.")


def rows_left(plan: RawPlan, name: str) -> Bools:
    """Return bool[V], the destinations of a direction that are left to the hosts."""
    left = np.zeros(len(plan.assignment), dtype=np.bool_)
    for worker, part in enumerate(plan.workers):
        rows = part.get(f"left_{name}", np.zeros(0, dtype=np.int64))
        inside = np.all((rows >= 0) & (rows < len(part["vertices"])))
        require(inside, f"Worker {worker}: left_{name} is beyond its vertices.")
        ascending = np.all(np.diff(rows) > 0)
        require(ascending, f"Worker {worker}: left_{name} is not ascending.")
        left[part["vertices"][rows]] = True
    return left


def _check_receives(plan: RawPlan, worker: int, part: Arrays) -> None:
    switch = plan.switch
    vertex = part["receive_vertex"].astype(np.int64)
    named = np.array_equal(part["vertices"][part["receive_row"]], vertex)
    require(named, f"Worker {worker}: receive_row and receive_vertex differ.")
    key = (_blocks(part["receive_indptr"]) << 32) | vertex
    require(np.all(np.diff(key) > 0), f"Worker {worker}: receive_vertex is not ascending.")
    mine = switch["result_worker"] == worker
    sums = (switch["result_block"][mine].astype(np.int64) << 32) | switch["result_vertex"][mine]
    order = np.argsort(sums)
    require(
        np.array_equal(sums[order], key),
        f"Worker {worker} expects other sums than the switch sends it.",
    )
    counts = np.array_equal(switch["result_expected"][mine][order], part["receive_count"])
    require(counts, f"Worker {worker} expects another Count of a sum than the switch.")
    neighbours, count = np.diff(part["neighbour_indptr"]), part["receive_count"]
    # A row of a bundle is one contribution, of one neighbour or more.
    bundled = plan.manifest["rows"] > 1
    listed = np.all(neighbours >= count) if bundled else np.array_equal(neighbours, count)
    require(listed, f"Worker {worker}: a list of neighbours is not as long as its Count.")


def _check_sends(plan: RawPlan, deliveries: Deliveries) -> CarriedRows:
    """Return the packets of all workers, in the order of the switch's entries."""
    keys, sizes, vertices, addressed = [], [], [], []
    rows = plan.manifest["rows"]
    source_ids = plan.switch["source_vertex"].astype(np.int64)
    source_worker = plan.switch["source_worker"]
    for worker, part in enumerate(plan.workers):
        ids = part["send_source"].astype(np.int64)
        carried = np.diff(part["send_row_indptr"])
        carrying = part["vertices"][part["send_row"]]
        if rows == 1:
            _check_carried(worker, ids, carried, carrying, part["send_row_indptr"])
        else:
            filled = carried.reshape(-1, rows) > 0
            require(np.all(filled[:, 0]), f"Worker {worker} sends a packet that carries nothing.")
            behind = np.any(filled[:, 1:] & ~filled[:, :-1])
            require(not behind, f"Worker {worker} sends a bundle with a gap between its rows.")
        pairs = np.sort((np.repeat(np.arange(len(carried)), carried) << 32) | carrying)
        require(np.all(np.diff(pairs) != 0), f"Worker {worker} adds a row twice to a packet.")
        index = np.searchsorted(source_ids, ids)
        known = index < len(source_ids)
        known[known] = source_ids[index[known]] == ids[known]
        require(np.all(known), f"Worker {worker} sends what the switch does not know.")
        require(
            np.all(source_worker[index] == worker),
            f"Worker {worker} sends a packet that the switch takes from another worker only.",
        )
        keys.append((_blocks(part["send_indptr"]) << 32) | ids)
        sizes.append(carried)
        vertices.append(carrying)
        addressed.append(part["send_destination"])
    key, carried = np.concatenate(keys), np.concatenate(sizes)
    carrying = np.concatenate(vertices)
    packets = np.argsort(key, kind="stable")
    order = (packets[:, np.newaxis] * rows + np.arange(rows)).reshape(-1)
    expected = (deliveries.packet_block << 32) | deliveries.packet_id
    require(
        np.array_equal(key[packets], expected),
        "The packets of the workers are not, once each, those that the switch has entries for.",
    )
    counts = carried[order] if rows == 1 else np.ones(len(packets), dtype=np.int64)
    wrong = np.flatnonzero(counts != deliveries.packet_count)
    if len(wrong):
        at = wrong[0]
        raise PlanCheckError(
            f"Packet {deliveries.packet_id[at]} of block {deliveries.packet_block[at]} adds up "
            f"{counts[at]} vertices, but the switch takes it with Count "
            f"{deliveries.packet_count[at]}."
        )
    _check_addressed(plan, deliveries, np.concatenate(addressed)[order], carried[order] > 1)
    starts = np.cumsum(carried) - carried
    indptr = np.concatenate([[0], np.cumsum(carried[order])])
    within = np.arange(indptr[-1]) - np.repeat(indptr[:-1], carried[order])
    return CarriedRows(indptr, carrying[np.repeat(starts[order], carried[order]) + within])


def _check_addressed(
    plan: RawPlan, deliveries: Deliveries, addressed: Integers, partial: Bools
) -> None:
    """Check that partial sums name their only destination, and other rows none."""
    require(not np.any(addressed[~partial]), "A packet of one vertex names a destination.")
    to = partial[deliveries.row]
    row, vertex = deliveries.row[to], plan.switch["result_vertex"][deliveries.result[to]]
    wrong = np.flatnonzero(addressed[row] != vertex)
    if len(wrong):
        at = row[wrong[0]] // plan.manifest["rows"]
        raise PlanCheckError(
            f"Partial sum {deliveries.packet_id[at]} of block {deliveries.packet_block[at]} names "
            f"vertex {addressed[row[wrong[0]]]}, but the switch adds it for {vertex[wrong[0]]}."
        )


def _check_carried(
    worker: int, ids: Int64s, carried: Int64s, carrying: Int64s, indptr: Int64s
) -> None:
    require(np.all(carried > 0), f"Worker {worker} sends a packet that carries nothing.")
    plain = ids < _PARTIAL
    require(np.all(carried[plain] == 1), f"Worker {worker} adds to a packet of one vertex.")
    named = np.array_equal(carrying[indptr[:-1][plain]], ids[plain])
    require(named, f"Worker {worker}: send_row and send_source differ.")


def _neighbours(plan: RawPlan) -> Edges:
    blocks, keys = [], []
    for worker, part in enumerate(plan.workers):
        source = part["neighbour_vertex"].astype(np.int64)
        counts = np.diff(part["neighbour_indptr"])
        require(np.all(source < len(plan.assignment)), f"Worker {worker}: no such neighbour.")
        require(
            np.array_equal(plan.assignment[source], part["neighbour_worker"]),
            f"Worker {worker} believes that a neighbour belongs to another worker than it does.",
        )
        ascending = (np.repeat(np.arange(len(counts)), counts) << 32) | source
        require(np.all(np.diff(ascending) > 0), f"Worker {worker}: neighbours are not ascending.")
        blocks.append(np.repeat(_blocks(part["receive_indptr"]), counts))
        destination = np.repeat(part["receive_vertex"].astype(np.int64), counts)
        keys.append((source << 32) | destination)
    return Edges(np.concatenate(blocks), np.concatenate(keys))


def _blocks(indptr: Int64s) -> Int64s:
    return np.repeat(np.arange(1, len(indptr), dtype=np.int64), np.diff(indptr))


@dataclass(frozen=True)
class CheckedPlan:
    """A plan that passed the check."""

    workers: int
    blocks: int
    packets: int  # sent by all workers in all blocks
    sums: int  # received by all workers in all blocks
    edges: int  # served boundary edges of each direction that has blocks of its own


@dataclass(frozen=True)
class _Blocks:
    name: str
    first: int
    last: int


def check_plan(folder: str | Path, graph: Graph | None = None) -> CheckedPlan:
    """Check everything that a plan promises.

    Every boundary edge is served once, in one block, by one packet, or its destination is left to
    the hosts with all its edges. No slot is used twice in a block or lies outside its bank. Every
    expected count matches its packets. Every worker holds, sends and receives its own, and knows
    its neighbours.

    Without the graph, the switch and the workers only have to agree on the edges.
    """
    try:
        return _check(read_raw_plan(Path(folder)), graph)
    except (KeyError, TypeError, AttributeError) as error:
        raise PlanCheckError(f"{folder}/plan.json lacks a field or has a strange one.") from error


def name_of_graph(folder: str | Path) -> str:
    """Return the plan's name for its graph."""
    try:
        return str(read_raw_manifest(Path(folder))["graph"]["name"])
    except (KeyError, TypeError) as error:
        raise PlanCheckError(f"{folder}/plan.json does not name its graph.") from error


def _check(plan: RawPlan, graph: Graph | None) -> CheckedPlan:
    if graph is not None:
        record = plan.manifest["graph"]
        same = record["digest"] == graph.digest() and record["vertices"] == graph.vertices
        require(same, f"The plan is for graph {record['name']}, not for this {graph.name}.")
    _check_assignment(plan)
    deliveries = check_switch(plan)
    packets, believed = check_workers(plan, deliveries)
    served = _served(plan, deliveries, packets)
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
    one, other = np.lexsort((served.key, served.block)), np.lexsort((believed.key, believed.block))
    same = np.array_equal(served.key[one], believed.key[other])
    same = same and np.array_equal(served.block[one], believed.block[other])
    require(same, "A worker expects an edge in another block than the switch serves it in.")
    sums = len(plan.switch["result_block"])
    packet_number = len(deliveries.packet_id)
    return CheckedPlan(len(plan.workers), plan.manifest["blocks"], packet_number, sums, edges)


def _check_assignment(plan: RawPlan) -> None:
    workers, assignment = len(plan.workers), plan.assignment
    fits = len(assignment) == plan.manifest["graph"]["vertices"]
    require(fits, "assignment.safetensors does not fit the graph.")
    inside = np.all((assignment >= 0) & (assignment < workers))
    require(inside, f"assignment.safetensors names a worker outside 0..{workers - 1}.")


def _check_left(plan: RawPlan, blocks: _Blocks, left: Bools, boundary: Int64s | None) -> None:
    """Raise unless destinations left to the hosts have edges, and no sum in these blocks."""
    block, vertex = plan.switch["result_block"], plan.switch["result_vertex"].astype(np.int64)
    here = (block >= blocks.first) & (block <= blocks.last)
    both = vertex[here][left[vertex[here]]]
    if len(both):
        raise PlanCheckError(
            f"{blocks.name}: vertex {both[0]} is left to the hosts, and the switch sums it, too."
        )
    if boundary is None:
        return
    idle = np.setdiff1d(np.flatnonzero(left), boundary & _LOW)
    if len(idle):
        raise PlanCheckError(
            f"{blocks.name}: vertex {idle[0]} is left to the hosts without any remote neighbour."
        )


def _check_no_others_left(plan: RawPlan) -> None:
    """Raise if destinations are left in a direction without blocks, or if none are left."""
    left = {name: bool(rows_left(plan, name).any()) for name in (_FORWARD, _BACKWARD)}
    for name, any_left in left.items():
        known = not any_left or name in plan.manifest["directions"]
        require(known, f"{name} sums are left to the hosts, but the plan has none.")
    empty = plan.leaves_any and not any(left.values())
    require(not empty, "The workers list what is left to the hosts, and nothing is.")


def _directions(plan: RawPlan) -> Iterator[tuple[list[str], int, int]]:
    """Yield (names, first block, last block) of each range; together they are all blocks."""
    ranges: dict[tuple[int, int], list[str]] = {}
    for name, record in plan.manifest["directions"].items():
        require(name in (_FORWARD, _BACKWARD), f"plan.json has a strange direction {name}.")
        ranges.setdefault((record["first_block"], record["last_block"]), []).append(name)
    require(bool(ranges), "plan.json has no direction.")
    following = 1
    for first, last in sorted(ranges):
        require(
            first == following and last >= first - 1,
            f"The blocks {first} to {last} of a direction do not follow those before them.",
        )
        following = last + 1
        yield ranges[first, last], first, last
    require(following == plan.manifest["blocks"] + 1, "Some blocks are of no direction.")


def _edges_of(plan: RawPlan, graph: Graph) -> Int64s:
    tail = np.repeat(np.arange(graph.vertices), np.diff(graph.indptr))
    crosses = plan.assignment[tail] != plan.assignment[graph.indices]
    return np.sort((tail[crosses] << 32) | graph.indices[crosses].astype(np.int64))


def _believed_edges(plan: RawPlan, believed: Edges) -> Int64s:
    """Return the keys of the edges that the workers expect, ascending, as forward edges.

    Where destinations are left to the hosts, both directions count: an edge may be left in one.
    """
    directions = plan.manifest["directions"]
    if plan.leaves_any and len(directions) > 1:
        forward, backward = (_believed_in(plan, believed, name) for name in (_FORWARD, _BACKWARD))
        return np.union1d(forward, _reversed(backward))
    name = _FORWARD if _FORWARD in directions else _BACKWARD
    keys = _believed_in(plan, believed, name)
    return keys if name == _FORWARD else _reversed(keys)


def _believed_in(plan: RawPlan, believed: Edges, name: str) -> Int64s:
    directions = plan.manifest["directions"]
    first, last = directions[name]["first_block"], directions[name]["last_block"]
    keys = np.unique(believed.key[(believed.block >= first) & (believed.block <= last)])
    inside = plan.assignment[keys >> 32] == plan.assignment[keys & _LOW]
    if np.any(inside):
        edge = _edge(keys[np.argmax(inside)])
        raise PlanCheckError(f"{name}: the edge {edge} has both ends on one worker.")
    edges = plan.manifest["graph"]["edges"]
    require(len(keys) <= edges, f"The plan serves {len(keys)} edges of a graph with {edges}.")
    return keys


def _reversed(keys: Int64s) -> Int64s:
    return np.sort(((keys & _LOW) << 32) | (keys >> 32))


def _served(plan: RawPlan, deliveries: Deliveries, packets: CarriedRows) -> Edges:
    """Return the additions of the switch: each vertex of a packet, for each of its destinations."""
    rows = np.diff(packets.indptr)[deliveries.row]
    # Both counts agree already, so this is what the slots expect: it cannot run away.
    total = np.concatenate([[0], np.cumsum(rows)])
    within = np.arange(total[-1]) - np.repeat(total[:-1], rows)
    source = packets.vertex[np.repeat(packets.indptr[deliveries.row], rows) + within]
    result = np.repeat(deliveries.result, rows)
    destination = plan.switch["result_vertex"][result].astype(np.int64)
    block = plan.switch["result_block"][result].astype(np.int64)
    return Edges(block, (source << 32) | destination)


def _check_edges(boundary: Int64s, served: Edges, blocks: _Blocks, who: str) -> None:
    name = blocks.name
    inside = (served.block >= blocks.first) & (served.block <= blocks.last)
    keys = np.sort(served.key[inside])
    if np.array_equal(keys, boundary):
        return
    twice = keys[1:][keys[1:] == keys[:-1]]
    strange = np.setdiff1d(keys, boundary)
    missing = np.setdiff1d(boundary, keys)
    for found, problem in ((strange, "which is no boundary edge"), (twice, "more than once")):
        if len(found):
            raise PlanCheckError(f"{name}: {who} the edge {_edge(found[0])} {problem}.")
    raise PlanCheckError(f"{name}: no packet serves the edge {_edge(missing[0])}; {who} others.")


def _check_prediction(
    plan: RawPlan, deliveries: Deliveries, blocks: _Blocks, *, whole: Int64s, known: bool
) -> None:
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
    ids, rows = plan.switch["entry_source"][here], plan.manifest["rows"]
    entries = int(np.count_nonzero((ids < _PARTIAL) | (ids >= _BUNDLE)))
    sent = [part["send_indptr"] for part in plan.workers]
    received = [np.diff(part["receive_indptr"][first - 1 : last + 1]) for part in plan.workers]
    added = plan.switch["result_block"][deliveries.result]
    of_all = {
        "boundary_vertices": len(np.union1d(source, destination)),
        "boundary_edges": len(whole),
        "host_packets_up": host_up.tolist(),
        "host_packets_down": host_down.tolist(),
    }
    counted = {
        **(of_all if known else {}),
        "packets_up": [int(each[last] - each[first - 1]) for each in sent],
        "packets_down": [int((-(-each // rows)).sum()) for each in received],
        "contributions": int(np.count_nonzero((added >= first) & (added <= last))),
        "entries": entries,
        "passes": passes,
    }
    for field, value in counted.items():
        require(said[field] == value, f"plan.json predicts a wrong {field} of {name}.")


def _edge(key: np.int64) -> str:
    return f"{int(key) >> 32}->{int(key) & _LOW}"
