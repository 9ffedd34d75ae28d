# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""One worker needs longer for a block than the others have patience; none gives it up."""

from dataclasses import replace

import pytest

from switchgnn.host.pace import Pace
from switchgnn.host.wire.header import KIND_AT, KIND_MASK, Kind
from switchgnn.lab.virtual.checks.check import Check
from switchgnn.lab.virtual.scenario import IncidentKind
from switchgnn.lab.virtual.timing import SECOND
from tests.support.markers import full
from tests.support.seeds import seeds
from tests.virtual.matrix.scenes import LEAF_SPINE, STAR, faults_on, on_each_topology
from tests.virtual.matrix.test_faults import check_all_sums
from tests.virtual.matrix.test_kills import WatchedFirst, moment, with_incident
from tests.virtual.matrix.witness import watched

SLOW = 3
# One block, with some fifty sums for each worker.
ONE_BLOCK = {"graph": "random:200:600:1", "slots": 512, "rounds": 1, "width": 3}


class SlowSums(Check):
    """Lets so many sums per second come to a worker; all other frames pass at once.

    The other workers have what they need of this one, and wait for it in the barrier.
    """

    def __init__(self, worker, per_second):
        self._line = f"w{worker}.down"
        self._apart = int(SECOND / per_second)
        self._next = 0

    def begin(self, scene):
        super().begin(scene)
        wire = scene.wires[self._line]
        self._deliver, wire._deliver = wire._deliver, self._hold

    def _hold(self, frames):
        scheduler = self.scene.scheduler
        for frame in frames:
            if frame[KIND_AT] & KIND_MASK == Kind.SUM:
                self._next = max(self._next + self._apart, scheduler.now)
                scheduler.at(self._next, self._deliver, [frame])
            else:
                self._deliver([frame])


def check_patience(soak, scene, *, patience, faults=()):
    """All sums are exact, though the block takes twice the patience."""
    scenario = replace(scene, **ONE_BLOCK, patience=patience, faults=faults)
    outcome, witness = watched(soak, scenario, beside=[SlowSums(SLOW, 25 / patience)])
    assert witness.errors == [{}]
    assert outcome.exchanges == 1
    assert min(witness.ended[0].values()) > 1.5 * patience


def check_still(soak, scene, seed):
    """A worker that stands still, though not for long, is not given up."""
    scene = replace(scene, patience=2.0)
    event = moment(soak, scene, seed, before_the_last=True)
    scenario = with_incident(scene, IncidentKind.STOP, f"w{SLOW}", event, seconds=0.7)
    outcome, _ = check_all_sums(soak, scenario, beside=[WatchedFirst()])
    assert outcome.faults["stop"] == 1
    assert outcome.seconds > 0.7


@on_each_topology
@pytest.mark.parametrize("seed", seeds(1, 10))
def test_a_worker_stands_still(star, scene, seed):
    check_still(star, scene, seed)


@on_each_topology
@pytest.mark.parametrize("patience", [1.0, pytest.param(Pace().patience, marks=full)])
def test_a_slow_worker_is_waited_for(star, scene, patience):
    check_patience(star, scene, patience=patience)


@pytest.mark.parametrize(
    "scene", [pytest.param(STAR, id="star"), pytest.param(LEAF_SPINE, id="leaf-spine", marks=full)]
)
def test_a_slow_worker_that_loses_a_third_is_waited_for(star, scene):
    """Its questions back off to a second, so the patience is what users have."""
    faults = faults_on((f"w{SLOW}.up", f"w{SLOW}.down"), {"loss": 0.3}, seed=1)
    check_patience(star, scene, patience=Pace().patience, faults=faults)
