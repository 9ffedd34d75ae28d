# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Scenarios with frames of other widths than the library's."""

from collections import Counter

import pytest

from switchgnn.host.wire.header import fragment_words, lanes_of, payload_bytes
from switchgnn.lab.virtual.draw import Wish, draw_scenario
from switchgnn.lab.virtual.network import body_bytes, words_of
from switchgnn.lab.virtual.scenario import Rates, Scenario
from switchgnn.planner.lanes import LANES

BAD = Rates(loss=0.1, duplicate=0.1, late=0.05, reorder=0.1, corrupt=0.05)


@pytest.mark.parametrize("lanes", LANES)
def test_rows_are_cut_as_hosts_cut_them(lanes):
    """The checks count for themselves; both must have the same layout."""
    for width in range(1, 3 * lanes + 2):
        words = words_of(width, lanes)
        assert words == fragment_words(width, lanes)
        assert sum(map(lanes_of, words)) >= width > sum(map(lanes_of, words[:-1]))
    assert [body_bytes(1, code) for code in range(8)] == [
        payload_bytes(code) for code in range(8)
    ] == [32, 64, 128, 256, 512, 1024, 0, 0]  # fmt: skip


def test_most_scenarios_have_the_width_of_the_library():
    drawn = [draw_scenario(seed, Wish()) for seed in range(400)]
    lanes = Counter(scenario.lanes for scenario in drawn)
    assert lanes[Scenario(0).lanes] > 200
    assert {8, 64, 256} <= set(lanes)
    assert all(scenario.slots * 32 >= 8 * scenario.lanes for scenario in drawn)
    # Of one fragment, of several, and with a last one that is narrower.
    cut = {words_of(s.width, s.lanes) for s in drawn if s.lanes == 64}
    assert {len(words) for words in cut} >= {1, 2, 3}


@pytest.mark.parametrize("lanes", LANES)
def test_every_width_sums_exactly(star, lanes):
    scenario = Scenario(
        seed=lanes, slots=64, lanes=lanes, width=2 * lanes + 9, up=BAD, down=BAD, send="cover"
    )
    outcome = star.run(scenario)
    assert not outcome.violations
    assert not outcome.errors
    assert outcome.exchanges == scenario.exchanges
