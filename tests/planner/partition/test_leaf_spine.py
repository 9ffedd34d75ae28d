"""Partitions and reports that know the leaves, against counts one by one and all scores."""

from functools import partial

import numpy as np
import pytest
from hypothesis import strategies as st

from switchgnn.host.wire.header import BARRIER_FRAME_BYTES
from switchgnn.planner import Direction, load_graph, partition_workers
from switchgnn.planner.costs.report import report_leaf_spine_direction
from switchgnn.planner.partition import leaf_spine as of_leaves
from switchgnn.planner.partition.leaf_spine import (
    crossing_copies,
    crossing_sums,
    even_leaf_spine,
    metis_leaf_spine,
    partition_for_leaf_spine,
)
from switchgnn.planner.plan.leaf_spine import split_for_leaf_spine
from tests.planner import helpers
from tests.planner.switch_model import check_routes, replay_leaf_spine


def counted(graph, assignment, leaf_of):
    """(partial sums, sums, copies) between leaves, edge by edge."""
    pairs, away, copies = set(), set(), set()
    for u, v in helpers.tuples(*graph.edges()):
        one, other = int(assignment[u]), int(assignment[v])
        if one == other:
            continue
        pairs.add((v, leaf_of[one]))
        if leaf_of[one] != leaf_of[other]:
            away.add(v)
            copies.add((u, other))
    return sum(v in away for v, _ in pairs), len(away), len(copies)


@helpers.given(helpers.split_graphs(), st.integers(1, 4))
def test_what_crosses_is_what_is_counted_one_by_one(case, leaves):
    graph, workers, assignment = case
    leaf_spine = even_leaf_spine(workers, min(leaves, workers), 1)
    boundary = helpers.boundary_of(graph, assignment)
    found = (*crossing_sums(boundary, leaf_spine), crossing_copies(boundary, leaf_spine))
    assert found == counted(graph, assignment, leaf_spine.leaf_of_worker)


def communities(sizes, inside, between, seed=3):
    """Dense communities; `between` are (one, other, edges)."""
    rng = np.random.default_rng(seed)
    first = np.concatenate([[0], np.cumsum(sizes)])
    ends = [rng.integers(first[at], first[at + 1], (2, inside)) for at in range(len(sizes))]
    for pair in between:
        ends.append(np.stack([rng.integers(first[at], first[at + 1], pair[2]) for at in pair[:2]]))
    return helpers.graph_of(*np.concatenate(ends, axis=1), int(first[-1]))


KARATE = load_graph("karate")
GRAPHS = {
    "digits": load_graph("digits"),
    "random": helpers.random_graph(900, 4000, 2),
    "directed": helpers.random_graph(900, 4000, 2, directed=True),
    "communities": communities(
        [60] * 12, 700, [(a, b, 30) for a in range(12) for b in range(a) if a % 4 == b % 4]
    ),
}


@pytest.mark.parametrize(
    ("name", "workers", "leaves"),
    [
        *(("digits", 8, 2), ("digits", 16, 4), ("random", 12, 3), ("random", 7, 3)),
        *(("directed", 8, 4), ("communities", 12, 3)),
    ],
)
def test_never_more_crossings_than_metis(name, workers, leaves):
    """No more between leaves than with plain METIS, and shares as even."""
    graph, leaf_of = GRAPHS[name], even_leaf_spine(workers, leaves, 1).leaf_of_worker
    assignment = metis_leaf_spine(graph, workers, 0, leaves=leaves)
    shares = np.bincount(assignment, minlength=workers)
    assert len(shares) == workers
    assert shares.max() <= 1.1 * shares.mean()
    plain = partition_workers(graph, workers, 0)
    ours, theirs = (sum(counted(graph, each, leaf_of)[:2]) for each in (assignment, plain))
    assert ours <= theirs


@pytest.mark.parametrize("compared", [True, False])
def test_what_belongs_together_is_behind_one_leaf(monkeypatch, compared):
    """Communities 0, 2, 4, 6 know each other and not the odd ones."""
    if not compared:
        monkeypatch.setattr(of_leaves, "MOST_COMPARED_EDGES", 0)
    together = [(a, b, 25) for a in range(8) for b in range(a) if a % 2 == b % 2]
    graph = communities([40] * 8, 400, together)
    assignment = metis_leaf_spine(graph, 8, 0, leaves=2)
    assert counted(graph, assignment, even_leaf_spine(8, 2, 1).leaf_of_worker) == (0, 0, 0)


@helpers.given(
    helpers.graphs(), st.integers(1, 9), st.integers(1, 4), st.integers(0, 3), st.booleans()
)
def test_every_worker_gets_a_vertex(graph, workers, leaves, seed, compared):
    leaves = min(leaves, workers, graph.vertices)
    with pytest.MonkeyPatch.context() as patch:
        if not compared:
            patch.setattr(of_leaves, "MOST_COMPARED_EDGES", -1)
        make = partial(metis_leaf_spine, leaves=leaves)
        helpers.check_everybody_has_a_vertex(make, graph, workers, seed)


def slots_needed(plan, leaf_spine, direction):
    """Of each leaf and each spine, from what the workers await."""
    leaf_of = leaf_spine.leaf_of_worker
    leaves, spines = [{} for _ in range(leaf_spine.leaves)], [{} for _ in range(leaf_spine.spines)]
    for block in plan.manifest.direction(direction).block_numbers:
        for part in plan.workers:
            for at in range(*part.receive_indptr[block - 1 : block + 1].tolist()):
                rows = slice(*part.neighbour_indptr[at : at + 2].tolist())
                from_leaves = {leaf_of[worker] for worker in part.neighbour_worker[rows].tolist()}
                vertex = int(part.receive_vertex[at])
                used = [leaves[leaf] for leaf in from_leaves]
                if from_leaves != {leaf_of[part.worker]}:
                    used.append(spines[vertex % leaf_spine.spines])
                for switch in used:
                    switch.setdefault(block, set()).add(vertex)
    return [
        tuple(max(map(len, switch.values()), default=0) for switch in switches)
        for switches in (leaves, spines)
    ]


@pytest.mark.parametrize(
    ("direction", "send", "leaves", "spines", "rows"),
    [
        (Direction.FORWARD, "multicast", 3, 2, 1),
        (Direction.BACKWARD, "cover", 3, 2, 4),
        (Direction.FORWARD, "cover", 2, 1, 1),
        (Direction.BACKWARD, "multicast", 1, 2, 8),
    ],
)
def test_the_report_counts_what_crosses(direction, send, leaves, spines, rows):
    graph = helpers.random_graph(60, 300, 3, directed=True)
    plan = helpers.plan_of(graph, 6, 14, directions="both", send=send, rows=rows)
    leaf_spine = even_leaf_spine(6, leaves, spines)
    parts = split_for_leaf_spine(plan, leaf_spine)
    check_routes(plan, parts)
    edges = helpers.boundary_of(graph, plan.assignment).towards(direction)
    record = plan.manifest.direction(direction)
    options = (32,) * 3, BARRIER_FRAME_BYTES
    found = report_leaf_spine_direction(parts, record, edges, *options, rows=rows)

    played = replay_leaf_spine(plan, parts, helpers.random_features(graph), direction)
    up, down = int(played.partial_sums.sum()), int(played.sums_down.sum())
    load = found.ways["plan"]
    assert (load.packets_up, load.packets_down) == (up, down)
    size = 188 if rows == 1 else 76 + 128 * rows
    assert (load.bytes_up, load.bytes_down) == (up * 188 * 3, down * size * 3)
    assert found.packets_max == max(played.partial_sums.max(), played.sums_down.max())

    u, v = graph.edges()
    around = graph if direction is Direction.FORWARD else helpers.graph_of(v, u, 60, directed=True)
    pairs, away, copies = counted(around, plan.assignment, leaf_spine.leaf_of_worker)
    once, host = found.ways["once"], found.ways["host"]
    assert (once.packets_up, once.packets_down) == (pairs, away)
    assert (host.packets_up, host.packets_down) == (copies, copies)
    assert up >= pairs
    assert down >= away
    single = found.ways["single"]
    assert single.packets_up == sum(record.prediction.packets_up)
    assert single.packets_down == sum(record.prediction.packets_down)

    barriers = leaves * (1 + 3 * len(record.block_numbers))
    assert found.control_bytes == 2 * barriers * BARRIER_FRAME_BYTES
    whole = found.control_bytes + load.bytes_up + load.bytes_down
    assert found.control_share == pytest.approx(found.control_bytes / whole)
    assert [found.leaf_slots, found.spine_slots] == slots_needed(plan, leaf_spine, direction)


@pytest.mark.parametrize("ending", ["", ":", ":0", ":x"])
def test_other_names_are_refused(ending):
    with helpers.reports("write it as metis-leaf-spine:2"):
        helpers.plan_of(KARATE, partition=f"metis-leaf-spine{ending}")


def test_the_topology_says_how_many_leaves():
    leaf_spine = even_leaf_spine(6, 3, 1)
    for kind in ("metis-leaf-spine", "vertex-cut", "vertex-cut-ebv"):
        assert partition_for_leaf_spine(kind, leaf_spine) == f"{kind}:3"
        assert partition_for_leaf_spine(f"{kind}:3", leaf_spine) == f"{kind}:3"
        assert partition_for_leaf_spine(f"{kind}:2", None) == f"{kind}:2"
    assert partition_for_leaf_spine("vertex-cut-ebv:3:0.5", leaf_spine) == "vertex-cut-ebv:3:0.5"
    assert partition_for_leaf_spine("metis", leaf_spine) == "metis"
    assert partition_for_leaf_spine(None, leaf_spine) is None
    for wrong in ("metis-leaf-spine:2", "vertex-cut:2", "vertex-cut-ebv:2:0.5"):
        fitting = wrong.replace(":2", ":3")
        with helpers.reports(f"not for 3 leaves: write it as {fitting}"):
            partition_for_leaf_spine(wrong, leaf_spine)
    with helpers.reports("5 leaves are too many for 4 workers"):
        metis_leaf_spine(KARATE, 4, 0, leaves=5)
