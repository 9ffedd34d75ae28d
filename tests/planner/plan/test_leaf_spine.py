# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Plans for a leaf-spine: checked by their arrays, and by running them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.planner import Direction, load_graph, reference_sums
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from switchgnn.planner.plan.leaf_spine import predict_leaf_spine, split_for_leaf_spine
from tests.planner.helpers import (
    STEADY,
    plan_of,
    random_features,
    random_graph,
    reports,
    split_graphs,
)
from tests.planner.switch_model import ReplayError, check_routes, replay_leaf_spine


@given(split_graphs(), st.integers(2, 40), st.integers(1, 4), st.integers(1, 3), st.booleans())
@STEADY
def test_any_leaf_spine_makes_the_sums_of_one_switch(case, slots, leaves, spines, by_cover):
    graph, workers, assignment = case
    plan = plan_of(
        graph,
        workers,
        slots,
        assignment=assignment,
        directions="both",
        send="cover" if by_cover else "multicast",
    )
    parts = split_for_leaf_spine(plan, even_leaf_spine(workers, min(leaves, workers), spines))
    check_routes(plan, parts)
    features = random_features(graph)
    expected = reference_sums(graph, plan.assignment, features)
    assert np.array_equal(replay_leaf_spine(plan, parts, features).sums, expected)


@pytest.mark.parametrize("direction", list(Direction))
def test_prediction_is_what_crosses(direction):
    graph = random_graph(60, 300, 3, directed=True)
    plan = plan_of(graph, 6, 10, directions="both", send="cover")
    leaf_spine = even_leaf_spine(6, 3, 2)
    parts = split_for_leaf_spine(plan, leaf_spine)
    found = replay_leaf_spine(plan, parts, random_features(graph), direction)
    said = predict_leaf_spine(parts, plan.manifest.direction(direction))
    assert [list(row) for row in said.partial_sums] == found.partial_sums.tolist()
    assert [list(row) for row in said.sums] == found.sums_down.tolist()
    assert said.packets == found.partial_sums.sum() + found.sums_down.sum()


def test_one_leaf_is_the_single_switch():
    plan = plan_of(load_graph("karate"), 4, 10)
    parts = split_for_leaf_spine(plan, even_leaf_spine(4, 1, 1))
    (leaf,) = parts.leaves
    for name in vars(plan.switch):
        assert np.array_equal(getattr(leaf.switch, name), getattr(plan.switch, name)), name
    assert not leaf.result_partial.any()
    assert len(parts.spines[0].switch.result_block) == 0


def test_leaves_divide_workers_evenly_or_are_refused():
    leaf_spine = even_leaf_spine(7, 3, 2)
    assert [list(leaf_spine.workers_of(leaf)) for leaf in range(3)] == [[0, 1, 2], [3, 4], [5, 6]]
    for leaves, spines in ((0, 1), (1, 0), (5, 1)):
        with reports():
            even_leaf_spine(4, leaves, spines)
    with reports("4 workers, the leaf-spine has 6"):
        split_for_leaf_spine(plan_of(load_graph("karate")), even_leaf_spine(6, 2, 1))


def _changed(array, at, by=1):
    copy = array.copy()
    copy[at] += by
    return copy


def _first_partial(part):
    return int(np.flatnonzero(part.result_partial)[0])


def _switch(part, **changes):
    return replace(part, switch=replace(part.switch, **changes))


MISTAKES = {
    "a partial sum of another name": lambda leaf: replace(
        leaf, result_partial=_changed(leaf.result_partial, _first_partial(leaf), 64)
    ),
    "a partial sum that counts as complete": lambda leaf: replace(
        leaf, result_partial=leaf.result_partial * (np.arange(len(leaf.result_partial)) != 0)
    ),
    "a partial sum to a worker": lambda leaf: _switch(
        leaf, result_worker=leaf.switch.result_worker * (leaf.result_partial == 0)
    ),
    "a count too high": lambda leaf: _switch(
        leaf, result_expected=_changed(leaf.switch.result_expected, 0)
    ),
    "a source of another worker": lambda leaf: _switch(
        leaf, source_worker=leaf.switch.source_worker[::-1].copy()
    ),
    "a route to another neighbour": lambda leaf: replace(
        leaf, route_neighbour=_changed(leaf.route_neighbour, 0)
    ),
    "a recall to nobody": lambda leaf: replace(
        leaf, route_above=np.full_like(leaf.route_above, 65535)
    ),
    "a recall of another slot": lambda leaf: replace(
        leaf, route_result=leaf.route_result[::-1].copy()
    ),
}


@pytest.mark.parametrize("mistake", list(MISTAKES))
def test_checker_finds(mistake):
    plan = plan_of(load_graph("karate"), 4, 10)
    parts = split_for_leaf_spine(plan, even_leaf_spine(4, 2, 1))
    leaf = parts.leaves[0]
    # The first result must be a partial sum, for the mistakes that change it.
    assert _first_partial(leaf) == 0
    broken = replace(parts, leaves=(MISTAKES[mistake](leaf), *parts.leaves[1:]))
    graph = load_graph("karate")
    features = random_features(graph)
    expected = reference_sums(graph, plan.assignment, features)
    with pytest.raises((AssertionError, ReplayError, IndexError)):
        check_routes(plan, broken)
        assert np.array_equal(replay_leaf_spine(plan, broken, features).sums, expected)
