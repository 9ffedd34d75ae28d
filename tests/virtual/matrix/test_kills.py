# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Deaths, restarts, slow workers, and runs that share an install or outlive it."""

import random
from dataclasses import replace
from functools import partial
from unittest import mock

import pytest

from switchgnn.host.innetwork.errors import (
    ExchangeTimeoutError,
    RoundMismatchError,
    SessionMismatchError,
)
from switchgnn.host.pace import Pace
from switchgnn.host.wire.header import KIND_AT, KIND_MASK, Kind
from tests.simulation.checks.check import Check
from tests.simulation.checks.outcomes import RightParty
from tests.simulation.parts.controller import VirtualController
from tests.simulation.scenario import Incident, IncidentKind, IncidentRates
from tests.simulation.timing import SECOND
from tests.support.markers import covering, full
from tests.support.seeds import seeds
from tests.virtual.matrix.scenes import (
    LEAF_SPINE,
    SCENES,
    SENDS,
    STAR,
    faults_on,
    on_each_topology,
    watched,
)
from tests.virtual.matrix.test_faults import NO_FAULTS, check_all_sums

FAULTS = IncidentRates(loss=0.02, duplicate=0.02, reorder=0.02)
PATIENCE = 1.0
# Seconds for which a switch is gone.
GONE = 0.1
# Seconds after which workers begin.
BEGINS = 0.1
FOR_EVER = 1e6


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
    """Return an event at which a worker has done `rounds` rounds, and begins no other."""
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
def test_the_switch_restarts(soak, send, seed):
    check_restart(soak, replace(STAR, rounds=4, send=send), 0, seed)


@pytest.mark.parametrize("seed", seeds(1, 10))
@pytest.mark.parametrize("switch", range(LEAF_SPINE.switches))
@pytest.mark.parametrize(
    ("send", "rates"),
    [("multicast", NO_FAULTS), ("multicast", FAULTS), ("cover", NO_FAULTS)],
    ids=["calm", "faults", "cover"],
)
def test_any_one_switch_restarts(soak, switch, send, rates, seed):
    scene = disturbed(replace(LEAF_SPINE, rounds=4, send=send), rates)
    check_restart(soak, scene, switch, (switch, seed))


@on_each_topology
@pytest.mark.parametrize("rates", [NO_FAULTS, FAULTS], ids=["calm", "faults"])
@pytest.mark.parametrize("seed", seeds(1, 10))
def test_the_controller_is_killed(soak, scene, rates, seed):
    check_no_controller(soak, disturbed(replace(scene, rounds=5), rates), seed)


@pytest.mark.parametrize(
    ("scene", "victim", "rounds"), covering(SCENES, range(STAR.workers), [0, 1, 3])
)
def test_a_worker_dies(soak, scene, victim, rounds):
    check_silence(soak, scene, victim, rounds)


@on_each_topology
@pytest.mark.parametrize("victim", range(STAR.workers))
@pytest.mark.parametrize("seed", seeds(1))
def test_a_worker_dies_in_a_round(soak, scene, victim, seed):
    check_death_in_a_round(soak, scene, victim, seed)


@on_each_topology
@pytest.mark.parametrize("victim", [0, 3])
@pytest.mark.parametrize("seed", seeds(1, 10))
def test_a_worker_is_started_again(soak, scene, victim, seed):
    check_another_process(soak, scene, victim, seed)


SLOW = 3
# One block, with some fifty sums for each worker.
ONE_BLOCK = {"graph": "random:200:600:1", "slots": 512, "rounds": 1, "width": 3}


class SlowSums(Check):
    """Delivers at most `per_second` sums per second to a worker, and all other frames at once.

    The other workers have what they need of it, and wait for it in the barrier.
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
def test_a_worker_stands_still(soak, scene, seed):
    check_still(soak, scene, seed)


@on_each_topology
@pytest.mark.parametrize("patience", [1.0, pytest.param(Pace().timeout, marks=full)])
def test_a_slow_worker_is_waited_for(soak, scene, patience):
    check_patience(soak, scene, patience=patience)


@pytest.mark.parametrize(
    "scene", [pytest.param(STAR, id="star"), pytest.param(LEAF_SPINE, id="leaf-spine", marks=full)]
)
def test_a_slow_worker_that_loses_a_third_is_waited_for(soak, scene):
    """Its questions back off to a second, so the patience is what users have."""
    faults = faults_on((f"w{SLOW}.up", f"w{SLOW}.down"), {"loss": 0.3}, seed=1)
    check_patience(soak, scene, patience=Pace().timeout, faults=faults)


BRIEF = 5.0


def one_install_for_two_runs():
    """Let the second run begin on what was installed for the first."""
    opened, opens = [], VirtualController.open_session

    def open_session(controller, ready):
        opened.append(ready)
        if len(opened) == 2:
            controller._scheduler.after(0, ready, controller.session)
        else:
            opens(controller, ready)

    return mock.patch.object(VirtualController, "open_session", open_session)


class InstalledAnew(Check):
    """Somebody installs under a new session once a worker has done the first round."""

    def begin(self, scene):
        super().begin(scene)
        self.done_once = False

    def done(self, done):
        if not self.done_once:
            self.done_once = True
            self.scene.controller.open_session(lambda _: None)
            self.scene.controller.close_session()

    def session_ends(self):
        # Workers may end while it installs: it watches afterwards, and nobody has told it to stop.
        if self.scene.controller.session == 1:
            self.scene.scheduler.after(SECOND, self.scene.controller.close_session)


class SaidAgain(Check):
    """All words of the first session are said again when workers of the second begin."""

    def begin(self, scene):
        super().begin(scene)
        self.sessions = 0
        self.kept = {name: [] for name in scene.wires}
        self._deliver = {}
        for name, wire in scene.wires.items():
            self._deliver[name], wire._deliver = wire._deliver, partial(self._keep, name)

    def _keep(self, name, frames):
        if self.sessions == 1:
            self.kept[name] += frames
        self._deliver[name](frames)

    def session_begins(self):
        self.sessions += 1
        if self.sessions == 2:
            for name, frames in self.kept.items():
                self.scene.scheduler.after(0, self._deliver[name], frames)

    def to_workers(self):
        return sum(
            len(frames)
            for name, frames in self.kept.items()
            if name.startswith("w") and name.endswith(".down")
        )


def check_second_run(soak, scene):
    """Its features would be duplicates, acknowledged, and its sums those of the first run."""
    scenario = replace(scene, sessions=3, patience=BRIEF)
    with one_install_for_two_runs():
        outcome, witness = watched(soak, scenario, leaves_out=RightParty)
    first, second, third = witness.errors
    assert first == third == {}
    assert outcome.exchanges == 2 * scene.rounds
    assert set(second) == set(range(scene.workers))
    assert {type(error) for error in second.values()} == {RoundMismatchError}
    assert all("--new-session" in str(error) for error in second.values())


def check_new_install(soak, scene):
    """A run ends when its switches are installed anew; the next one is exact."""
    # So many that the install has come to its end before they have.
    scenario = replace(scene, rounds=20, sessions=2, patience=BRIEF)
    outcome, witness = watched(soak, scenario, beside=[InstalledAnew()], leaves_out=RightParty)
    first, second = witness.errors
    assert set(first) == set(range(scene.workers))
    assert {type(error) for error in first.values()} == {SessionMismatchError}
    assert second == {}
    assert scenario.rounds < outcome.exchanges < 2 * scenario.rounds


def check_earlier_words(soak, scene):
    """Rounds begin again at 1, so only the session tells them from those of now."""
    again = SaidAgain()
    _, witness = watched(soak, replace(scene, sessions=2, rounds=2), beside=[again])
    assert witness.errors == [{}, {}]
    assert witness.counters[1]["foreign"] == again.to_workers() > 0


@on_each_topology
@pytest.mark.parametrize("rounds", [1, 3])
def test_a_second_run_on_one_install_is_refused(soak, scene, rounds):
    check_second_run(soak, replace(scene, rounds=rounds))


@on_each_topology
def test_a_run_ends_when_its_switch_is_installed_anew(soak, scene):
    check_new_install(soak, scene)


@on_each_topology
def test_words_of_an_earlier_session_are_not_heeded(soak, scene):
    check_earlier_words(soak, scene)
