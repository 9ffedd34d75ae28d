# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Features come while their round is opened, and are sent again where they do not fit the scale."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from switchgnn.host.innetwork import fixed_point as foresight
from switchgnn.lab.virtual.draw import Wish
from switchgnn.lab.virtual.scenario import Incident, IncidentKind, Rates
from switchgnn.lab.virtual.soak import Soak
from tests.support.seeds import seeds
from tests.virtual.matrix.scenes import STAR, on_each_topology
from tests.virtual.matrix.test_faults import NO_FAULTS, check_all_sums

ROUNDS = 8
# The first exchange has none before it, the second none that something has followed.
FIRST = 2
BAD = Rates(loss=0.05, duplicate=0.05, reorder=0.05)
GONE = 0.1


def repeated(scene, rates=NO_FAULTS, **changes):
    """Return a scene of exchanges that repeat themselves."""
    cables = rates if scene.leaves else NO_FAULTS
    return replace(scene, rounds=ROUNDS, up=rates, down=rates, cables=cables, **changes)


@on_each_topology
def test_from_the_third_round_on_features_come_early(star, scene):
    _, witness = check_all_sums(star, repeated(scene))
    (tally,) = witness.tallies
    assert tally["early"] == (ROUNDS - FIRST) * scene.workers
    assert tally["void"] == tally["recalls"] == tally["features_resent"] == 0


def check_void(soak, scene, rates=NO_FAULTS, seed=0):
    """All sums are exact, and each round whose features have outgrown the scale is given up."""
    scenario = repeated(scene, rates, surges=0.4, seed=seed)
    _, witness = check_all_sums(soak, scenario)
    (tally,) = witness.tallies
    largest = [np.abs(features).max() for features, _ in witness.scene.job.rounds]
    in_threes = zip(largest, largest[1:], largest[2:], strict=False)
    void = sum(now > 4 * max(earlier) for *earlier, now in in_threes)
    assert void or seed
    # All workers know of each, whoever has outgrown the scale.
    assert tally["void"] == void * scene.workers
    assert tally["early"] == (ROUNDS - FIRST - void) * scene.workers


@on_each_topology
@pytest.mark.parametrize("rates", [NO_FAULTS, BAD], ids=["calm", "bad"])
@pytest.mark.parametrize("seed", seeds(1))
def test_what_does_not_fit_is_exchanged_in_the_next_round(star, scene, rates, seed):
    check_void(star, scene, rates, seed)


@on_each_topology
@pytest.mark.parametrize("seed", seeds(1))
def test_a_switch_restarts_again_and_again(star, scene, seed):
    """Also while early features come, and in void rounds."""
    restarts = tuple(
        Incident(IncidentKind.RESTART, f"s{number % scene.switches}", 700 + 900 * number, GONE)
        for number in range(4)
    )
    scenario = repeated(scene, BAD, surges=0.4, seed=seed, incidents=restarts)
    outcome, _ = check_all_sums(star, scenario)
    assert outcome.faults["restart"] > 1


def test_sums_at_another_scale_are_noticed():
    """The right scale is not what the workers say it is."""
    with mock.patch.object(foresight, "HEADROOM", 2.0), pytest.raises(AssertionError):
        check_all_sums(Soak(Wish()), repeated(STAR))
