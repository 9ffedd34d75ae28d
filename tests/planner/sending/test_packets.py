# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Plans with partial sums: every edge served once, judged by the files and by running them."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.planner import (
    Direction,
    build_plan,
    load_graph,
    read_plan,
    reference_sums,
    write_plan,
)
from switchgnn.planner.sending import packets
from switchgnn.planner.strategies import SEND_STRATEGIES
from tests.planner.helpers import (
    STEADY,
    random_features,
    random_graph,
    reports,
    split_graphs,
    tuples,
)
from tests.planner.switch_model import PARTIAL_SUMS, ReplayError, check

SLOTS = st.integers(2, 45)


def plan_of(graph, workers=3, slots=10, send="cover", directions="both", **options):
    return build_plan(
        graph,
        workers=workers,
        slots=slots,
        program="ab" * 32,
        send=send,
        directions=directions,
        **options,
    )


def any_choice(seed):
    """Edges by vertex or by partial sum, whichever comes: plans need not be good to be right."""

    def choose(boundary, block, weight):
        return np.random.default_rng([seed, len(boundary)]).random(len(boundary)) < 0.4

    return choose


@pytest.fixture
def by_chance(monkeypatch):
    """Call it with a seed to get a send strategy that chooses by chance; gives its name."""

    def make(seed):
        known = {**SEND_STRATEGIES, "chance": any_choice(seed)}
        monkeypatch.setattr("switchgnn.planner.build.SEND_STRATEGIES", known)
        return "chance"

    return make


def served(plan):
    """(block, u, v) for every row u that a packet of the workers brings to the slot of v."""
    switch, targets = plan.switch, {}
    result = {
        key: vertex
        for *key, vertex in tuples(
            switch.result_block, switch.result_bank, switch.result_slot, switch.result_vertex
        )
        for key in [tuple(key)]
    }
    for row, bank in zip(*np.nonzero(switch.entry_expected), strict=True):
        block, slot = int(switch.entry_block[row]), int(switch.entry_slot[row, bank])
        packet = (block, int(switch.entry_source[row]))
        targets.setdefault(packet, []).append(result[block, int(bank), slot])
    edges = []
    for part, block, source, rows in sent(plan):
        for v in targets.pop((block, source)):
            edges += [(block, u, v) for u in part.vertices[rows].tolist()]
    assert not targets, "entries that nobody sends to"
    return edges


def sent(plan):
    for part in plan.workers:
        for block in range(1, plan.manifest.blocks + 1):
            for place in range(part.send_indptr[block - 1], part.send_indptr[block]):
                low, high = part.send_row_indptr[place : place + 2]
                yield part, block, int(part.send_source[place]), part.send_row[low:high]


def crossing(graph, assignment, direction):
    """The boundary edges, straight from the CSR arrays of the graph."""
    edges = [
        (u, v)
        for u in range(graph.vertices)
        for v in graph.indices[graph.indptr[u] : graph.indptr[u + 1]].tolist()
        if assignment[u] != assignment[v]
    ]
    return sorted(edges if direction is Direction.FORWARD else [(v, u) for u, v in edges])


@pytest.mark.parametrize("strategy", ["cover", "chance"])
@STEADY
@given(split=split_graphs(), slots=SLOTS, seed=st.integers(0, 3))
def test_every_edge_is_served_once_in_one_block_by_one_packet(strategy, split, slots, seed):
    graph, workers, assignment = split
    with pytest.MonkeyPatch.context() as patch:
        known = {**SEND_STRATEGIES, "chance": any_choice(seed)}
        patch.setattr("switchgnn.planner.build.SEND_STRATEGIES", known)
        plan = plan_of(graph, workers, slots, strategy, assignment=assignment, seed=seed)
    edges = served(plan)
    for direction in Direction:
        blocks = plan.manifest.direction(direction).block_numbers
        here = sorted((u, v) for block, u, v in edges if block in blocks)
        assert here == crossing(graph, assignment, direction)
    check_counts(plan)
    features = random_features(graph, seed)
    for direction in Direction:
        expected = reference_sums(graph, assignment, features, direction)
        check(plan, features, expected, seed, direction)


def check_counts(plan):
    """Slots await the Counts of their packets; ids are their worker's; receivers agree."""
    switch = plan.switch
    counts = {}
    owner = dict(tuples(switch.source_vertex, switch.source_worker))
    for part, block, source, rows in sent(plan):
        counts[block, source] = len(rows)
        assert len(set(rows.tolist())) == len(rows)
        assert owner[source] == part.worker
        assert (source >= PARTIAL_SUMS) == (len(rows) > 1)
    slots = Counter()
    for row, bank in zip(*np.nonzero(switch.entry_expected), strict=True):
        block = int(switch.entry_block[row])
        count = counts[block, int(switch.entry_source[row])]
        assert switch.entry_count[row] == count
        slots[block, int(bank), int(switch.entry_slot[row, bank])] += count
    for row, bank in zip(*np.nonzero(switch.entry_expected), strict=True):
        key = int(switch.entry_block[row]), int(bank), int(switch.entry_slot[row, bank])
        assert switch.entry_expected[row, bank] == slots[key]
    places = tuples(switch.result_block, switch.result_bank, switch.result_slot)
    assert switch.result_expected.tolist() == [slots[place] for place in places]
    for part in plan.workers:
        assert np.array_equal(np.diff(part.neighbour_indptr), part.receive_count)
        assert np.array_equal(part.neighbour_worker, plan.assignment[part.neighbour_vertex])
        # Whatever may have to be fetched is known to the switch as its owner's.
        for vertex, worker in zip(part.neighbour_vertex, part.neighbour_worker, strict=True):
            assert owner[int(vertex)] == worker
            assert vertex in plan.workers[worker].vertices


@STEADY
@given(split_graphs(), SLOTS)
def test_no_worker_sends_more_than_with_multicast(split, slots):
    graph, workers, assignment = split
    plans = {send: plan_of(graph, workers, slots, send, assignment=assignment) for send in
             ("multicast", "cover")}  # fmt: skip
    for direction in Direction:
        cover, plain = (
            plans[send].manifest.direction(direction).prediction for send in ("cover", "multicast")
        )
        assert all(a <= b for a, b in zip(cover.packets_up, plain.packets_up, strict=True))
        assert cover.packets_down == plain.packets_down
        assert cover.contributions <= plain.contributions


@STEADY
@given(split_graphs(), SLOTS)
def test_the_prediction_counts_packets_and_contributions(split, slots):
    graph, workers, assignment = split
    plan = plan_of(graph, workers, slots, assignment=assignment)
    for direction in Direction:
        record = plan.manifest.direction(direction)
        here = [(p.worker, b, s) for p, b, s, _ in sent(plan) if b in record.block_numbers]
        up = Counter(worker for worker, _, _ in here)
        assert record.prediction.packets_up == tuple(up[worker] for worker in range(workers))
        inside = np.isin(plan.switch.entry_block, record.block_numbers)
        contributions = np.count_nonzero(plan.switch.entry_expected[inside])
        assert record.prediction.contributions == contributions
        assert record.prediction.passes == inside.sum()
        own = plan.switch.entry_source[inside] < PARTIAL_SUMS
        assert record.prediction.entries == own.sum()
        assert own.sum() == inside.sum() - sum(s >= PARTIAL_SUMS for _, _, s in here)


def star(vertices, workers):
    """A hub on worker 0 that sums neighbours of all other workers."""
    graph = random_graph(vertices, 0, 0)
    indptr = np.concatenate([[0, 0], np.arange(1, vertices)])
    graph = replace(graph, indptr=indptr, indices=np.zeros(vertices - 1, np.int32))
    return graph, np.concatenate([[0], np.arange(vertices - 1) % (workers - 1) + 1])


def test_a_hub_gets_one_partial_sum_per_worker():
    graph, assignment = star(10, 4)
    plan = plan_of(graph, 4, 64, directions="forward", assignment=assignment)
    packets = [(part.worker, source, len(rows)) for part, _, source, rows in sent(plan)]
    # Three vertices each. Rank 0 of workers 1, 2, 3 of 4.
    ids = [PARTIAL_SUMS + worker for worker in (1, 2, 3)]
    assert sorted(packets) == [(worker, ids[worker - 1], 3) for worker in (1, 2, 3)]
    assert plan.switch.source_vertex.tolist() == [*range(1, 10), *ids]
    assert plan.switch.entry_expected[0].max() == 9
    assert plan.manifest.direction(Direction.FORWARD).prediction.contributions == 3


def test_ids_are_used_again_in_other_blocks():
    """The switch remembers each id, so a plan needs as many as its fullest block."""
    graph = random_graph(200, 1500, 3)
    plan = plan_of(graph, 3, 20)
    sums = Counter(
        (part.worker, block) for part, block, source, _ in sent(plan) if source >= PARTIAL_SUMS
    )
    fullest = {worker: max(n for (w, _), n in sums.items() if w == worker) for worker in range(3)}
    known = plan.switch.source_vertex >= PARTIAL_SUMS
    per_worker = np.bincount(plan.switch.source_worker[known])
    assert dict(enumerate(per_worker.tolist())) == fullest
    assert known.sum() < sum(sums.values())


def test_a_partial_sum_of_one_is_the_vertex(by_chance):
    graph = random_graph(60, 200, 5)
    plan = plan_of(graph, send=by_chance(1))
    assert all((source < PARTIAL_SUMS) == (len(rows) == 1) for _, _, source, rows in sent(plan))


def test_the_files_keep_partial_sums(tmp_path):
    plan = plan_of(load_graph("karate"))
    write_plan(plan, tmp_path / "plan")
    again = read_plan(tmp_path / "plan")
    assert again.manifest.strategy == plan.manifest.strategy
    assert (again.manifest.strategy.send, again.manifest.strategy.weight) == ("cover", 0.0)
    assert np.array_equal(again.switch.entry_count, plan.switch.entry_count)
    for one, other in zip(again.workers, plan.workers, strict=True):
        assert np.array_equal(one.send_row_indptr, other.send_row_indptr)
        assert np.array_equal(one.send_row, other.send_row)


def test_the_strawman_sends_features_only():
    with reports("multicast, not cover"):
        plan_of(load_graph("karate"), blocks="strawman", order="random")


def test_more_partial_sums_than_ids_are_refused(monkeypatch):
    monkeypatch.setattr(packets, "FIRST_RESERVED_ID", 35)
    with reports("partial sums"):
        plan_of(load_graph("karate"))


@pytest.mark.parametrize(
    "choice", [np.ones(3, dtype=bool), None], ids=["too few", "numbers for truth values"]
)
def test_a_wrong_send_strategy_is_caught(monkeypatch, choice):
    def choose(boundary, block, weight):
        return np.ones(len(boundary), dtype=int) if choice is None else choice

    monkeypatch.setattr("switchgnn.planner.build.SEND_STRATEGIES", {"mine": choose})
    with reports("one truth value per boundary edge"):
        plan_of(load_graph("karate"), send="mine")


def test_the_weight_reaches_the_strategy(monkeypatch):
    asked = []

    def choose(boundary, block, weight):
        asked.append(weight)
        return np.ones(len(boundary), dtype=bool)

    monkeypatch.setattr("switchgnn.planner.build.SEND_STRATEGIES", {"mine": choose})
    plan = plan_of(load_graph("karate"), send="mine", weight=0.25)
    assert set(asked) == {plan.manifest.strategy.weight} == {0.25}


@pytest.fixture(scope="module")
def karate():
    graph = load_graph("karate")
    plan = plan_of(graph, 3, 16, directions="forward")
    features = random_features(graph)
    expected = reference_sums(graph, plan.assignment, features)
    check(plan, features, expected)
    return plan, features, expected


def a_partial_sum(plan):
    """(worker, place of the packet, its rows' bounds) of a partial sum of the plan."""
    for part in plan.workers:
        for place in np.flatnonzero(part.send_source >= PARTIAL_SUMS):
            low, high = part.send_row_indptr[place : place + 2].tolist()
            return part.worker, int(place), low, high
    raise AssertionError("no partial sum")


def with_worker(plan, worker, **arrays):
    parts = list(plan.workers)
    parts[worker] = replace(parts[worker], **arrays)
    return replace(plan, workers=tuple(parts))


def must_fail(plan, karate, words):
    with pytest.raises(ReplayError, match=words):
        check(plan, karate[1], karate[2])


@pytest.mark.parametrize("change", [-1, 1])
def test_a_count_that_is_off_by_one_is_found(karate, change):
    count = karate[0].switch.entry_count.copy()
    row = int(np.flatnonzero(count > 1)[0])
    count[row] = int(count[row]) + change
    plan = replace(karate[0], switch=replace(karate[0].switch, entry_count=count))
    must_fail(plan, karate, "Count")


def test_a_row_that_is_added_twice_is_found(karate):
    worker, _, low, _ = a_partial_sum(karate[0])
    rows = karate[0].workers[worker].send_row.copy()
    rows[low + 1] = rows[low]
    must_fail(with_worker(karate[0], worker, send_row=rows), karate, "wrong sums")


def test_a_row_too_many_is_found(karate):
    worker, place, low, _ = a_partial_sum(karate[0])
    part = karate[0].workers[worker]
    rows = np.insert(part.send_row, low, part.send_row[low])
    bounds = part.send_row_indptr + (np.arange(len(part.send_row_indptr)) > place)
    plan = with_worker(karate[0], worker, send_row=rows, send_row_indptr=bounds)
    must_fail(plan, karate, "Count")


def test_a_partial_sum_of_another_worker_is_found(karate):
    worker, place, _, _ = a_partial_sum(karate[0])
    source = karate[0].workers[worker].send_source[place]
    owner = karate[0].switch.source_worker.copy()
    owner[karate[0].switch.source_vertex == source] = (worker + 1) % 3
    plan = replace(karate[0], switch=replace(karate[0].switch, source_worker=owner))
    must_fail(plan, karate, "not of worker")
