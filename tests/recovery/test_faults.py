# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Nothing lost, nothing counted twice: the whole matrix of faults, on both switches.

Each cell has other losses under each of its seeds; `make test-all` tries 20 of them.
"""

import pytest

from tests.support.markers import TARGET_ON_PYTHON, TARGETS, covering
from tests.support.seeds import seed_of, seeds

LOSS = (0, 0.001, 0.01, 0.05, 0.1)
DUPLICATE = (0, 0.01, 0.05)
REORDER = (0, 0.05)
ROUNDS = 3


@pytest.mark.parametrize("number", seeds(1))
@pytest.mark.parametrize(("loss", "duplicate", "reorder"), covering(LOSS, DUPLICATE, REORDER))
def test_every_sum_is_exact(team, loss, duplicate, reorder, number):
    seed = seed_of(loss, duplicate, reorder, number)
    faults = f"loss={loss},duplicate={duplicate},reorder={reorder},corrupt=0.001,seed={seed}"
    workers = team(faults=faults)
    wrong = workers.run(ROUNDS, seed=seed)
    assert not workers.errors, (workers.errors, workers.total())
    assert wrong == 0
    # The faults really happened.
    injected = workers.injected()
    frames = sum(link.traffic.frames_up + link.traffic.frames_down for link in workers.links)
    for name, rate in (("lost", loss), ("duplicated", duplicate), ("reordered", reorder)):
        assert (injected[name] > 0) == (rate * frames > 20) or rate * frames <= 20
        assert rate or not injected[name]


ON_PYTHON_TOO = pytest.mark.parametrize("shared_bed", [*TARGETS, TARGET_ON_PYTHON], indirect=True)


@ON_PYTHON_TOO
@pytest.mark.parametrize("send", ["cover"], indirect=True)
@pytest.mark.parametrize("number", seeds(1))
@pytest.mark.parametrize("faults", ["", "loss=0.05", "loss=0.1,duplicate=0.05,reorder=0.05"])
def test_partial_sums_are_exact(shared_bed, team, faults, number):
    assert max(shared_bed.plan.switch.entry_count) > 1
    workers = team(faults=faults and f"{faults},seed={number}")
    assert workers.run(ROUNDS, seed=number) == 0, (workers.errors, workers.total())


@ON_PYTHON_TOO
def test_one_bad_link_slows_but_does_not_break(team):
    workers = team(faults="w2.up.loss=0.3,w2.down.loss=0.3,seed=5")
    assert workers.run(ROUNDS) == 0
    counts = [link.counts["up"].lost + link.counts["down"].lost for link in workers.links]
    assert counts[2] > 0
    assert counts[0] == counts[1] == counts[3] == 0


def test_without_faults_nothing_is_repaired_needlessly(team):
    """Recovery must not cost where nothing is lost."""
    workers = team()
    assert workers.run(10) == 0
    total = workers.total()
    assert total["sums_made"] == 0
    assert total["features_resent"] <= total["features_sent"] // 50
