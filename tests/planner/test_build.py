"""Whole plans, judged by the edges of the graph and by running them."""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import strategies as st

from switchgnn import planner
from switchgnn.planner.blocks.destination import has_mtkahypar
from switchgnn.planner.check.plan import check_plan
from switchgnn.planner.plan import parts as parts_module
from switchgnn.planner.sending import packets
from switchgnn.planner.sending.order import SendOrder
from switchgnn.planner.strategies import SEND_STRATEGIES
from tests.planner import helpers
from tests.planner.switch_model import PARTIAL_SUMS, check_sums

FORWARD, BACKWARD = planner.Direction.FORWARD, planner.Direction.BACKWARD
STRAWMAN = {"blocks": "strawman", "order": "random"}
KARATE = planner.load_graph("karate")


def by_chance(seed):
    """Edges by vertex or by partial sum, whichever comes: plans need not be good to be right."""

    def choose(boundary, block, weight):
        return np.random.default_rng([seed, len(boundary)]).random(len(boundary)) < 0.4

    return choose


def sent(plan):
    for part in plan.workers:
        for block in range(1, plan.manifest.blocks + 1):
            for at in range(part.send_indptr[block - 1], part.send_indptr[block]):
                low, high = part.send_row_indptr[at : at + 2]
                yield part, block, int(part.send_source[at]), part.send_row[low:high]


def served(plan):
    """(block, u, v) for every row u that a packet of the workers brings to the slot of v."""
    switch, targets = plan.switch, {}
    slots = helpers.tuples(switch.result_block, switch.result_bank, switch.result_slot)
    result = dict(zip(slots, switch.result_vertex.tolist(), strict=True))
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


def crossing(graph, assignment, direction):
    """The boundary edges, straight from the CSR arrays of the graph."""
    edges = [
        (u, v)
        for u in range(graph.vertices)
        for v in graph.indices[graph.indptr[u] : graph.indptr[u + 1]].tolist()
        if assignment[u] != assignment[v]
    ]
    return sorted(edges if direction is FORWARD else [(v, u) for u, v in edges])


def planned(split, slots, send, seed, **options):
    """A plan for both directions."""
    graph, workers, assignment = split
    options |= {"send": send, "directions": "both", "assignment": assignment, "seed": seed}
    with pytest.MonkeyPatch.context() as patch:
        known = {**SEND_STRATEGIES, "chance": by_chance(seed)}
        patch.setattr("switchgnn.planner.build.SEND_STRATEGIES", known)
        plan = helpers.plan_of(graph, workers, slots, **options)
    assert np.array_equal(plan.assignment, assignment)
    return plan


@pytest.mark.parametrize("send", ["multicast", "cover", "chance"])
@helpers.given(split=helpers.split_graphs(), slots=st.integers(2, 45), seed=st.integers(0, 3))
def test_every_edge_is_served_once_in_one_block_by_one_packet(send, split, slots, seed):
    graph, _, assignment = split
    plan = planned(split, slots, send, seed)
    edges = served(plan)
    check_blocks(plan, *(crossing(graph, assignment, direction) for direction in planner.Direction))
    check_counts(plan)
    for direction in planner.Direction:
        expected = crossing(graph, assignment, direction)
        blocks = plan.manifest.direction(direction).block_numbers
        assert sorted((u, v) for block, u, v in edges if block in blocks) == expected
        check_prediction(plan, direction, expected, send)
    check_sums(graph, plan, seed)


@pytest.mark.parametrize("send", ["multicast", "cover", "chance"])
@helpers.given(
    split=helpers.split_graphs(),
    slots=st.integers(2, 45),
    seed=st.integers(0, 3),
    rows=st.sampled_from([2, 4, 8]),
)
def test_bundles_bring_every_row_where_it_belongs(send, split, slots, seed, rows):
    plan, alone = (planned(split, slots, send, seed, rows=each) for each in (rows, 1))
    with TemporaryDirectory() as folder:
        planner.write_plan(plan, Path(folder) / "plan")
        check_plan(Path(folder) / "plan", split[0])
    check_sums(split[0], plan, seed)
    for one, single in zip(plan.workers, alone.workers, strict=True):
        assert np.array_equal(np.diff(one.send_indptr), -(-np.diff(single.send_indptr) // rows))
        filled = np.diff(one.send_row_indptr) > 0
        assert np.array_equal(one.send_destination[filled], single.send_destination)
        assert np.array_equal(one.send_row, single.send_row)
    for direction in planner.Direction:
        told, single = (each.manifest.direction(direction).prediction for each in (plan, alone))
        assert told.contributions == single.contributions


def check_blocks(plan, edges, reverse):
    """The blocks of the directions follow one another, or are the same where the edges are."""
    manifest = plan.manifest
    first, second = manifest.direction(FORWARD), manifest.direction(BACKWARD)
    assert first.first_block == 1
    assert first == second if edges == reverse else second.first_block == first.last_block + 1
    assert second.last_block == manifest.blocks
    assert set(plan.switch.entry_block.tolist()) == set(range(1, manifest.blocks + 1))
    neighbours = [0, *np.bincount([v for _, v in edges]), *np.bincount([u for u, _ in edges])]
    assert manifest.max_fan_in == max(1, *neighbours)
    found = []
    for part in plan.workers:
        assert np.array_equal(part.vertices, np.flatnonzero(plan.assignment == part.worker))
        assert np.array_equal(part.vertices[part.receive_row], part.receive_vertex)
        awaited = np.repeat(part.receive_vertex, part.receive_count)
        found += helpers.tuples(part.neighbour_vertex, awaited)
    assert sorted(found) == sorted(edges if edges == reverse else edges + reverse)


def check_counts(plan):
    """Slots await the Counts of their packets; ids are their worker's; receivers agree."""
    switch, counts = plan.switch, {}
    owner = dict(helpers.tuples(switch.source_vertex, switch.source_worker))
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
    results = helpers.tuples(switch.result_block, switch.result_bank, switch.result_slot)
    assert switch.result_expected.tolist() == [slots[key] for key in results]
    for part in plan.workers:
        assert np.array_equal(np.diff(part.neighbour_indptr), part.receive_count)
        assert np.array_equal(part.neighbour_worker, plan.assignment[part.neighbour_vertex])
        # Whatever may have to be fetched is known to the switch as its owner's.
        for vertex, worker in helpers.tuples(part.neighbour_vertex, part.neighbour_worker):
            assert owner[vertex] == worker
            assert vertex in plan.workers[worker].vertices


def check_prediction(plan, direction, edges, send):
    owner, record = plan.assignment, plan.manifest.direction(direction)
    said = record.prediction
    assert said.boundary_edges == len(edges)
    assert said.boundary_vertices == len({end for edge in edges for end in edge})
    up = Counter(part.worker for part, block, *_ in sent(plan) if block in record.block_numbers)
    copies = {(u, owner[v]) for u, v in edges}
    for worker, part in enumerate(plan.workers):
        low, high = part.receive_indptr[[record.first_block - 1, record.last_block]]
        received = part.receive_vertex[low:high].tolist()
        assert said.packets_up[worker] == up[worker]
        assert said.packets_down[worker] == len(received)
        assert set(received) == {v for _, v in edges if owner[v] == worker}
        assert said.host_packets_up[worker] == sum(owner[u] == worker for u, _ in copies)
        assert said.host_packets_down[worker] == sum(to == worker for _, to in copies)
    inside = np.isin(plan.switch.entry_block, record.block_numbers)
    assert said.contributions == np.count_nonzero(plan.switch.entry_expected[inside])
    assert said.contributions == len(edges) or send != "multicast"
    assert said.passes == inside.sum()
    assert said.entries == np.sum(plan.switch.entry_source[inside] < PARTIAL_SUMS)


@pytest.mark.parametrize(
    "options",
    [
        *({"blocks": name} for name in planner.BLOCK_STRATEGIES),
        *({"order": name} for name in planner.ORDER_STRATEGIES),
        {"partition": "metis-boundary", "blocks": "destination-cover"},
        {"workers": 2, "slots": 200},
        {"workers": 8, "slots": 9},
        {"workers": 3, "slots": 2},
    ],
    ids=lambda options: " ".join(map(str, options.values())),
)
def test_plans_of_every_strategy(options):
    if options.get("blocks", "").startswith("hypergraph") and not has_mtkahypar():
        pytest.skip("Mt-KaHyPar is not installed")
    graph = helpers.random_graph(120, 500, 7, directed=True)
    plan = helpers.plan_of(graph, **({"workers": 4, "slots": 30, "directions": "both"} | options))
    check_sums(graph, plan)


def test_the_reference_is_the_sum_over_remote_in_neighbours():
    graph = helpers.random_graph(30, 150, 2, directed=True)
    assignment = (np.arange(30) % 4).astype(np.int32)
    features = np.random.default_rng(1).normal(size=(30, 2))
    expected = np.zeros_like(features)
    for u, v in crossing(graph, assignment, FORWARD):
        expected[v] += features[u]
    assert np.allclose(planner.reference_sums(graph, assignment, features), expected)


def test_inner_edges_of_one_way_do_not_matter():
    """Blocks are shared when the edges between workers go both ways."""
    graph = helpers.graph_of([0, 0, 1], [1, 2, 0], 3, directed=True)
    plan = helpers.plan_of(graph, 2, assignment=np.array([0, 1, 0]), directions="both")
    assert plan.manifest.direction(BACKWARD) == plan.manifest.direction(FORWARD)


def test_too_many_blocks_in_both_directions_are_refused(monkeypatch):
    graph = helpers.random_graph(60, 300, 4, directed=True)
    forward = helpers.plan_of(graph, 4, 12).manifest.blocks
    monkeypatch.setattr(parts_module, "MAX_BLOCKS", forward)
    helpers.plan_of(graph, 4, 12)
    with helpers.reports(f"at most {forward} fit"):
        helpers.plan_of(graph, 4, 12, directions="both")


def test_ids_are_used_again_in_other_blocks():
    """The switch remembers each id, so a plan needs as many as its fullest block."""
    plan = helpers.plan_of(helpers.random_graph(200, 1500, 3), 3, 20, send="cover")
    sums = Counter(
        (part.worker, block) for part, block, source, _ in sent(plan) if source >= PARTIAL_SUMS
    )
    fullest = {worker: max(n for (w, _), n in sums.items() if w == worker) for worker in range(3)}
    known = plan.switch.source_vertex >= PARTIAL_SUMS
    assert dict(enumerate(np.bincount(plan.switch.source_worker[known]))) == fullest
    assert known.sum() < sum(sums.values())


@helpers.given(helpers.split_graphs(), st.integers(8, 40), st.integers(0, 3))
def test_with_a_slot_for_everybody_the_strawman_would_give_the_sums(split, slots, seed):
    """The numbers of the destinations, taken as slots, make a plan that a plain switch runs."""
    graph, workers, assignment = split
    options = STRAWMAN | {"assignment": assignment, "directions": "both", "seed": seed}
    plan = helpers.plan_of(graph, workers, slots, **options)
    assert np.array_equal(plan.assignment, assignment)
    edges = crossing(graph, assignment, FORWARD)
    shared = edges == crossing(graph, assignment, BACKWARD)
    assert plan.manifest.blocks == (2 - shared if edges else 0)
    for direction in planner.Direction:
        blocks = plan.manifest.direction(direction).block_numbers
        assert len(blocks) == min(1, len(edges))
        inside = np.isin(plan.switch.result_block, blocks)
        fill = np.bincount(plan.switch.result_bank[inside], minlength=1)
        assert fill.max() <= -(-int(fill.sum()) // 8)
    check_sums(graph, plan, seed)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"slots": 1}, "at least 2"),
        *((options, "not possible") for options in ({"slots": 0}, {"slots": 2**32})),
        ({"slots": 7, **STRAWMAN}, "at least 8"),
        ({"slots": 16, "pools": 2, **STRAWMAN}, "one pool"),
        ({"slots": 7, "pools": 4, "lanes": 64}, "at least 8"),
        *((options, "1 to 4") for options in ({"pools": 0}, {"pools": 5})),
        ({"send": "cover", **STRAWMAN}, "multicast, not cover"),
        ({"partition": "best"}, "known: chunk, g3, metis"),
        ({"blocks": "best"}, "known: destination, "),
        ({"order": "best"}, "known: bfs, gamr"),
        ({"send": "best"}, "known: cover, multicast"),
        ({"directions": "backward"}, "known: both, forward"),
        ({"seed": -1}, "seed"),
        *((options, "weight") for options in ({"weight": -0.5}, {"weight": float("nan")})),
        ({"weight": float("inf")}, "weight"),
        ({"program": "program.p4"}, "hex"),
    ],
)
def test_impossible_requests(options, part):
    with helpers.reports(part):
        helpers.plan_of(KARATE, **options)


def test_a_fan_in_beyond_16_bits_is_refused():
    graph = helpers.graph_of(np.arange(1, 65537), np.zeros(65536), 65537, directed=True)
    with helpers.reports("65536 in-neighbours"):
        helpers.plan_of(graph, 2, 10**6, assignment=(np.arange(65537) > 0).astype(np.int32))


def test_too_many_hops_and_partial_sums_are_refused(monkeypatch):
    monkeypatch.setattr(parts_module, "MAX_16_BITS", 3)
    graph = helpers.graph_of(np.zeros(64), np.arange(1, 65), 65, directed=True)
    with helpers.reports("8 passes"):
        helpers.plan_of(graph, 2, 100, assignment=np.array([0] + [1] * 64))
    monkeypatch.setattr(packets, "FIRST_RESERVED_ID", 35)
    with helpers.reports("partial sums"):
        helpers.plan_of(KARATE, 3, 10, send="cover")


KNOWN = {
    "partition": planner.PARTITION_STRATEGIES,
    "blocks": planner.BLOCK_STRATEGIES,
    "send": SEND_STRATEGIES,
    "order": planner.ORDER_STRATEGIES,
}


def with_strategy(monkeypatch, kind, function):
    name = f"switchgnn.planner.build.{kind.removesuffix('s').upper()}_STRATEGIES"
    monkeypatch.setattr(name, {**KNOWN[kind], "mine": function})


def test_a_new_block_strategy_is_a_function_with_a_name(monkeypatch):
    def one_per_destination(boundary, slots, seed):
        return (np.unique(boundary.destination, return_inverse=True)[1] + 1).astype(np.int32)

    with_strategy(monkeypatch, "blocks", one_per_destination)
    plan = helpers.plan_of(KARATE, blocks="mine", slots=1)
    check_sums(KARATE, plan, directions=[FORWARD])
    assert plan.manifest.strategy.blocks == "mine"


def changed_order(change):
    def order(boundary, block, seed):
        good = planner.strategies.gamr(boundary, block, seed)
        rows = change(np.arange(len(good.source)))
        return SendOrder(good.block[rows], good.source[rows])

    return order


@pytest.mark.parametrize(
    ("kind", "function", "part"),
    [
        ("partition", lambda g, w, s: np.zeros(g.vertices, dtype=np.int32), "no vertex"),
        ("partition", lambda g, w, s: np.zeros(3, dtype=np.int32), "34 whole numbers"),
        ("blocks", lambda b, s, seed: np.ones(3, dtype=np.int32), "one block for each"),
        ("blocks", lambda b, s, seed: np.zeros(len(b), dtype=np.int32), "from 1"),
        ("blocks", lambda b, s, seed: np.full(len(b), 2, dtype=np.int32), "without gaps"),
        ("blocks", lambda b, s, seed: np.ones(len(b), dtype=np.int32), "destinations for 3 slots"),
        ("order", changed_order(lambda rows: rows[1:]), "each source of each block once"),
        ("order", changed_order(lambda rows: rows[[0, *rows]]), "each source of each block once"),
        ("order", changed_order(lambda rows: rows[::-1]), "each source of each block once"),
        ("send", lambda b, block, weight: np.ones(3, dtype=bool), "one truth value per boundary"),
        ("send", lambda b, block, weight: np.ones(len(b), dtype=int), "one truth value per"),
    ],
)
def test_a_wrong_strategy_is_caught(monkeypatch, kind, function, part):
    with_strategy(monkeypatch, kind, function)
    with helpers.reports(part):
        helpers.plan_of(KARATE, 3, 3, **{kind: "mine"})
