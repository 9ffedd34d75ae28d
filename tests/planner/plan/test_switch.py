"""The parts of switches: passes and banks of one, and those of leaves and spines."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import strategies as st

from switchgnn.planner import load_graph
from switchgnn.planner.blocks.mlgp import mlgp
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from switchgnn.planner.plan.banks import BANKS_OF_SWITCHES, place_destinations, slots_per_bank
from switchgnn.planner.plan.leaf_spine import split_for_leaf_spine
from switchgnn.planner.plan.parts import switch_part
from switchgnn.planner.sending.packets import make_packets, multicast
from tests.planner import helpers
from tests.planner.switch_model import check_leaf_spine


@helpers.given(
    helpers.split_graphs(), st.integers(2, 40), st.integers(1, 4), st.integers(1, 3), st.booleans()
)
def test_any_leaf_spine_makes_the_sums_of_one_switch(case, slots, leaves, spines, by_cover):
    graph, workers, assignment = case
    options = {"directions": "both", "send": "cover" if by_cover else "multicast"}
    plan = helpers.plan_of(graph, workers, slots, assignment=assignment, **options)
    check_leaf_spine(graph, plan, even_leaf_spine(workers, min(leaves, workers), spines))


def test_one_leaf_is_the_single_switch():
    plan = helpers.plan_of(load_graph("karate"), 4, 10)
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
        with helpers.reports():
            even_leaf_spine(4, leaves, spines)
    with helpers.reports("4 workers, the network 6"):
        split_for_leaf_spine(helpers.plan_of(load_graph("karate")), even_leaf_spine(6, 2, 1))


def placed(graph, slots, workers=4, banks=8):
    boundary = helpers.boundary_of(graph, np.arange(graph.vertices) % workers)
    block = mlgp(boundary, slots, 0)
    return boundary, block, place_destinations(boundary, block, slots, banks=banks)


def entries(boundary, block, placement):
    packets = make_packets(boundary, block, multicast(boundary, block), vertices=2**20, workers=4)
    return switch_part(boundary, packets, placement)


@helpers.given(helpers.graphs(), st.integers(2, 40), st.sampled_from(BANKS_OF_SWITCHES))
def test_a_pass_adds_once_in_each_bank_of_the_switch(graph, slots, banks):
    boundary, block, placement = placed(graph, slots, banks=banks)
    part = entries(boundary, block, placement)
    for expected in part.entry_expected:
        used = np.flatnonzero(expected)
        assert len(set((used % banks).tolist())) == len(used) > 0
    where = list(helpers.tuples(placement.block, placement.bank, placement.slot))
    assert len(set(where)) == len(where)
    assert placement.slot.max(initial=0) < slots_per_bank(slots)
    degree = Counter(helpers.tuples(block, boundary.source))
    passes = Counter(helpers.tuples(part.entry_block, part.entry_source))
    assert passes.keys() == degree.keys()
    assert all(-(-degree[key] // banks) <= passes[key] <= degree[key] for key in degree)
    assert banks > 1 or passes == degree


@pytest.mark.parametrize("banks", BANKS_OF_SWITCHES)
def test_one_source_spreads_over_the_banks_of_the_switch(banks):
    """64 destinations of one source take 64 / banks passes, the least possible."""
    graph = helpers.graph_of(np.zeros(64), np.arange(1, 65), 65, directed=True)
    boundary = helpers.boundary_of(graph, [0] + [1] * 64)
    block = np.ones(64, dtype=np.int32)
    placement = place_destinations(boundary, block, 64, banks=banks)
    part = entries(boundary, block, placement)
    assert len(part.entry_block) == 64 // banks
    assert (np.count_nonzero(part.entry_expected, axis=1) == banks).all()
    # All slots are in use, whatever they are called.
    assert len(set(helpers.tuples(placement.bank, placement.slot))) == 64


def test_few_passes_on_a_social_graph():
    """Close to the bound of ceil(destinations / 8), far from one destination per pass."""
    rng = np.random.default_rng(0)
    weight = 1 / np.arange(1, 2001) ** 0.7
    ends = rng.choice(2000, (2, 20_000), p=weight / weight.sum())
    boundary, block, placement = placed(helpers.graph_of(*ends, 2000), 2000)
    passes = len(entries(boundary, block, placement).entry_block)
    bound = (-(-np.bincount(boundary.source) // 8)).sum()
    # 1.25 times the bound; looking at clashes alone would give 1.30 times.
    assert bound <= passes <= 1.27 * bound
    assert passes < len(boundary) / 3


def test_a_full_bank_takes_no_more():
    """Every destination of 15 to 17 would be best in bank 0, which has room for one more."""
    spread = [(u, v) for v in range(8, 15) for u in (0, 1, 2)]
    edges = [(3, 7), (4, 7), (5, 7), (6, 7), *spread, (0, 15), (1, 16), (2, 17)]
    graph = helpers.graph_of(*np.array(edges).T, 18, directed=True)
    boundary = helpers.boundary_of(graph, [0] * 7 + [1] * 11)
    assert len(boundary) == len(edges)
    placement = place_destinations(boundary, np.ones(len(edges), dtype=np.int32), 11)
    bank = dict(helpers.tuples(placement.vertex, placement.bank))
    assert [bank[vertex] for vertex in range(7, 16)] == [0, 1, 2, 3, 4, 5, 6, 7, 0]
    assert 0 not in (bank[16], bank[17])
    assert max(Counter(bank.values()).values()) <= slots_per_bank(11) == 2
    assert [slots_per_bank(slots) for slots in (2, 8, 9, 81920)] == [1, 1, 2, 10240]
    _, _, placement = placed(helpers.random_graph(16, 200, 0), 16)
    assert Counter(placement.bank.tolist()) == dict.fromkeys(range(8), 2)
