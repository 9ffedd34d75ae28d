"""What fails is noticed, becomes small, and replays by one command in any process."""

import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from switchgnn.host.innetwork.receiver import SumReceiver
from tests.simulation import scenario as scenarios
from tests.simulation.__main__ import main
from tests.simulation.checks.barriers import BarrierWaits
from tests.simulation.checks.sums import SumsExact
from tests.simulation.parts.controller import VirtualController
from tests.simulation.scene import what_crashed
from tests.simulation.subject import Subjects
from tests.simulation.timing import Scheduler
from tests.support.processes import run_program
from tests.virtual.planted.mistakes import MISTAKES

ROOT = Path(__file__).parent.parent.parent
SMALLEST = """
from tests.simulation.scenario import scenario_text
from tests.virtual.test_failures import MISTAKE
with MISTAKE.planted() as soak:
    print(scenario_text(soak.smallest_failure(1, 150)))
"""
LOSSY = scenarios.IncidentRates(loss=0.15)
SMALL = scenarios.Scenario(seed=5, graph="random:8:12:1", rounds=2, up=LOSSY, down=LOSSY)
# Another sum than that of the switch is used where it was asked for.
MISTAKE = next(each for each in MISTAKES if each.name == "body_not_checked")


def crash(*_arguments, **_named):
    raise KeyError("nothing")


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
def test_wherever_it_crashes_it_is_a_failure(soak, monkeypatch, owner, name, who):
    """Its message names the line in the product or the simulation."""
    monkeypatch.setattr(owner, name, crash)
    one, other = (soak.run(SMALL) for _ in range(2))
    assert one == other
    violation = one.violations[0]
    assert violation.name == "crash"
    assert who in violation.what
    assert "KeyError: 'nothing', in " in violation.what
    assert what_crashed(KeyError(object())) == "KeyError: <object object at 0x...>"


def test_a_worker_that_crashes_beside_one_that_was_killed_is_not_excused(soak, monkeypatch):
    monkeypatch.setattr(SumReceiver, "ask_for_what_is_late", crash)
    kill = scenarios.Incident(scenarios.IncidentKind.KILL, "w1", 80)
    outcome = soak.run(replace(SMALL, incidents=(kill,)))
    assert outcome.faults["kill"] == 1
    assert outcome.violations[0].name == "crash"


@pytest.mark.whole
def test_a_scenario_that_fails_becomes_small():
    # Hypothesis draws constants of loaded modules, which are the same in a new process.
    command = [sys.executable, "-c", SMALLEST]
    small = scenarios.read_scenario(run_program(command, cwd=ROOT, check=True).stdout.strip())
    with MISTAKE.planted() as soak:
        assert soak.run(small).violations
    assert not soak.run(small).violations
    assert (small.sessions, small.rounds, small.incidents) == (1, 1, ())
    assert (small.up, small.reduces) == (scenarios.IncidentRates(), ())
    assert small.down.corrupt > 0
    assert soak.smallest_failure(1, 1) is None


def replayed(scenario, chance):
    done = run_program(
        [sys.executable, "-m", "tests.simulation", "--scenario", scenarios.scenario_text(scenario)],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": chance},
        seconds=60,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.whole
def test_another_process_has_the_same_trace(soak):
    """Whatever else this one did, and whatever the hashes of its strings are."""
    scenario = soak.scenario(3)
    assert {replayed(scenario, chance) for chance in "12"} == {soak.run(scenario).summary}


def test_a_failure_is_reported_with_what_replays_it(tmp_path, capsys):
    file = tmp_path / "fails.json"
    with mock.patch.object(SumsExact, "done", crash):
        assert main(["--seed", "1", "--examples", "1"]) == 2
        name, _, scenario = capsys.readouterr().out.partition("\n")
        assert name.startswith("crash: ")
        file.write_text(scenario)
        assert main(["--scenario", str(file), "--trace"]) == 2
        events = capsys.readouterr().out
        assert " check       crash: " in events
        assert re.search(
            r"^ +\d+\.\d{3}  w0.up +DONE \d\.1\.0\.0 src 0 dst \d+ .*passed at", events, re.M
        )
    assert main(["--scenario", scenario]) == 0
    assert main(["--scenario", str(tmp_path / "none.json")]) == 2
    assert capsys.readouterr().err.startswith("Error: ")


def test_a_soak_without_failures_says_so(capsys):
    assert main(["--seed", "1", "--examples", "2", "--leaves", "2", "--spines", "1"]) == 0
    assert capsys.readouterr().out == "All checks hold in 2 scenarios from seed 1.\n"
