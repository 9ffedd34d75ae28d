# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Runs that share an install, or outlive it: an error with a name, never another run's sums."""

from dataclasses import replace
from functools import partial
from unittest import mock

import pytest

from switchgnn.host.innetwork.errors import RoundMismatchError, SessionMismatchError
from switchgnn.lab.virtual.checks.check import Check
from switchgnn.lab.virtual.checks.outcomes import RightParty
from switchgnn.lab.virtual.parts.controller import VirtualController
from switchgnn.lab.virtual.timing import SECOND
from tests.virtual.matrix.scenes import on_each_topology
from tests.virtual.matrix.test_faults import check_all_sums
from tests.virtual.matrix.witness import watched

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
    assert witness.tallies[1]["foreign"] == again.to_workers() > 0


@on_each_topology
@pytest.mark.parametrize("rounds", [1, 3])
def test_a_second_run_on_one_install_is_refused(star, scene, rounds):
    check_second_run(star, replace(scene, rounds=rounds))


@on_each_topology
def test_a_run_ends_when_its_switch_is_installed_anew(star, scene):
    check_new_install(star, scene)


@on_each_topology
def test_words_of_an_earlier_session_are_not_heeded(star, scene):
    check_earlier_words(star, scene)


@on_each_topology
def test_each_session_is_exact(star, scene):
    check_all_sums(star, replace(scene, sessions=3))
