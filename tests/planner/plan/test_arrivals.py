# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Which packet of a plan enters when, against lists and against plans of another order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.planner import ORDER_STRATEGIES, Direction, build_plan
from switchgnn.planner.costs.flow import packet_edges, plan_arrivals, reordered
from tests.planner.helpers import STEADY, boundary_of, random_graph, split_graphs, tuples


@STEADY
@given(split_graphs(), st.integers(2, 30), st.sampled_from(list(Direction)))
def test_packets_arrive_turn_by_turn_and_add_up_every_edge(split, slots, direction):
    graph, workers, assignment = split
    plan = build_plan(
        graph, workers=workers, slots=slots, program="ab", assignment=assignment, directions="both"
    )
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


@pytest.mark.parametrize("order", ORDER_STRATEGIES)
@pytest.mark.parametrize("send", ["multicast", "cover"])
@pytest.mark.parametrize("direction", Direction)
def test_packets_in_another_order_are_those_of_a_plan_with_that_order(order, send, direction):
    graph = random_graph(90, 500, 4, directed=True)

    def made(name):
        return build_plan(
            graph,
            workers=4,
            slots=15,
            program="ab",
            send=send,
            order=name,
            directions="both",
            seed=2,
        )

    plan = made("peel" if order != "peel" else "bfs")
    ours = reordered(plan, direction, plan_arrivals(plan, direction), ORDER_STRATEGIES[order])
    theirs = plan_arrivals(made(order), direction)
    assert ours.block.tolist() == theirs.block.tolist()
    assert ours.source.tolist() == theirs.source.tolist()
    assert ours.worker.tolist() == theirs.worker.tolist()
    assert (ours.source >= 2**31).any() == (send == "cover")
