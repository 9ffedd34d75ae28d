# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Plans of the strawman: one block, no order, and a number for every destination."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.planner import Direction, build_plan, load_graph, reference_sums
from switchgnn.planner.sending.order import random_order
from tests.planner.helpers import STEADY, boundary_of, random_graph, reports, split_graphs, tuples
from tests.planner.switch_model import check


def strawman_plan(graph, workers, slots, assignment=None, directions="both", **options):
    return build_plan(
        graph,
        workers=workers,
        slots=slots,
        program="ab" * 32,
        assignment=assignment,
        blocks="strawman",
        order="random",
        directions=directions,
        **options,
    )


@STEADY
@given(split_graphs(), st.integers(8, 40))
def test_all_edges_of_a_direction_are_one_block(drawn, slots):
    graph, workers, assignment = drawn
    plan = strawman_plan(graph, workers, slots, assignment)
    boundary = boundary_of(graph, assignment)
    sets = 1 if symmetric(boundary) else 2
    assert plan.manifest.blocks == (sets if len(boundary) else 0)
    for direction in Direction:
        assert len(plan.manifest.direction(direction).block_numbers) == min(1, len(boundary))


@STEADY
@given(split_graphs(), st.integers(8, 40), st.integers(0, 3))
def test_with_a_slot_for_everybody_it_would_give_the_sums(drawn, slots, seed):
    """The numbers of the destinations, taken as slots, make a plan that a plain switch runs."""
    graph, workers, assignment = drawn
    plan = strawman_plan(graph, workers, slots, assignment, seed=seed)
    features = np.random.default_rng(seed).integers(-99, 99, (graph.vertices, 2))
    for direction in Direction:
        expected = reference_sums(graph, plan.assignment, features, direction)
        check(plan, features, expected, shuffle_seed=seed, direction=direction)


@STEADY
@given(split_graphs(), st.integers(8, 40))
def test_the_banks_have_equal_numbers_of_destinations(drawn, slots):
    graph, workers, assignment = drawn
    plan = strawman_plan(graph, workers, slots, assignment, "forward")
    fill = np.bincount(plan.switch.result_bank, minlength=1)
    assert fill.max() <= -(-int(fill.sum()) // 8)


@STEADY
@given(split_graphs(), st.integers(0, 3))
def test_the_order_is_shuffled_by_the_seed(drawn, seed):
    graph, _, assignment = drawn
    boundary = boundary_of(graph, assignment)
    block = (np.arange(len(boundary)) % 3 + 1).astype(np.int32)
    block = np.unique(block, return_inverse=True)[1].astype(np.int32) + 1
    order = random_order(boundary, block, seed)
    again = random_order(boundary, block, seed)
    assert np.array_equal(order.source, again.source)
    pairs = set(tuples(block, boundary.source))
    assert len(order.source) == len(pairs)
    assert set(tuples(order.block, order.source)) == pairs
    assert (np.diff(order.block) >= 0).all()


def test_the_order_is_no_order():
    graph = random_graph(400, 2000, 1)
    assignment = np.arange(400) % 4
    boundary = boundary_of(graph, assignment)
    block = np.ones(len(boundary), dtype=np.int32)
    orders = [random_order(boundary, block, seed).source for seed in (0, 1)]
    assert not np.array_equal(*orders)
    for order in orders:
        # As many ascents as descents, roughly: 400 draws are within 5 standard deviations.
        ascents = int((np.diff(order) > 0).sum())
        assert abs(ascents - len(order) / 2) < 30


def test_the_manifest_says_so_and_keeps_the_slots():
    graph = load_graph("karate")
    plan = strawman_plan(graph, 4, 9)
    assert plan.manifest.strawman
    assert (plan.manifest.slots, plan.manifest.slots_per_bank) == (9, 2)
    assert plan.manifest.direction(Direction.FORWARD).prediction.contributions > 9
    normal = build_plan(graph, workers=4, slots=9, program="ab")
    assert not normal.manifest.strawman


def test_a_bank_without_slots_is_refused():
    with reports("at least 8"):
        strawman_plan(load_graph("karate"), 4, 7)


def symmetric(boundary):
    edges = set(tuples(boundary.source, boundary.destination))
    return edges == {(v, u) for u, v in edges}
