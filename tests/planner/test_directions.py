# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Plans for both directions, judged by the edges of the graph and by running them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.planner import (
    BoundaryEdges,
    Direction,
    build_plan,
    load_graph,
    read_manifest,
    reference_sums,
    write_plan,
)
from switchgnn.planner.plan import edge_sets
from tests.planner.helpers import STEADY, random_graph, reports, split_graphs
from tests.planner.switch_model import ReplayError, check

FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD


def both_of(graph, workers=3, slots=10, **options):
    return build_plan(
        graph, workers=workers, slots=slots, program="ab" * 32, directions="both", **options
    )


def whole_numbers(graph, seed=0):
    return np.random.default_rng(seed).integers(-(2**40), 2**40, (graph.vertices, 3))


def planned_edges(plan, direction):
    """Every (source, destination) that the entries of the direction's blocks add up, sorted."""
    switch, edges = plan.switch, []
    results = {
        (int(b), int(bank), int(slot)): int(vertex)
        for b, bank, slot, vertex in zip(
            switch.result_block,
            switch.result_bank,
            switch.result_slot,
            switch.result_vertex,
            strict=True,
        )
    }
    for row, bank in zip(*np.nonzero(switch.entry_expected), strict=True):
        block = int(switch.entry_block[row])
        if block in plan.manifest.direction(direction).block_numbers:
            place = (block, int(bank), int(switch.entry_slot[row, bank]))
            edges.append((int(switch.entry_source[row]), results[place]))
    return sorted(edges)


def crossing_edges(graph, assignment):
    """The boundary edges, straight from the CSR arrays of the graph."""
    return [
        (u, v)
        for u in range(graph.vertices)
        for v in graph.indices[graph.indptr[u] : graph.indptr[u + 1]].tolist()
        if assignment[u] != assignment[v]
    ]


@STEADY
@given(split_graphs(), st.integers(2, 45), st.integers(0, 3))
def test_every_edge_is_summed_once_in_each_direction(split, slots, seed):
    graph, workers, assignment = split
    plan = both_of(graph, workers, slots, assignment=assignment, seed=seed)
    edges = crossing_edges(graph, assignment)
    assert planned_edges(plan, FORWARD) == sorted(edges)
    assert planned_edges(plan, BACKWARD) == sorted((v, u) for u, v in edges)


@STEADY
@given(split_graphs(), st.integers(2, 45), st.integers(0, 3))
def test_each_direction_delivers_its_reference_sums(split, slots, seed):
    graph, workers, assignment = split
    plan = both_of(graph, workers, slots, assignment=assignment, seed=seed)
    features = whole_numbers(graph, seed)
    for direction in Direction:
        expected = reference_sums(graph, assignment, features, direction)
        check(plan, features, expected, seed, direction)


@STEADY
@given(split_graphs(), st.integers(2, 45))
def test_blocks_of_the_directions_follow_one_another_or_are_the_same(split, slots):
    graph, workers, assignment = split
    plan = both_of(graph, workers, slots, assignment=assignment)
    manifest = plan.manifest
    first, second = manifest.direction(FORWARD), manifest.direction(BACKWARD)
    edges = crossing_edges(graph, assignment)
    assert first.first_block == 1
    if sorted(edges) == sorted((v, u) for u, v in edges):
        assert first == second
        assert first.last_block == manifest.blocks
    else:
        assert second.first_block == first.last_block + 1
        assert second.last_block == manifest.blocks
    used = set(plan.switch.entry_block.tolist())
    assert used == set(range(1, manifest.blocks + 1))
    neighbours = [0, *np.bincount([v for _, v in edges]), *np.bincount([u for u, _ in edges])]
    assert manifest.max_fan_in == max(1, *neighbours)


@STEADY
@given(split_graphs(), st.integers(2, 45))
def test_the_prediction_counts_each_direction_by_itself(split, slots):
    graph, workers, assignment = split
    plan = both_of(graph, workers, slots, assignment=assignment)
    edges = {FORWARD: crossing_edges(graph, assignment)}
    edges[BACKWARD] = [(v, u) for u, v in edges[FORWARD]]
    for direction, expected in edges.items():
        record = plan.manifest.direction(direction)
        prediction = record.prediction
        assert prediction.boundary_edges == prediction.contributions == len(expected)
        assert prediction.boundary_vertices == len({end for edge in expected for end in edge})
        copies = {(u, assignment[v]) for u, v in expected}
        for worker, part in enumerate(plan.workers):
            low, high = record.first_block - 1, record.last_block
            sent = part.send_source[part.send_indptr[low] : part.send_indptr[high]]
            received = part.receive_vertex[part.receive_indptr[low] : part.receive_indptr[high]]
            assert prediction.packets_up[worker] == len(sent)
            assert prediction.packets_down[worker] == len(received)
            assert set(sent.tolist()) == {u for u, _ in expected if assignment[u] == worker}
            assert set(received.tolist()) == {v for _, v in expected if assignment[v] == worker}
            up = sum(assignment[u] == worker for u, _ in copies)
            assert prediction.host_packets_up[worker] == up
            assert prediction.host_packets_down[worker] == sum(w == worker for _, w in copies)
        entries = sum(int(b) in record.block_numbers for b in plan.switch.entry_block)
        assert prediction.passes == prediction.entries == entries


def test_the_forward_half_is_the_plan_of_forward_alone():
    graph = random_graph(60, 300, 4, directed=True)
    both = both_of(graph, 4, 12)
    alone = build_plan(graph, workers=4, slots=12, program="ab" * 32)
    record = alone.manifest.direction(FORWARD)
    assert both.manifest.direction(FORWARD) == record
    assert alone.manifest.blocks == record.last_block < both.manifest.blocks
    rows = len(alone.switch.entry_block)
    assert np.array_equal(both.switch.entry_slot[:rows], alone.switch.entry_slot)
    assert np.array_equal(both.switch.entry_source[:rows], alone.switch.entry_source)


def test_an_undirected_graph_costs_nothing_more():
    graph = load_graph("karate")
    both = both_of(graph)
    alone = build_plan(graph, workers=3, slots=10, program="ab" * 32)
    assert both.manifest.files == alone.manifest.files
    assert both.manifest.direction(BACKWARD) == alone.manifest.direction(FORWARD)


def test_inner_edges_of_one_way_do_not_matter():
    """Blocks are shared when the edges between workers go both ways."""
    graph = random_graph(2, 0, 0, directed=True)
    graph = replace(graph, indptr=np.array([0, 2, 3, 3]), indices=np.array([1, 2, 0], np.int32))
    plan = both_of(graph, 2, assignment=np.array([0, 1, 0]))
    assert plan.manifest.direction(BACKWARD) == plan.manifest.direction(FORWARD)


def test_directions_survive_the_disk(tmp_path):
    plan = both_of(random_graph(30, 80, 1, directed=True))
    write_plan(plan, tmp_path / "plan")
    assert read_manifest(tmp_path / "plan") == plan.manifest
    assert plan.manifest.direction(BACKWARD).first_block > 1


def test_a_direction_that_was_not_planned_is_refused():
    plan = build_plan(load_graph("karate"), workers=2, slots=10, program="ab" * 32)
    with reports("no backward blocks"):
        plan.manifest.direction(BACKWARD)


def test_too_many_blocks_in_both_directions_are_refused(monkeypatch):
    graph = random_graph(60, 300, 4, directed=True)
    forward = build_plan(graph, workers=4, slots=12, program="ab" * 32).manifest.blocks
    monkeypatch.setattr(edge_sets, "MAX_BLOCKS", forward)
    build_plan(graph, workers=4, slots=12, program="ab" * 32)
    with reports(f"at most {forward} fit"):
        both_of(graph, 4, 12)


@pytest.mark.parametrize(
    "mistake",
    [
        lambda edges: edges,
        lambda edges: replace(edges, source=edges.destination, destination=edges.source),
    ],
    ids=["not transposed", "workers not exchanged"],
)
def test_planted_mistakes_are_found(monkeypatch, mistake):
    monkeypatch.setattr(BoundaryEdges, "transposed", mistake)
    graph = random_graph(60, 300, 4, directed=True)
    plan = both_of(graph, 4, 60)
    features = whole_numbers(graph)
    expected = reference_sums(graph, plan.assignment, features, BACKWARD)
    with pytest.raises((ReplayError, IndexError)):
        check(plan, features, expected, direction=BACKWARD)
