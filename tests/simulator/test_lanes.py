# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Frames of 8 to 256 numbers: their times by hand, and what they change in a plan."""

from dataclasses import replace

import numpy as np
import pytest

from switchgnn.host.wire.header import Kind
from switchgnn.lab.simulator import NetworkOptions, SimulatorError, plan_setup, run_simulation
from switchgnn.planner import PlannerError, build_plan, load_graph
from switchgnn.planner.direction import Direction
from switchgnn.planner.lanes import fragment_lanes

from .scenes import Row, Sent, features_at_switch, scene, sums_at_workers
from .test_command import GRAPH, as_json

# At 100 Gbit/s a byte takes 80 ps; frames of 64 and of 16 numbers.
WIDE, NARROW, BARRIER = (60 + 256) * 80, (60 + 64) * 80, 88 * 80
DELAY = 2_000_000


def test_the_last_fragment_is_as_narrow_as_it_can_be():
    setup = replace(
        scene(2, [Row(1, 1)], [Sent(0, [[0]])], fragments=2), lanes=fragment_lanes(80, 64)
    )
    run = run_simulation(setup, NetworkOptions(), trace=True)
    closed = 2 * (WIDE + DELAY) + 2 * (BARRIER + DELAY)
    assert features_at_switch(run) == [(WIDE + DELAY, 0, 0), (closed + NARROW + DELAY, 0, 0)]
    assert [at for at, *_ in sums_at_workers(run)] == [
        2 * (WIDE + DELAY),
        closed + 2 * (NARROW + DELAY),
    ]
    assert run.bytes_up == (316 + 124 + 2 * 88, 2 * 88)
    assert run.sum_bytes_down == (0, 316 + 124)
    assert run.barriers == 2


def test_fragments_that_travel_together_have_their_own_widths():
    setup = replace(
        scene(2, [Row(1, 1)], [Sent(0, [[0]])]), together=3, lanes=fragment_lanes(140, 64)
    )
    run = run_simulation(setup, NetworkOptions(), trace=True)
    at = [WIDE + DELAY, 2 * WIDE + DELAY, 2 * WIDE + NARROW + DELAY]
    assert features_at_switch(run) == [(when, 0, i) for i, when in enumerate(at)]
    assert run.sum_bytes_down == (0, 2 * 316 + 124)


def test_a_lost_sum_comes_again_as_wide():
    """The buffer of worker 2 has room for one of two sums of 64 numbers at a time."""
    rows = [Row(2, 2), Row(2, 2)]
    setup = replace(
        scene(3, rows, [Sent(0, [[0, 1]]), Sent(1, [[0, 1]])]), lanes=(64,), data_frame_bytes=316
    )
    run = run_simulation(setup, NetworkOptions(buffer=400), trace=True)
    assert (run.lost, run.sent_again) == (1, 1)
    assert run.sum_bytes_down == (0, 0, 2 * 316)
    assert [each.id for each in run.trace if each.kind == Kind.SUM] == [0, 1]


@pytest.mark.parametrize("lanes", [8, 32, 128])
def test_bytes_are_those_of_the_plans_packets(lanes):
    plan = build_plan(load_graph("random:300:1500:1"), workers=5, slots=64, program="0" * 64)
    fragments = fragment_lanes(140, lanes)
    run = run_simulation(plan_setup(plan, len(fragments), lanes=fragments), NetworkOptions())
    told = plan.manifest.direction(Direction.FORWARD)
    each = sum(60 + 4 * carried for carried in fragments)
    control = 88 * len(fragments) * len(told.block_numbers)
    down = np.array(told.prediction.packets_down) * each
    assert run.sum_bytes_down == tuple(down)
    # A worker's acknowledgements have 60 bytes, and come from the switch.
    acks = np.array(run.frames_down) - len(fragments) * len(told.block_numbers)
    acks -= np.array(run.sums_down)
    assert run.bytes_down == tuple(down + 60 * acks + control)
    assert run.bytes_up == tuple(np.array(told.prediction.packets_up) * each + control)


@pytest.mark.parametrize(("lanes", "banks"), [(8, 8), (32, 8), (64, 4), (128, 2), (256, 1)])
def test_a_pass_adds_to_as_many_slots_as_there_are_groups_of_banks(lanes, banks):
    told = as_json(*GRAPH, "--system", "paper", "--features", lanes, "--lanes", lanes)
    assert told["lanes"] == lanes
    assert told["contributions"] <= banks * told["passes"]
    # The same memory has fewer slots.
    assert told["memory_bytes"] == told["slots"] * 128 * (8 // banks)
    narrow = as_json(*GRAPH, "--system", "paper")
    assert told["slots"] == narrow["slots"] * banks // 8
    assert told["barriers"] == told["blocks"]


def test_auto_takes_the_fewest_bytes():
    told = as_json(*GRAPH, "--system", "paper", "--features", 40, "--lanes", "auto")
    assert told["lanes"] == 32
    assert told["barriers"] == 2 * told["blocks"]
    told = as_json(*GRAPH, "--system", "paper", "--features", 16, "--lanes", "auto")
    assert told["lanes"] == 16


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        (("--system", "paper", "--lanes", 24), PlannerError, "no frames of '24' numbers"),
        (("--system", "bns-gcn", "--lanes", 64), SimulatorError, "leave --lanes out"),
    ],
)
def test_other_widths_are_refused(arguments, error, said):
    with pytest.raises(error, match=said):
        as_json(*GRAPH, *arguments)
