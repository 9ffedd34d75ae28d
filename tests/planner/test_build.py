# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Whole plans, judged by running them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.planner import (
    BLOCK_STRATEGIES,
    ORDER_STRATEGIES,
    PARTITION_STRATEGIES,
    Direction,
    PlannerError,
    boundary_edges,
    build_plan,
    graph_from_edges,
    load_graph,
    reference_sums,
    strategies,
)
from switchgnn.planner.blocks.hypergraph import has_mtkahypar
from switchgnn.planner.plan import parts as parts_module
from switchgnn.planner.plan.banks import SWITCH_ARRAYS, WORKER_ARRAYS
from switchgnn.planner.plan.manifest import manifest_digest
from switchgnn.planner.sending.order import SendOrder
from tests.planner.helpers import (
    STEADY,
    random_features,
    random_graph,
    reports,
    split_graphs,
    tuples,
)
from tests.planner.switch_model import ReplayError, check, replay

PROGRAM = "ab" * 32


def plan_of(graph, workers=3, slots=10, **options):
    return build_plan(graph, workers=workers, slots=slots, program=PROGRAM, **options)


def forward(plan):
    return plan.manifest.direction(Direction.FORWARD)


@STEADY
@given(split_graphs(), st.integers(2, 45), st.integers(0, 3))
def test_a_plan_delivers_the_reference_sums(split, slots, seed):
    graph, workers, assignment = split
    plan = plan_of(graph, workers, slots, assignment=assignment, seed=seed)
    features = random_features(graph, seed)
    check(plan, features, reference_sums(graph, assignment, features), seed)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("workers", "slots"), [(2, 200), (4, 30), (8, 9), (3, 2)])
def test_larger_plans(workers, slots, directed):
    graph = random_graph(120, 500, workers, directed=directed)
    plan = plan_of(graph, workers, slots)
    features = random_features(graph)
    check(plan, features, reference_sums(graph, plan.assignment, features))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    "names",
    [
        *({"partition": name} for name in PARTITION_STRATEGIES),
        *({"blocks": name} for name in BLOCK_STRATEGIES),
        *({"order": name} for name in ORDER_STRATEGIES),
        {"partition": "metis-boundary", "blocks": "destination-cover", "order": "peel"},
    ],
    ids=lambda names: " ".join(names.values()),
)
def test_plans_of_every_strategy(names, directed):
    if names.get("blocks", "").startswith("hypergraph") and not has_mtkahypar():
        pytest.skip("Mt-KaHyPar is not installed")
    graph = random_graph(120, 500, 7, directed=directed)
    plan = plan_of(graph, 4, 30, directions="both", **names)
    features = random_features(graph)
    for direction in Direction:
        expected = reference_sums(graph, plan.assignment, features, direction)
        check(plan, features, expected, direction=direction)


def test_the_reference_is_the_sum_over_remote_in_neighbours():
    graph = random_graph(30, 150, 2, directed=True)
    assignment = (np.arange(30) % 4).astype(np.int32)
    features = np.random.default_rng(1).normal(size=(30, 2))
    expected = np.zeros_like(features)
    for u, v in zip(*graph.edges(), strict=True):
        if assignment[u] != assignment[v]:
            expected[v] += features[u]
    assert np.allclose(reference_sums(graph, assignment, features), expected)


@pytest.fixture(scope="module")
def karate():
    graph = load_graph("karate")
    plan = plan_of(graph, 4, 9)
    features = random_features(graph)
    expected = reference_sums(graph, plan.assignment, features)
    check(plan, features, expected)
    assert plan.manifest.blocks > 2
    return plan, features, expected


def broken(plan, **arrays):
    return replace(plan, switch=replace(plan.switch, **arrays))


def a_place(plan, at_least=2):
    """(row, bank) of a contribution to a sum of several."""
    rows, banks = np.nonzero(plan.switch.entry_expected >= at_least)
    return int(rows[0]), int(banks[0])


def must_fail(plan, karate):
    with pytest.raises(ReplayError):
        check(plan, karate[1], karate[2])


def test_a_dropped_contribution_is_found(karate):
    expected = karate[0].switch.entry_expected.copy()
    expected[a_place(karate[0])] = 0
    must_fail(broken(karate[0], entry_expected=expected), karate)


def test_a_dropped_contribution_is_found_even_if_the_count_agrees(karate):
    """Wrong sums, not only missing ones: the expected counts are lowered to match."""
    plan = karate[0]
    row, bank = a_place(plan)
    switch = plan.switch
    block, slot = switch.entry_block[row], switch.entry_slot[row, bank]
    expected = switch.entry_expected.copy()
    same = (switch.entry_block == block) & (switch.entry_slot[:, bank] == slot)
    expected[same & (expected[:, bank] > 0), bank] -= 1
    expected[row, bank] = 0
    hit = (switch.result_block == block) & (switch.result_bank == bank)
    hit &= switch.result_slot == slot
    vertex = int(switch.result_vertex[hit][0])
    parts = []
    for part in plan.workers:
        count = part.receive_count.copy()
        rows = np.arange(len(count))
        inside = (rows >= part.receive_indptr[block - 1]) & (rows < part.receive_indptr[block])
        count[inside & (part.receive_vertex == vertex)] -= 1
        parts.append(replace(part, receive_count=count))
    forged = replace(broken(plan, entry_expected=expected), workers=tuple(parts))
    replay(forged, karate[1])
    with pytest.raises(ReplayError, match="wrong sums"):
        check(forged, karate[1], karate[2])


def test_a_contribution_added_twice_is_found(karate):
    switch = karate[0].switch
    row, bank = a_place(karate[0])
    last = switch.entry_last.copy()
    last[row] = False
    twice = {
        "entry_block": switch.entry_block[row],
        "entry_source": switch.entry_source[row],
        "entry_hop": switch.entry_hop[row] + 1,
        "entry_last": True,
        "entry_count": 1,
        "entry_slot": switch.entry_slot[row],
        "entry_expected": np.where(np.arange(8) == bank, switch.entry_expected[row], 0),
    }
    arrays = {name: getattr(switch, name) for name in twice} | {"entry_last": last}
    doubled = {
        name: np.concatenate([arrays[name], [value]]).astype(arrays[name].dtype)
        for name, value in twice.items()
    }
    must_fail(broken(karate[0], **doubled), karate)


def test_swapped_results_are_found(karate):
    switch = karate[0].switch
    vertex = switch.result_vertex.copy()
    same = np.flatnonzero(
        (switch.result_block == switch.result_block[0])
        & (switch.result_worker == switch.result_worker[0])
    )
    assert len(same) > 1
    vertex[same[:2]] = vertex[same[1::-1]]
    must_fail(broken(karate[0], result_vertex=vertex), karate)


@pytest.mark.parametrize("change", [-1, 1])
def test_a_wrong_expected_count_is_found(karate, change):
    expected = karate[0].switch.entry_expected.copy()
    row, bank = a_place(karate[0])
    switch = karate[0].switch
    same = (switch.entry_block == switch.entry_block[row]) & (
        switch.entry_slot[:, bank] == switch.entry_slot[row, bank]
    )
    expected[same & (expected[:, bank] > 0), bank] += np.int16(change).astype(np.uint16)
    must_fail(broken(karate[0], entry_expected=expected), karate)


def test_two_destinations_in_one_slot_are_found(karate):
    switch = karate[0].switch
    slot = switch.entry_slot.copy()
    slot[a_place(karate[0])] += 1
    must_fail(broken(karate[0], entry_slot=slot), karate)


def test_worker_parts_name_owners_and_neighbours():
    graph = random_graph(60, 300, 4, directed=True)
    plan = plan_of(graph, 4, 12)
    boundary = boundary_edges(graph, plan.assignment)
    edges = []
    for part in plan.workers:
        assert np.array_equal(part.vertices, np.flatnonzero(plan.assignment == part.worker))
        assert np.array_equal(part.vertices[part.receive_row], part.receive_vertex)
        assert np.array_equal(np.diff(part.neighbour_indptr), part.receive_count)
        assert np.array_equal(part.neighbour_worker, plan.assignment[part.neighbour_vertex])
        destinations = np.repeat(part.receive_vertex, part.receive_count)
        edges += tuples(part.neighbour_vertex, destinations)
        assert part.send_indptr[-1] == len(part.send_source)
        assert part.receive_indptr[-1] == len(part.receive_vertex)
    expected = tuples(boundary.source, boundary.destination)
    assert sorted(edges) == sorted(expected)


def test_types_are_those_of_the_layout():
    plan = plan_of(load_graph("karate"))
    for part, kinds in ((plan.switch, SWITCH_ARRAYS), (plan.workers[0], WORKER_ARRAYS)):
        for name, kind in kinds.items():
            assert getattr(part, name).dtype == np.dtype(kind), name
    assert plan.switch.entry_slot.shape == (len(plan.switch.entry_hop), 8)


def test_the_manifest_counts_what_is_there():
    graph = random_graph(80, 400, 7)
    plan = plan_of(graph, 4, 20, seed=3)
    manifest, prediction = plan.manifest, forward(plan).prediction
    boundary = boundary_edges(graph, plan.assignment)
    remote = np.bincount(boundary.destination)
    assert (manifest.workers, manifest.slots, manifest.slots_per_bank) == (4, 20, 3)
    assert (manifest.format, manifest.version, manifest.banks) == ("switchgnn-plan", 7, 8)
    assert manifest.max_fan_in == remote.max()
    assert manifest.program == PROGRAM
    assert manifest.graph.digest == graph.digest()
    assert manifest.strategy.blocks == "mlgp"
    assert manifest.partition.seed == manifest.strategy.seed == 3
    assert manifest.digest == manifest_digest(manifest)
    assert prediction.boundary_edges == prediction.contributions == len(boundary)
    assert prediction.boundary_vertices == len(boundary.vertices())
    assert prediction.packets_up == tuple(len(p.send_source) for p in plan.workers)
    assert prediction.packets_down == tuple(len(p.receive_vertex) for p in plan.workers)
    assert prediction.passes == prediction.entries == len(plan.switch.entry_hop)
    copies = set(tuples(boundary.source, boundary.destination_worker))
    assert sum(prediction.host_packets_up) == len(copies)
    assert sum(prediction.host_packets_down) == len(copies)
    for worker in range(4):
        up = sum(plan.assignment[u] == worker for u, _ in copies)
        assert prediction.host_packets_up[worker] == up
        assert prediction.host_packets_down[worker] == sum(w == worker for _, w in copies)


def test_with_enough_slots_each_vertex_goes_up_and_down_once():
    graph = random_graph(80, 800, 7)
    plan = plan_of(graph, 8, 80)
    prediction = forward(plan).prediction
    assert plan.manifest.blocks == 1
    assert sum(prediction.packets_up) == prediction.boundary_vertices
    assert sum(prediction.packets_down) == prediction.boundary_vertices


def test_one_worker_needs_no_exchange():
    plan = plan_of(load_graph("karate"), 1)
    assert plan.manifest.blocks == 0
    assert plan.manifest.max_fan_in == 1
    assert forward(plan).prediction.packets_up == (0,)
    assert plan.workers[0].send_indptr.tolist() == [0]
    assert not replay(plan, random_features(load_graph("karate"))).any()


def test_the_same_arguments_give_the_same_plan():
    graph = load_graph("karate")
    first, second = plan_of(graph, seed=5), plan_of(graph, seed=5)
    assert first.manifest == second.manifest
    assert first.manifest.digest != plan_of(graph, seed=6).manifest.digest
    assert first.manifest.digest != plan_of(graph, seed=5, slots=11).manifest.digest


def test_progress_tells_the_steps():
    steps = []
    plan_of(load_graph("karate"), progress=steps.append)
    assert len(steps) == 6
    assert steps[0].startswith("partition")


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"slots": 1}, "at least 2"),
        ({"slots": 0}, "not possible"),
        ({"slots": 2**32}, "not possible"),
        ({"workers": 0}, "not possible"),
        ({"workers": 35}, "too many"),
        ({"blocks": "best"}, "known: destination, "),
        ({"order": "best"}, "known: bfs, gamr"),
        ({"send": "best"}, "known: cover, multicast"),
        ({"directions": "backward"}, "known: both, forward"),
        ({"seed": -1}, "seed"),
        ({"weight": -0.5}, "weight"),
        ({"weight": float("nan")}, "weight"),
        ({"weight": float("inf")}, "weight"),
        ({"assignment": np.zeros(3, dtype=int)}, "34 whole numbers"),
    ],
)
def test_impossible_requests(options, part):
    with reports(part):
        plan_of(load_graph("karate"), **options)


def test_the_program_is_a_digest():
    with pytest.raises(PlannerError, match="hex"):
        build_plan(load_graph("karate"), workers=2, slots=9, program="program.p4")


def test_a_fan_in_beyond_16_bits_is_refused():
    sources = 65536
    graph = graph_from_edges(
        np.arange(1, sources + 1),
        np.zeros(sources, int),
        name="hub",
        vertices=sources + 1,
        directed=True,
    )
    assignment = np.ones(sources + 1, dtype=np.int32)
    assignment[0] = 0
    with reports("65536 in-neighbours"):
        plan_of(graph, 2, 10**6, assignment=assignment)


def test_too_many_hops_are_refused(monkeypatch):
    monkeypatch.setattr(parts_module, "MAX_16_BITS", 3)
    graph = graph_from_edges(
        np.zeros(64, int), np.arange(1, 65), name="star", vertices=65, directed=True
    )
    with reports("8 passes"):
        plan_of(graph, 2, 100, assignment=np.array([0] + [1] * 64))


def with_strategy(monkeypatch, mapping, function):
    name = "BLOCK_STRATEGIES" if mapping is BLOCK_STRATEGIES else "ORDER_STRATEGIES"
    target = f"switchgnn.planner.build.{name}"
    monkeypatch.setattr(target, {**mapping, "mine": function})


def test_a_new_block_strategy_is_a_function_with_a_name(monkeypatch):
    def one_per_destination(boundary, slots, seed):
        return (np.unique(boundary.destination, return_inverse=True)[1] + 1).astype(np.int32)

    with_strategy(monkeypatch, BLOCK_STRATEGIES, one_per_destination)
    graph = load_graph("karate")
    plan = plan_of(graph, blocks="mine", slots=1)
    features = random_features(graph)
    check(plan, features, reference_sums(graph, plan.assignment, features))
    assert plan.manifest.strategy.blocks == "mine"


@pytest.mark.parametrize(
    ("blocks", "part"),
    [
        (lambda b, s, seed: np.ones(3, dtype=np.int32), "one block for each"),
        (lambda b, s, seed: np.zeros(len(b), dtype=np.int32), "from 1"),
        (lambda b, s, seed: np.full(len(b), 2, dtype=np.int32), "without gaps"),
        (lambda b, s, seed: np.ones(len(b), dtype=np.int32), "destinations for 3 slots"),
    ],
)
def test_a_wrong_block_strategy_is_caught(monkeypatch, blocks, part):
    with_strategy(monkeypatch, BLOCK_STRATEGIES, blocks)
    with reports(part):
        plan_of(load_graph("karate"), blocks="mine", slots=3)


@pytest.mark.parametrize("mistake", ["drop", "repeat", "shuffle"])
def test_a_wrong_order_strategy_is_caught(monkeypatch, mistake):
    def order(boundary, block, seed):
        good = strategies.gamr(boundary, block, seed)
        rows = np.arange(len(good.source))
        rows = {"drop": rows[1:], "repeat": rows[[0, *rows]], "shuffle": rows[::-1]}[mistake]
        return SendOrder(good.block[rows], good.source[rows])

    with_strategy(monkeypatch, ORDER_STRATEGIES, order)
    with reports("each source of each block once"):
        plan_of(load_graph("karate"), order="mine")
