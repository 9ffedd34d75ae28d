"""What a plan costs, against oracles that count one by one and move packet after packet."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import strategies as st

from switchgnn.planner import ORDER_STRATEGIES, PRESETS, Direction, load_graph
from switchgnn.planner.costs import flow as flow_module
from switchgnn.planner.costs import report as reporting
from switchgnn.planner.costs import study
from tests.planner import helpers
from tests.support.markers import covering


@helpers.given(helpers.split_graphs())
def test_packets_are_those_counted_one_by_one(split):
    graph, workers, assignment = split
    boundary = helpers.boundary_of(graph, assignment)
    pairs = list(helpers.tuples(boundary.source, boundary.destination))
    copies = {(u, assignment[v]) for u, v in pairs}
    once = reporting.once_each(boundary, workers)
    host = reporting.host_based(boundary, workers)
    for worker in range(workers):
        assert once.up[worker] == sum(assignment[u] == worker for u in {u for u, _ in pairs})
        assert once.down[worker] == sum(assignment[v] == worker for v in {v for _, v in pairs})
        assert host.up[worker] == sum(assignment[u] == worker for u, _ in copies)
        assert host.down[worker] == sum(to == worker for _, to in copies)
    one_block = np.ones(len(boundary), dtype=np.int32)
    assert reporting.multicast_packets(boundary, one_block, workers).total == once.total
    each_alone = np.arange(1, len(boundary) + 1, dtype=np.int32)
    assert reporting.multicast_packets(boundary, each_alone, workers).total == 2 * len(boundary)


def smallest_cover(edges):
    """By trying all sets of vertices."""
    left = [("source", u) for u in {u for u, _ in edges}]
    right = [("sum", v) for v in {v for _, v in edges}]
    for size in range(len(left) + 1):
        for chosen in combinations(left + right, size):
            if all(("source", u) in chosen or ("sum", v) in chosen for u, v in edges):
                return size
    raise AssertionError


@helpers.given(st.sets(st.tuples(st.integers(0, 5), st.integers(6, 10)), max_size=9), st.booleans())
def test_the_bound_is_the_smallest_cover_of_each_worker(edges, two):
    """Vertices 0 to 5 are on one worker or on two, 6 to 10 on the last one."""
    ends = np.array(sorted(edges), dtype=np.int64).reshape(-1, 2)
    graph = helpers.graph_of(*ends.T, 11, directed=True)
    assignment = np.array([0, 0, 0, *[int(two)] * 3, *[2] * 5])
    least = reporting.least_with_partial_sums(helpers.boundary_of(graph, assignment), 3)
    own = [[(u, v) for u, v in edges if assignment[u] == worker] for worker in range(3)]
    assert least.up.tolist() == [smallest_cover(each) for each in own]
    assert least.down.tolist() == [0, 0, len({v for _, v in edges})]


def test_what_is_too_large_is_left_out(monkeypatch):
    graph = load_graph("karate")
    plan = helpers.plan_of(graph, 3, 9)
    boundary = helpers.boundary_of(graph, plan.assignment)
    monkeypatch.setattr(reporting, "MATCHING_EDGES", len(boundary) - 1)
    monkeypatch.setattr(flow_module, "MOST_REORDERED", len(boundary) - 1)
    found = reporting.report_direction(plan, Direction.FORWARD, boundary, (190,), {"paper": None})
    assert found.left_out == ["paper", "cover-bound", "order gamr", "order random"]
    assert set(found.ways) == {"plan", "host", "strawman", "once"}
    assert set(found.orders) == {"plan"}


def plain_pool(boundary, slots, arrival):
    """What the strawman sends, sums and overflows, contribution by contribution."""
    left = np.bincount(boundary.destination)
    free, held, sent = slots, set(), 0
    for edge in arrival:
        vertex = int(boundary.destination[edge])
        left[vertex] -= 1
        if vertex not in held and free:
            free -= 1
            held.add(vertex)
        if vertex not in held:
            sent += 1
        elif not left[vertex]:
            held.remove(vertex)
            free += 1
            sent += 1
    return sent


@helpers.given(helpers.split_graphs(), st.integers(1, 12), st.integers(0, 5))
def test_the_pool_is_that_of_the_plain_loop(split, slots, seed):
    graph, workers, assignment = split
    boundary = helpers.boundary_of(graph, assignment)
    pool = reporting.simulate_pool(boundary, slots, workers, seed)
    sources = np.unique(boundary.source)
    order = sources[reporting.arrival_order(len(sources), seed)]
    arrival = [edge for u in order for edge in np.flatnonzero(boundary.source == u).tolist()]
    assert len(boundary) < 20 or not np.array_equal(order, sources)
    assert int(pool.down.sum()) == plain_pool(boundary, slots, arrival)
    assert pool.up.tolist() == reporting.once_each(boundary, workers).up.tolist()


def test_the_report_counts_the_plan():
    graph = helpers.random_graph(80, 400, 7, directed=True)
    plan = helpers.plan_of(graph, directions="both")
    boundary = helpers.boundary_of(graph, plan.assignment).transposed()
    found = reporting.report_direction(plan, Direction.BACKWARD, boundary, (190,) * 3, {})
    record = plan.manifest.direction(Direction.BACKWARD)
    said, traffic = record.prediction, found.ways["plan"]
    assert traffic.up.packets == sum(said.packets_up)
    assert traffic.up.packets_max == max(said.packets_up)
    assert traffic.up.packets_mean == sum(said.packets_up) / 4
    assert traffic.up.imbalance == pytest.approx(4 * max(said.packets_up) / sum(said.packets_up))
    assert traffic.down.bytes_max == max(said.packets_down) * 190 * 3
    copies = boundary.host_copies()[0].size
    ours = traffic.up.packets + traffic.down.packets
    assert traffic.traffic_fraction == pytest.approx(ours / (2 * copies))
    assert found.copies_per_vertex == copies / len(np.unique(boundary.source))
    assert found.blocks == record.last_block - record.first_block + 1
    assert found.ways["once"].down.packets == len(np.unique(boundary.destination))
    assert found.ways["host"].traffic_fraction == 1
    assert found.ways["cover-bound"].traffic_fraction <= found.ways["once"].traffic_fraction
    assert found.slots_used_max <= 20
    blocks = plan.switch.result_block.tolist()
    sizes = [blocks.count(block) for block in record.block_numbers]
    assert (found.slots_used_max, found.slots_used_mean) == (max(sizes), np.mean(sizes))


def played(plan, direction):
    """(steps, queue, slots in use) of a plan, packet by packet from the parts of its workers."""
    record, switch, workers = plan.manifest.direction(direction), plan.switch, plan.workers
    queues, used = [], []
    for block in record.block_numbers:
        coming = sorted(
            (turn, part.worker, int(part.send_source[at]), int(np.diff(part.send_row_indptr)[at]))
            for part in workers
            for turn, at in enumerate(range(*part.send_indptr[block - 1 : block + 1].tolist()))
        )
        waiting, open_slots = 0, {}
        while coming or waiting:
            for _, _, source, count in coming[: len(workers)]:
                for entry in range(len(switch.entry_block)):
                    if (switch.entry_block[entry], switch.entry_source[entry]) != (block, source):
                        continue
                    for bank in np.flatnonzero(switch.entry_expected[entry]).tolist():
                        slot = bank, int(switch.entry_slot[entry, bank])
                        expected = int(switch.entry_expected[entry, bank])
                        open_slots[slot] = open_slots.get(slot, expected) - count
            done = [slot for slot, missing in open_slots.items() if not missing]
            open_slots = {slot: open_slots[slot] for slot in open_slots.keys() - done}
            waiting = max(waiting + len(done) - len(workers), 0)
            coming = coming[len(workers) :]
            queues.append(waiting)
            used.append(len(open_slots))
    return len(used), queues, used


@pytest.mark.parametrize(
    ("order", "send", "direction"),
    covering(list(ORDER_STRATEGIES), ["multicast", "cover"], list(Direction)),
)
def test_queue_and_slots_are_those_of_a_play_packet_by_packet(send, direction, order):
    graph = helpers.random_graph(50, 220, 3, directed=True)
    options = {"workers": 3, "slots": 14, "send": send, "directions": "both"}
    plan = helpers.plan_of(graph, order=order, **options)
    boundary = helpers.boundary_of(graph, plan.assignment)
    found = reporting.report_direction(plan, direction, boundary, (190,), {}).orders
    for name, other in (("plan", order), ("gamr", "gamr"), ("random", "random")):
        steps, queue, used = played(helpers.plan_of(graph, order=other, **options), direction)
        assert (found[name].steps, found[name].queue_max) == (steps, max(queue))
        assert found[name].slots_max == max(used)
        assert found[name].slots_mean == pytest.approx(np.mean(used))
        assert found[name].share_max == max(used) / 14
        assert found[name].share_mean == pytest.approx(np.mean(used) / 14)


def test_few_table_entries_at_a_time_are_the_same(monkeypatch):
    graph = helpers.random_graph(50, 220, 3)
    plan = helpers.plan_of(graph, 3, 14, send="cover")
    boundary = helpers.boundary_of(graph, plan.assignment)
    reports = []
    for together in (1 << 18, 7):
        monkeypatch.setattr(flow_module, "_TOGETHER", together)
        reports.append(reporting.report_direction(plan, Direction.FORWARD, boundary, (190,), {}))
    assert len(plan.switch.entry_block) > 2 * together
    assert reports[0] == reports[1]


def test_a_report_without_boundary_edges():
    graph = load_graph("karate")
    plan = helpers.plan_of(graph, 1)
    boundary = helpers.boundary_of(graph, plan.assignment)
    found = reporting.report_direction(plan, Direction.FORWARD, boundary, (190,), {})
    assert found.ways["plan"].traffic_fraction == found.passes_per_contribution == 0
    assert found.orders["plan"] == reporting.Occupancy(0, 0, 0, 0.0, 0.0, 0.0)


def test_the_largest_component_and_the_skew():
    graph = helpers.graph_of([0, 1, 2, 3, 5], [1, 2, 1, 4, 0], 7, directed=True)
    boundary = helpers.boundary_of(graph, [0, 1, 0, 0, 1, 1, 0])
    assert study.largest_component(boundary) == 4
    assert study.neighbour_counts(boundary).tolist() == [2, 1, 1, 1]
    assert study.share_of_most(np.array([8, 1, 1, 0, 0]), 0.2) == 0.8
    assert study.largest_component(helpers.boundary_of(graph, [0] * 7)) == 0


@pytest.mark.whole
def test_studies_ask_for_each_size_and_agree_with_whole_plans():
    graph = helpers.random_graph(200, 1500, 5)
    told = []
    points = study.study_partitions(graph, 6, 0, told.append)
    assert [point.workers for point in points] == [2, 4, 6]
    assert told == [f"partition for {n} workers" for n in (2, 4, 6)]
    assert all(p.largest_component <= p.boundary_vertices <= p.copies for p in points)
    plan = helpers.plan_of(graph, 6)
    presets = {"paper": PRESETS["paper"]}
    memory = study.study_memory(graph, plan.assignment, presets, 0, told.append)
    assert [point.slots for point in memory] == [8, 10, 20, 40, 100, 200]
    said = plan.manifest.direction(Direction.FORWARD).prediction
    ours, theirs = sum(said.packets_up + said.packets_down), 2 * sum(said.host_packets_up)
    at_20 = next(point for point in memory if point.slots == 20)
    assert at_20.fractions["paper"] == pytest.approx(ours / theirs)
    assert set(at_20.fractions) == {"paper", "strawman"}


def test_the_papers_order_is_quicker_than_none():
    """No order can take fewer steps than the packets of all workers, one from each at a time."""
    weight = 1 / np.arange(1, 801) ** 0.7
    ends = np.random.default_rng(0).choice(800, (2, 4000), p=weight / weight.sum())
    graph, assignment = helpers.graph_of(*ends, 800), np.arange(800) % 4
    plan = helpers.plan_of(graph, 4, 270, blocks="destination", assignment=assignment)
    boundary = helpers.boundary_of(graph, assignment)
    found = reporting.report_direction(plan, Direction.FORWARD, boundary, (190,), {})
    packets = sum(plan.manifest.direction(Direction.FORWARD).prediction.packets_up)
    assert packets / 4 <= found.orders["gamr"].steps < 0.95 * found.orders["random"].steps
