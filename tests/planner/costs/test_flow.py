# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The model of section 3.2.1 against a simulation that moves packet after packet."""

from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.planner import Direction
from switchgnn.planner.costs.flow import (
    packet_edges,
    plan_arrivals,
)
from switchgnn.planner.sending.cover import peel
from switchgnn.planner.sending.order import SendOrder, gamr, plain_bfs, random_order
from tests.planner.helpers import (
    STEADY,
    boundary_of,
    flow_of_packets,
    graph_of,
    graphs,
    plan_of,
    split_graphs,
    tuples,
)


def multicast_flow(boundary, block, sends, rate=1):
    """The flow when every edge is served by the feature of its source."""
    place = {pair: at for at, pair in enumerate(tuples(sends.block, sends.source))}
    packet = np.array([place[pair] for pair in tuples(block, boundary.source)], dtype=np.int64)
    sums = (block.astype(np.int64) << 32) | boundary.destination
    result = np.unique(sums, return_inverse=True)[1].reshape(-1)
    return flow_of_packets(sends.block, packet, result, rate)


def literal_flow(boundary, block, sends, rate):
    """(z, queue, occupancy) of each block, step by step."""
    rows = list(tuples(block, boundary.source, boundary.destination))
    result = []
    for number in range(1, block.max(initial=0) + 1):
        order = sends.source[sends.block == number].tolist()
        missing, begun = {}, set()
        for b, u, v in rows:
            if b == number:
                missing.setdefault(v, set()).add(u)
        waiting, queue, occupancy = 0, [], []
        for t in range(ceil(len(order) / rate)):
            for u in order[t * rate : (t + 1) * rate]:
                for v, sources in missing.items():
                    if u in sources:
                        sources.remove(u)
                        begun.add(v)
            done = [v for v, sources in missing.items() if not sources]
            for v in done:
                del missing[v]
            waiting = max(waiting + len(done) - rate, 0)
            queue.append(waiting)
            occupancy.append(len(begun & set(missing)))
        arrived = len(queue)
        z = arrived + ceil(waiting / rate)
        while len(queue) < z:
            waiting = max(waiting - rate, 0)
            queue.append(waiting)
            occupancy.append(0)
        result.append((z, max(queue[:arrived]), queue, occupancy))
    return result


@STEADY
@given(graphs(), st.integers(1, 3), st.integers(1, 4), st.integers(0, 3))
def test_against_the_literal_simulation(graph, blocks, rate, seed):
    boundary = boundary_of(graph, np.arange(graph.vertices) % 3)
    block = np.unique(boundary.destination % blocks, return_inverse=True)[1].reshape(-1) + 1
    block = block.astype(np.int32)
    sends = random_order(boundary, block, seed)
    flow = multicast_flow(boundary, block, sends, rate)
    expected = literal_flow(boundary, block, sends, rate)
    assert flow.completion.tolist() == [z for z, *_ in expected]
    assert flow.largest_queue.tolist() == [most for _, most, _, _ in expected]
    assert flow.queue.tolist() == [q for _, _, queue, _ in expected for q in queue]
    assert flow.occupancy.tolist() == [o for *_, held in expected for o in held]
    assert np.diff(flow.block_indptr).tolist() == flow.completion.tolist()
    assert flow.steps == sum(z for z, *_ in expected)


def star(n):
    return boundary_of(graph_of(np.zeros(n - 1), np.arange(1, n), n), np.arange(n))


@pytest.mark.parametrize(("first", "z"), [(True, 8), (False, 14)])
def test_the_papers_star(first, z):
    """The centre first takes n steps, last 2n - 2; n is 8."""
    boundary = star(8)
    order = np.arange(8) if first else np.arange(8)[::-1]
    sends = SendOrder(np.ones(8, dtype=np.int32), order.astype(np.int32))
    flow = multicast_flow(boundary, np.ones(14, dtype=np.int32), sends)
    assert flow.completion.tolist() == [z]


def test_partial_sums_are_packets_too():
    """Two packets for sum 0, one of them a partial sum that serves nothing else."""
    flow = flow_of_packets(np.ones(3, dtype=np.int32), np.array([0, 0, 1, 2]), [0, 1, 0, 1])
    assert flow.queue.tolist() == [0, 0, 0]
    assert flow.occupancy.tolist() == [2, 1, 0]


def skewed():
    rng = np.random.default_rng(0)
    weight = 1 / np.arange(1, 801) ** 0.7
    ends = rng.choice(800, (2, 4000), p=weight / weight.sum())
    boundary = boundary_of(graph_of(*ends, 800), np.arange(800) % 4)
    return boundary, (boundary.destination % 3 + 1).astype(np.int32)


def test_peel_keeps_the_queue_shorter_than_the_papers_order():
    """No order can take fewer steps than there are packets; the paper's beats none at all."""
    boundary, block = skewed()
    flows = {
        make: multicast_flow(boundary, block, make(boundary, block, 0))
        for make in (peel, gamr, plain_bfs, random_order)
    }
    sent = len(peel(boundary, block, 0).source)
    assert flows[peel].steps <= sent + 3
    assert flows[peel].steps <= flows[gamr].steps < 0.95 * flows[random_order].steps
    assert 3 * flows[peel].largest_queue.max() < flows[gamr].largest_queue.max()


@STEADY
@given(split_graphs(), st.integers(2, 30), st.sampled_from(list(Direction)))
def test_packets_arrive_turn_by_turn_and_add_up_every_edge(split, slots, direction):
    graph, workers, assignment = split
    plan = plan_of(graph, workers, slots, assignment=assignment, directions="both")
    arriving = plan_arrivals(plan, direction)
    record = plan.manifest.direction(direction)
    expected, sums = [], 0
    for number in record.block_numbers:
        queues = [
            part.send_source[part.send_indptr[number - 1] : part.send_indptr[number]].tolist()
            for part in plan.workers
        ]
        turns = range(max(map(len, queues), default=0))
        expected += [
            (number - record.first_block + 1, queue[turn])
            for turn in turns
            for queue in queues
            if turn < len(queue)
        ]
        sums += int(np.count_nonzero(plan.switch.result_block == number))
    assert list(tuples(arriving.block, arriving.source)) == expected
    boundary = boundary_of(graph, assignment)
    if direction is Direction.BACKWARD:
        boundary = boundary.transposed()
    # Every boundary edge is one addition, whichever block it is in.
    block, source, destination = packet_edges(plan, direction)
    ends = zip(source, destination, strict=True)
    assert sorted(ends) == sorted(zip(boundary.source, boundary.destination, strict=True))
    assert len(set(zip(block, destination, strict=True))) == sums
    found = arriving.find(block, source)
    assert np.array_equal(arriving.block[found], block)
    assert np.array_equal(arriving.source[found], source)
