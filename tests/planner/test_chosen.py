# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What is asked for takes the place of what the preset chooses, and of nothing else."""

import numpy as np
import pytest

from switchgnn.planner import presets
from switchgnn.planner.chosen import KNOWN, Asked, build_chosen, choose_asked, strategy_names
from switchgnn.planner.presets import PRESETS, Situation, choose
from tests.planner.helpers import random_graph, reports

GRAPH = random_graph(120, 500, 1)
FEW = Situation(workers=4, slots=30)
PARTS = ("partition", "blocks", "send", "order")


def parts_of(choice):
    return {part: getattr(choice, part) for part in PARTS}


@pytest.mark.parametrize(
    ("widths", "slots", "banks", "lanes"),
    [
        ([64, 64, 10], 1000, 8, 64),
        ([10, 10], 1000, 8, 16),
        # No wider than the banks of the switch, and than two sums have room for.
        ([256], 1000, 2, 64),
        ([256], 1000, 1, 32),
        ([256], 1000, 8, 128),
        ([256], 7, 8, 64),
        ([256], 3, 8, 32),
    ],
)
def test_frames_are_as_wide_as_features_and_the_switch_allow(widths, slots, banks, lanes):
    assert Asked().lanes_for(widths, slots, banks) == lanes
    assert Asked(lanes=8).lanes_for(widths, slots, banks) == 8


@pytest.mark.parametrize("name", PRESETS)
def test_nothing_asked_is_the_preset(name):
    assert choose_asked(Asked(name), GRAPH, FEW) == choose(name, GRAPH, FEW)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(("part", "name"), [(part, name) for part in PARTS for name in KNOWN[part]])
def test_one_part_is_replaced_and_the_reason_is_that(preset, part, name):
    usual = choose(preset, GRAPH, FEW)
    choice = choose_asked(Asked(preset, **{part: name}), GRAPH, FEW)
    expected = parts_of(usual) | {part: name}
    if part == "send":
        expected["blocks"] = presets.blocks_for(usual.blocks, name)
    assert parts_of(choice) == expected
    assert choice.because[part] == f"{part.capitalize()} {name}: as asked."
    others = set(usual.because) - {part}
    assert all(choice.because[other] == usual.because[other] for other in others)


@pytest.mark.parametrize(
    ("blocks", "send", "expected"),
    [
        ("destination", "cover", "destination-cover"),
        ("hypergraph-cover", "cover", "hypergraph-cover"),
        ("hypergraph-cover", "multicast", "hypergraph"),
        ("mlgp", "cover", "mlgp"),
        ("mlgp", "multicast", "mlgp"),
    ],
)
def test_blocks_are_those_refined_for_what_is_sent(blocks, send, expected):
    assert presets.blocks_for(blocks, send) == expected


def test_a_weight_is_for_partial_sums_only():
    scarce = Situation(4, 30, link_rate=1e6, recirculation_rate=1e6)
    assert choose_asked(Asked("best"), GRAPH, scarce).weight > 0
    assert choose_asked(Asked("best", send="multicast"), GRAPH, scarce).weight == 0


@pytest.mark.parametrize("part", PARTS)
def test_wrong_names_list_the_right_ones(part):
    with reports(f"known: {', '.join(sorted(KNOWN[part]))}"):
        Asked(**{part: "worst"}).checked()


def test_a_wrong_preset_lists_the_right_ones():
    with reports("known: auto, best, paper"):
        Asked("worst").checked()


def test_an_assignment_takes_the_place_of_the_partition(tmp_path):
    given = np.arange(GRAPH.vertices) % 4
    np.savetxt(tmp_path / "workers.txt", given, fmt="%d")
    asked = Asked("best", assignment=tmp_path / "workers.txt")
    choice = choose_asked(asked, GRAPH, FEW)
    assert "workers.txt" in choice.because["partition"]
    plan = build_chosen(GRAPH, choice, FEW, program="0", seed=0, assignment=asked.load_assignment())
    assert np.array_equal(plan.assignment, given)
    assert strategy_names(plan.manifest) == {
        "partition": "given",
        "block_strategy": choice.blocks,
        "send": choice.send,
        "weight": choice.weight,
        "order": choice.order,
    }


def test_an_assignment_and_a_partition_are_too_much(tmp_path):
    with reports("give one of them"):
        Asked(partition="g3", assignment=tmp_path / "workers.txt").checked()
