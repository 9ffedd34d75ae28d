# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The width of frames: what a feature's fragments carry, and which width needs the fewest bytes."""

import itertools
import random

import pytest

from switchgnn.host.wire.header import BODY_AT
from switchgnn.planner import PlannerError
from switchgnn.planner.lanes import (
    LANES,
    banks_of_slot,
    fragment_lanes,
    frame_bytes,
    lanes_for,
    parse_lanes,
)

CHOICES = (8, 16, 32, 64, 128, 256)


def cut(width, lanes):
    fragments = []
    left = width
    while left > lanes:
        fragments.append(lanes)
        left -= lanes
    last = 8
    while last < left:
        last *= 2
    return (*fragments, last)


def bytes_of(widths, lanes):
    return sum(BODY_AT + 4 * each for width in widths for each in cut(width, lanes))


def test_a_frame_carries_8_to_256_numbers():
    assert LANES == CHOICES


@pytest.mark.parametrize("lanes", CHOICES)
def test_fragments_of_all_widths(lanes):
    for width in range(1, 1_100):
        fragments = fragment_lanes(width, lanes)
        assert fragments == cut(width, lanes)
        assert len(fragments) == -(-width // lanes)


@pytest.mark.parametrize(
    ("width", "lanes", "fragments"),
    [
        (1, 8, (8,)),
        (1, 256, (8,)),
        (16, 32, (16,)),
        (33, 32, (32, 8)),
        (48, 32, (32, 16)),
        (49, 32, (32, 32)),
        (602, 256, (256, 256, 128)),
        (256, 256, (256,)),
    ],
)
def test_fragments_by_hand(width, lanes, fragments):
    assert fragment_lanes(width, lanes) == fragments


@pytest.mark.parametrize(
    ("widths", "lanes"),
    [
        ((1,), 8),
        ((8,), 8),  # all of them take one frame of 8
        ((9,), 16),
        ((16,), 16),
        ((33,), 32),  # 120 + 160 bytes in two frames; one of 64 has 60 + 256
        ((256,), 256),
        ((16, 16, 7), 16),
        ((602,), 256),
    ],
)
def test_the_best_width_by_hand(widths, lanes):
    assert lanes_for(widths) == lanes


def test_the_best_width_of_one_is_that_of_a_search():
    for width in range(1, 1_500):
        costs = {lanes: bytes_of([width], lanes) for lanes in CHOICES}
        least = min(costs.values())
        assert lanes_for([width]) == min(lanes for lanes in CHOICES if costs[lanes] == least)


def test_the_best_width_of_several_is_that_of_a_search():
    draw = random.Random(5)
    pairs = itertools.chain(
        itertools.product((1, 7, 16, 41, 128), repeat=2),
        ([draw.randint(1, 700) for _ in range(draw.randint(1, 6))] for _ in range(300)),
    )
    for widths in pairs:
        costs = [(bytes_of(widths, lanes), lanes) for lanes in CHOICES]
        assert lanes_for(widths) == min(costs)[1]


def test_frames_and_banks():
    assert [frame_bytes(lanes) for lanes in CHOICES] == [92, 124, 188, 316, 572, 1084]
    assert [banks_of_slot(lanes) for lanes in CHOICES] == [1, 1, 1, 2, 4, 8]


def test_widths_by_name():
    assert [parse_lanes(text, [40]) for text in ("8", "256", "auto")] == [8, 256, 32]
    for text in ("24", "0", "", "Auto", "-8", "08"):
        with pytest.raises(PlannerError, match="give auto, or one of 8, 16, 32, 64, 128, 256"):
            parse_lanes(text, [40])
