# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from planner_helpers import STEADY, boundary_of, split_graphs

from switchgnn.planner import Direction, build_plan
from switchgnn.planner.arrivals import plan_arrivals


@STEADY
@given(split_graphs(), st.integers(2, 30), st.sampled_from(list(Direction)))
def test_packets_arrive_turn_by_turn_and_add_up_every_edge(split, slots, direction):
    graph, workers, assignment = split
    plan = build_plan(
        graph, workers=workers, slots=slots, program="ab", assignment=assignment, directions="both"
    )
    block, packet, result = plan_arrivals(plan, direction)
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
    assert block.tolist() == [number for number, _ in expected]
    boundary = boundary_of(graph, assignment)
    if direction is Direction.BACKWARD:
        boundary = boundary.transposed()
    # Each source adds as often as it has edges, whichever blocks they are in.
    added = np.bincount([expected[p][1] for p in packet], minlength=graph.vertices)
    assert added.tolist() == np.bincount(boundary.source, minlength=graph.vertices).tolist()
    assert sorted(set(result.tolist())) == list(range(sums))
    assert all(len(set(block[packet[result == one]])) == 1 for one in range(sums))
