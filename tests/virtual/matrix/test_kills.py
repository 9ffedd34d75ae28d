# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A switch, the controller or a worker dies at some moment of a round."""

import random
from dataclasses import replace

import pytest

from switchgnn.host.innetwork.errors import ExchangeTimeoutError, RoundMismatchError
from switchgnn.lab.virtual.checks.check import Check
from switchgnn.lab.virtual.scenario import Incident, IncidentKind, Rates
from tests.support.markers import covering
from tests.support.seeds import seeds
from tests.virtual.matrix.scenes import LEAF_SPINE, SCENES, STAR, on_each_topology
from tests.virtual.matrix.test_faults import NO_FAULTS, check_all_sums
from tests.virtual.matrix.witness import watched

FAULTS = Rates(loss=0.02, duplicate=0.02, reorder=0.02)
PATIENCE = 1.0
# Seconds for which a switch is gone.
GONE = 0.1
# Seconds after which workers begin.
BEGINS = 0.1
FOR_EVER = 1e6
SENDS = ("multicast", "cover")


class WatchedFirst(Check):
    """Lets workers begin when the controller watches, which takes it some time."""

    def session_begins(self):
        self.scene.scheduler.after(0, self._hold)

    def _hold(self):
        for worker in self.scene.workers:
            worker.stand_still(BEGINS)


def watched_first(soak, scenario):
    return watched(soak, scenario, beside=[WatchedFirst()])


def disturbed(scene, rates):
    return replace(scene, up=rates, down=rates, cables=rates if scene.leaves else NO_FAULTS)


def with_incident(scene, kind, where, event, seconds=0.0):
    return replace(scene, incidents=(Incident(kind, where, event, seconds),))


def moment(soak, scene, seed, *, before_the_last=False):
    """Draw an event while workers exchange, perhaps no round later than the last but one."""
    outcome, witness = watched_first(soak, scene)
    assert outcome.exchanges == scene.exchanges
    until = outcome.events
    if before_the_last:
        until = min(witness.done_at[0][worker, scene.rounds - 1] for worker in range(scene.workers))
    return random.Random(repr(seed)).randrange(witness.watched_from, until)


def moment_behind(soak, scene, worker, rounds):
    """Return an event at which a worker has done so many rounds, and begins no other."""
    _, witness = watched_first(soak, scene)
    return (witness.done_at[0][worker, rounds] if rounds else witness.began[0]) + 1


def check_restart(soak, scene, switch, seed):
    """The controller installs again, the rounds complete, the sums are exact."""
    event = moment(soak, scene, seed)
    scenario = with_incident(scene, IncidentKind.RESTART, f"s{switch}", event, GONE)
    outcome, _ = check_all_sums(soak, scenario, beside=[WatchedFirst()])
    assert outcome.faults["restart"] == 1


def check_no_controller(soak, scene, seed):
    """Running rounds go on without it."""
    event = moment(soak, scene, seed)
    scenario = with_incident(scene, IncidentKind.RESTART, "controller", event, FOR_EVER)
    outcome, witness = check_all_sums(soak, scenario, beside=[WatchedFirst()])
    assert outcome.faults["restart"] == 1
    assert not witness.scene.controller.watching
    assert outcome.seconds < FOR_EVER


def check_death(soak, scene, victim, event):
    """The others end within some patiences; return the witness and whom each of them names."""
    scene = replace(scene, patience=PATIENCE)
    scenario = with_incident(scene, IncidentKind.KILL, f"w{victim}", event)
    outcome, witness = watched_first(soak, scenario)
    assert outcome.exchanges < scene.rounds
    (errors,), (ended,), (died,) = witness.errors, witness.ended, witness.times
    assert set(errors) == set(range(scene.workers)) - {victim}
    assert max(ended.values()) - died < scene.workers * PATIENCE
    return witness, {worker: set(error.workers) for worker, error in errors.items()}


def check_silence(soak, scene, victim, rounds):
    """A worker dies between two rounds: each of the others says who is missing."""
    scene = replace(scene, rounds=rounds + 2, patience=PATIENCE)
    event = moment_behind(soak, scene, victim, rounds)
    witness, named = check_death(soak, scene, victim, event)
    assert all(rounds >= of_worker for _, of_worker in witness.done_at[0])
    for whom in named.values():
        # From behind another leaf the whole leaf is missing: to a spine it has all its bits.
        assert victim in whom if scene.leaves else whom == {victim}


def check_death_in_a_round(soak, scene, victim, seed):
    """The first to give up say who is missing; the others may miss those that gave up, too."""
    scene = replace(scene, rounds=8, patience=PATIENCE)
    event = moment(soak, scene, (victim, seed), before_the_last=True)
    witness, named = check_death(soak, scene, victim, event)
    gone = {victim}
    for worker in sorted(named, key=witness.ended[0].get):
        assert named[worker] & gone
        gone.add(worker)


def check_another_process(soak, scene, victim, seed):
    """A worker that is started again is told so; the others miss the process before it."""
    scene = replace(scene, rounds=8, patience=PATIENCE)
    event = moment(soak, scene, (victim, seed), before_the_last=True)
    scenario = with_incident(scene, IncidentKind.RESTART, f"w{victim}", event, GONE)
    _, witness = watched_first(soak, scenario)
    (errors,) = witness.errors
    assert set(errors) == set(range(scene.workers))
    assert type(errors.pop(victim)) is RoundMismatchError
    assert all(isinstance(error, ExchangeTimeoutError) for error in errors.values())


@pytest.mark.parametrize("send", SENDS)
@pytest.mark.parametrize("seed", seeds(2, 40))
def test_the_switch_restarts(star, send, seed):
    check_restart(star, replace(STAR, rounds=4, send=send), 0, seed)


@pytest.mark.parametrize("seed", seeds(1, 10))
@pytest.mark.parametrize("switch", range(LEAF_SPINE.switches))
@pytest.mark.parametrize(
    ("send", "rates"),
    [("multicast", NO_FAULTS), ("multicast", FAULTS), ("cover", NO_FAULTS)],
    ids=["calm", "faults", "cover"],
)
def test_any_one_switch_restarts(star, switch, send, rates, seed):
    scene = disturbed(replace(LEAF_SPINE, rounds=4, send=send), rates)
    check_restart(star, scene, switch, (switch, seed))


@on_each_topology
@pytest.mark.parametrize("rates", [NO_FAULTS, FAULTS], ids=["calm", "faults"])
@pytest.mark.parametrize("seed", seeds(1, 10))
def test_the_controller_is_killed(star, scene, rates, seed):
    check_no_controller(star, disturbed(replace(scene, rounds=5), rates), seed)


@pytest.mark.parametrize(
    ("scene", "victim", "rounds"), covering(SCENES, range(STAR.workers), [0, 1, 3])
)
def test_a_worker_dies(star, scene, victim, rounds):
    check_silence(star, scene, victim, rounds)


@on_each_topology
@pytest.mark.parametrize("victim", range(STAR.workers))
@pytest.mark.parametrize("seed", seeds(1))
def test_a_worker_dies_in_a_round(star, scene, victim, seed):
    check_death_in_a_round(star, scene, victim, seed)


@on_each_topology
@pytest.mark.parametrize("victim", [0, 3])
@pytest.mark.parametrize("seed", seeds(1, 10))
def test_a_worker_is_started_again(star, scene, victim, seed):
    check_another_process(star, scene, victim, seed)
