"""Blocks over leaves and spines: the slots of each switch, and how destinations are spread."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import strategies as st

from switchgnn.planner import PlannerError, boundary_edges, reference_sums, write_plan
from switchgnn.planner.blocks import destination as module
from switchgnn.planner.blocks.destination import (
    BlocksOver,
    destination,
    find_blocks_over,
    has_mtkahypar,
    number_ends,
    slots_needed,
)
from switchgnn.planner.blocks.refine import count_pairs, fit_within, limits_of, refine_within
from switchgnn.planner.check.files import PlanCheckError
from switchgnn.planner.check.plan import check_plan
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from switchgnn.planner.plan.leaf_spine import (
    check_leaves_that_complete,
    check_one_switch,
    split_for_leaf_spine,
)
from switchgnn.planner.presets import PlanContext, preset_strategies
from tests.planner.helpers import (
    given,
    plan_of,
    random_features,
    random_graph,
    reports,
    split_graphs,
    tuples,
)
from tests.planner.switch_model import check_routes, replay_leaf_spine
from tests.support.markers import some_of

KINDS = [
    "destination",
    "destination-cover",
    *(["hypergraph", "hypergraph-cover"] if has_mtkahypar() else []),
]
SPARSE, WORKERS, LEAVES, SPINES, SLOTS = random_graph(600, 1_500, 3), 8, 4, 2, 40


@cache
def sparse_plan(blocks=f"destination:{LEAVES}:{SPINES}", **options):
    return plan_of(SPARSE, WORKERS, SLOTS, blocks=blocks, partition="chunk", **options)


def fullest(parts):
    """Slots that a block takes in the fullest switch."""
    used = [np.bincount(part.switch.result_block) for part in parts.switches]
    return max(int(each.max(initial=0)) for each in used)


def leaf_shares(plan, leaves):
    """The destinations of each block by the leaf of their worker: int64[B, leaves]."""
    workers = plan.manifest.workers
    counts = np.zeros((plan.manifest.blocks, leaves), dtype=np.int64)
    leaf = plan.switch.result_worker.astype(np.int64) * leaves // workers
    np.add.at(counts, (plan.switch.result_block.astype(np.int64) - 1, leaf), 1)
    return counts


@given(
    split_graphs(),
    st.integers(1, 12),
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from(KINDS),
    st.booleans(),
)
def test_no_switch_needs_more_slots_and_sums_are_exact(case, slots, leaves, spines, kind, both):
    graph, workers, assignment = case
    leaves = min(leaves, workers)
    plan = plan_of(
        graph,
        workers,
        slots,
        blocks=f"{kind}:{leaves}:{spines}",
        assignment=assignment,
        send="cover" if kind.endswith("cover") else "multicast",
        directions="both" if both else "forward",
    )
    parts = split_for_leaf_spine(plan, even_leaf_spine(workers, leaves, spines))
    assert fullest(parts) <= slots
    check_routes(plan, parts)
    features = random_features(graph)
    expected = reference_sums(graph, plan.assignment, features)
    assert np.array_equal(replay_leaf_spine(plan, parts, features).sums, expected)


@given(split_graphs(), st.integers(1, 8), st.integers(1, 4))
def test_leaves_that_complete_have_the_slots(case, slots, leaves):
    graph, workers, assignment = case
    leaves = min(leaves, workers)
    blocks = f"destination:{leaves}:0"
    plan = plan_of(graph, workers, slots, blocks=blocks, assignment=assignment)
    check_leaves_that_complete(plan, even_leaf_spine(workers, leaves, 1))
    takes = {}
    block_of = dict(tuples(plan.switch.result_vertex, plan.switch.result_block))
    leaf = assignment * leaves // workers
    for u, v in tuples(*graph.edges()):
        if assignment[u] != assignment[v]:
            takes.setdefault((leaf[u], block_of[v]), set()).add(v)
            if leaf[u] != leaf[v]:
                takes.setdefault((leaf[v], block_of[v]), set()).add(v)
    assert max(map(len, takes.values()), default=0) <= slots


@pytest.mark.whole
@pytest.mark.parametrize("kind", some_of(lambda kind: kind % 2 == 0, KINDS))
def test_fewer_blocks_than_for_one_switch(kind):
    before, now = sparse_plan(kind), sparse_plan(f"{kind}:{LEAVES}:{SPINES}")
    assert now.manifest.blocks < 0.8 * before.manifest.blocks
    boundary = boundary_edges(SPARSE, now.assignment)
    needs = slots_needed(boundary, BlocksOver(kind, LEAVES, SPINES), WORKERS)
    bound = -(-int(needs.slot.sum(axis=0).max()) // SLOTS)
    assert bound <= now.manifest.blocks <= bound + 1


@pytest.mark.whole
@pytest.mark.parametrize("kind", some_of(lambda kind: kind % 2 == 0, KINDS))
def test_destinations_are_spread_over_leaves(kind):
    graph = random_graph(3_000, 30_000, 5)
    plan = plan_of(graph, 16, 300, blocks=f"{kind}:8:4")
    shares = leaf_shares(plan, 8)
    total = shares.sum(axis=0)
    # A leaf of a block has its part of all destinations of that leaf, and a tenth more at most.
    assert plan.manifest.blocks > 5
    assert shares.max(axis=0).max() <= 1.1 * (total / plan.manifest.blocks).max() + 2
    assert (shares.max(axis=1) / shares.sum(axis=1)).max() <= 1.3 / 8


@pytest.mark.whole
def test_too_large_blocks_are_found(monkeypatch, tmp_path):
    """A planted mistake: a spine's slots are forgotten."""
    right = module.slots_needed

    def wrong(boundary, over, workers):
        needs = right(boundary, over, workers)
        return replace(needs, slot=needs.slot & (np.arange(needs.slot.shape[1]) < over.leaves))

    monkeypatch.setattr(module, "slots_needed", wrong)
    plan = sparse_plan("destination:4:1")
    monkeypatch.undo()
    with reports("sums in spine 0, for 40 slots"):
        split_for_leaf_spine(plan, even_leaf_spine(WORKERS, 4, 1))
    write_plan(plan, tmp_path / "plan")
    with pytest.raises(PlanCheckError, match="slots of one switch, which has 40"):
        check_plan(tmp_path / "plan", SPARSE)
    right = sparse_plan()
    write_plan(right, tmp_path / "plan")
    check_plan(tmp_path / "plan", SPARSE)
    assert np.bincount(right.switch.result_block).max() > SLOTS


def test_a_strategy_that_does_not_keep_to_the_slots_is_caught(monkeypatch):
    monkeypatch.setattr(module, "_within_slots", lambda *_: None)
    with reports("slots of one switch, which has 40"):
        sparse_plan.__wrapped__()


def test_a_destination_in_two_blocks_is_caught():
    boundary = boundary_edges(SPARSE, np.arange(SPARSE.vertices, dtype=np.int32) % WORKERS)
    block = np.ones(len(boundary), dtype=np.int32)
    block[0] = 2
    with pytest.raises(PlannerError, match="into two blocks"):
        BlocksOver("destination", 4, 1).check(boundary, block, 10_000, WORKERS)


@pytest.mark.whole
def test_other_switches_than_planned_for_refuse_what_is_too_large():
    plan = sparse_plan()
    with reports("(destination:4:2) are for other leaves and spines"):
        check_one_switch(plan)
    check_one_switch(sparse_plan("destination"))
    with pytest.raises(PlannerError):
        split_for_leaf_spine(plan, even_leaf_spine(WORKERS, 1, 1))


def test_names():
    assert find_blocks_over("destination") is None
    over = find_blocks_over("hypergraph-cover:8:4")
    assert over == BlocksOver("hypergraph-cover", 8, 4)
    assert over.name == "hypergraph-cover:8:4"
    for wrong in ("mlgp:8:8", "destination:0:1", "destination:8", "destination:8:8:8"):
        with reports("as destination:8:8"):
            find_blocks_over(wrong)
    with pytest.raises(PlannerError, match="each leaf needs a worker"):
        plan_of(SPARSE, 2, SLOTS, blocks="destination:4:1")


def test_the_best_plan_knows_the_leaves():
    def chosen(graph, slots, **where):
        return preset_strategies("best", graph, PlanContext(8, slots, **where))

    attached = even_leaf_spine(8, 4, 2)
    star, over = chosen(SPARSE, 40), chosen(SPARSE, 40, leaf_spine=attached)
    assert over.blocks == f"{star.blocks}:4:2"
    assert "spread over the workers" in over.because["blocks"]
    assert "spread" not in star.because["blocks"]
    assert chosen(SPARSE, 40, leaf_spine=even_leaf_spine(8, 1, 2)).blocks == star.blocks
    assert chosen(SPARSE, 600, leaf_spine=attached).blocks == "destination-cover"
    completing = chosen(SPARSE, 40, leaf_spine=attached, leaves_complete=True)
    assert completing.blocks == f"{star.blocks}:4:0"
    assert (
        preset_strategies("paper", SPARSE, PlanContext(8, 40, leaf_spine=attached)).blocks == "mlgp"
    )


def random_limits(seed, destinations, parts):
    draw = np.random.default_rng(seed)
    takes = draw.random((destinations, 6)) < 0.5
    most = np.ceil(takes.sum(axis=0) / parts * 1.15 + 1).astype(np.int64)
    return limits_of(takes, most, (np.arange(destinations) % 3).astype(np.int32))


@given(split_graphs(), st.integers(2, 5), st.integers(0, 99))
def test_refining_within_limits_keeps_to_them_and_never_costs_pairs(case, parts, seed):
    graph, _, assignment = case
    boundary = boundary_edges(graph, assignment)
    edges = number_ends(boundary).edges
    limits = random_limits(seed, edges.destinations, parts)
    start = np.random.default_rng(seed).integers(0, parts, edges.destinations).astype(np.int32)
    fitted = fit_within(edges, start, parts, limits)
    over = [
        np.maximum(limits.loads(part, parts) - limits.most, 0).sum() for part in (start, fitted)
    ]
    assert over[1] <= over[0]
    if limits.hold(fitted, parts):
        refined = refine_within(edges, fitted, parts, limits)
        assert limits.hold(refined, parts)
        assert count_pairs(edges, refined, parts) <= count_pairs(edges, fitted, parts)


@pytest.mark.whole
def test_the_same_seed_gives_the_same_blocks():
    one, other = sparse_plan(seed=4), sparse_plan.__wrapped__(seed=4)
    assert one.manifest.digest == other.manifest.digest
    boundary = boundary_edges(SPARSE, one.assignment)
    assert destination(boundary, SLOTS, 4).max() > one.manifest.blocks
