# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""An error that nobody has thought of is a failure of its seed, as any other."""

import json
from dataclasses import replace

import pytest

from switchgnn.host.innetwork.receiver import SumReceiver
from switchgnn.lab.commands.soak_simulated import SimulatedOptions, soak_simulated
from switchgnn.lab.virtual.checks.barriers import BarrierWaits
from switchgnn.lab.virtual.checks.outcomes import SumsExact
from switchgnn.lab.virtual.parts.controller import VirtualController
from switchgnn.lab.virtual.scenario import Incident, IncidentKind, Rates, Scenario
from switchgnn.lab.virtual.shrink import Budget, shrink
from switchgnn.lab.virtual.subject import Subjects
from switchgnn.lab.virtual.timing import Scheduler

BAD = Rates(loss=0.15)
SMALL = Scenario(seed=5, graph="random:8:12:1", rounds=2, up=BAD, down=BAD)


def crash(*_arguments, **_named):
    return {}["nothing"]


@pytest.mark.parametrize(
    ("owner", "name", "who"),
    [
        (Scheduler, "after", "KeyError"),
        (BarrierWaits, "gave", "KeyError"),
        (SumsExact, "done", "ends with KeyError"),
        (SumReceiver, "ask_for_what_is_late", "ends with KeyError"),
        (VirtualController, "_watch", "the controller ends with KeyError"),
        (Subjects, "of", "KeyError"),
    ],
)
def test_wherever_it_crashes_it_is_a_failure(star, monkeypatch, owner, name, who):
    monkeypatch.setattr(owner, name, crash)
    one, other = (star.run(SMALL) for _ in range(2))
    assert one.violations[0].name == "crash"
    assert who in one.violations[0].what
    assert "KeyError: 'nothing'" in one.violations[0].what
    assert one == other


def test_the_place_in_the_package_is_said(star, monkeypatch):
    monkeypatch.setattr(BarrierWaits, "gave", crash)
    (violation,) = star.run(SMALL).violations[:1]
    assert "in switchgnn/lab/virtual/checks/check.py, line " in violation.what
    assert violation.what.endswith(", _read")


def test_who_crashes_beside_one_that_was_killed_is_not_excused(star, monkeypatch):
    """A worker that gives up may do so behind a kill, but not in this way."""
    monkeypatch.setattr(SumReceiver, "ask_for_what_is_late", crash)
    kill = Incident(IncidentKind.KILL, "w1", 80)
    outcome = star.run(replace(SMALL, incidents=(kill,)))
    assert outcome.faults["kill"] == 1
    assert outcome.violations[0].name == "crash"


def test_the_soak_goes_on(star, monkeypatch):
    whole = BarrierWaits.gave

    def gave(check, switch, worker, packet):
        if check.scene.scenario.seed == 5:
            crash()
        whole(check, switch, worker, packet)

    monkeypatch.setattr(BarrierWaits, "gave", gave)
    scenarios = [Scenario(seed=seed, graph="random:8:12:1", rounds=1) for seed in (4, 5, 6)]
    sums = star.many(iter(scenarios), lambda scenario: f"--seed {scenario.seed}", lambda _: True)
    assert sums.scenarios == 3
    assert [(each.seed, each.name, each.command) for each in sums.failures] == [
        (5, "crash", "--seed 5")
    ]


def test_ctrl_c_is_no_crash(star, monkeypatch):
    def interrupt(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(BarrierWaits, "gave", interrupt)
    with pytest.raises(KeyboardInterrupt):
        star.run(SMALL)


@pytest.mark.whole
def test_it_becomes_small(star, monkeypatch):
    monkeypatch.setattr(SumReceiver, "ask_for_what_is_late", crash)
    shrunk = shrink(SMALL, "crash", star.run, Budget(150, lambda: True))
    assert shrunk is not None
    assert shrunk.scenario.rounds == 1
    assert star.run(shrunk.scenario).violations[0].name == "crash"


@pytest.mark.whole
@pytest.mark.parametrize(("owner", "name"), [(BarrierWaits, "gave"), (Subjects, "of")])
def test_it_is_drawn(tmp_path, capsys, monkeypatch, owner, name):
    monkeypatch.setattr(owner, name, crash)
    monkeypatch.setattr("switchgnn.lab.commands.soak_simulated._MOST_RUNS", 20)
    options = SimulatedOptions(5, 1, 1.0, None, None, None, only=True, out=tmp_path)
    assert soak_simulated(options, as_json=True) == 2
    (failure,) = json.loads(capsys.readouterr().out)["failures"]
    assert failure["name"] == "crash"
    assert failure["what"] in (tmp_path / "seed-5.txt").read_text()


def test_an_address_is_not_said(star, monkeypatch):
    def fail(*_arguments):
        raise TypeError(f"no such thing as {object()!r}")

    monkeypatch.setattr(BarrierWaits, "gave", fail)
    assert "<object object at 0x...>" in star.run(SMALL).violations[0].what
