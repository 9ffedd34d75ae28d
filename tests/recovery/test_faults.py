# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Nothing lost, nothing counted twice, on both switches: all kinds of faults at once.

The matrix of faults is in tests/virtual/matrix.
"""

import pytest

from tests.recovery.conftest import ALL_FAULTS, EACH_FAULT, happened, kinds_of
from tests.support.markers import TARGET_ON_PYTHON, TARGETS, full
from tests.support.seeds import seeds

ROUNDS = 3


@pytest.mark.parametrize("faults", [ALL_FAULTS, *EACH_FAULT])
def test_every_sum_is_exact(team, faults):
    workers = team(faults=f"{faults},seed=1")
    wrong = workers.run(ROUNDS, seed=1)
    assert not workers.errors, (workers.errors, workers.total())
    assert wrong == 0
    assert happened(workers.injected()) == kinds_of(faults)


@pytest.mark.parametrize("shared_bed", [*TARGETS, TARGET_ON_PYTHON], indirect=True)
@pytest.mark.parametrize("send", ["cover"], indirect=True)
@pytest.mark.parametrize("number", seeds(1, 3))
def test_partial_sums_are_exact(shared_bed, team, number):
    assert max(shared_bed.plan.switch.entry_count) > 1
    workers = team(faults=f"{ALL_FAULTS},seed={number}")
    assert workers.run(ROUNDS, seed=number) == 0, (workers.errors, workers.total())


@full
def test_one_bad_link_slows_but_does_not_break(team):
    workers = team(faults="w2.up.loss=0.3,w2.down.loss=0.3,seed=5")
    assert workers.run(ROUNDS) == 0
    counts = [link.counts["up"].lost + link.counts["down"].lost for link in workers.links]
    assert counts[2] > 0
    assert counts[0] == counts[1] == counts[3] == 0


def test_without_faults_nothing_is_repaired_needlessly(team):
    """Recovery must cost nothing without losses, even on a busy machine."""
    workers = team()
    assert workers.run(10) == 0
    total = workers.total()
    assert total["sums_made"] == 0
    assert total["features_resent"] <= total["features_sent"] // 50
