# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.simulation`: its report, and what it says and writes of a failure."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from switchgnn.base.native import find_compiler
from switchgnn.host.innetwork.receiver import SumReceiver
from tests.simulation.__main__ import app
from tests.simulation.checks.barriers import BarrierWaits
from tests.simulation.checks.outcomes import SumsExact
from tests.simulation.parts.controller import VirtualController
from tests.simulation.scenario import (
    Incident,
    IncidentKind,
    IncidentRates,
    Scenario,
    ScenarioError,
    read_scenario,
    scenario_text,
)
from tests.simulation.shrink import Budget, shrink
from tests.simulation.soak import Soak
from tests.simulation.soak_simulated import SimulatedOptions, soak_simulated, table_of
from tests.simulation.subject import Subjects
from tests.simulation.timing import Scheduler
from tests.support.speed import seconds_here
from tests.virtual.mistaken import sums_that_are_recalled_are_wrong

ROOT = Path(__file__).parent.parent.parent
LOSSY = IncidentRates(loss=0.15)
FAILS = Scenario(seed=5, graph="random:8:12:1", rounds=1, up=LOSSY, down=LOSSY)


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "fails.json"
    file.write_text(scenario_text(FAILS))
    return file


def soak_failing(file, out=None, *, as_json=True):
    with sums_that_are_recalled_are_wrong():
        options = SimulatedOptions(0, None, 1.0, None, None, str(file), only=True, out=out)
        return soak_simulated(options, as_json=as_json)


def test_a_failure_says_how_it_is_replayed_and_made_small(file, capsys):
    assert soak_failing(file) == 1
    (failure,) = json.loads(capsys.readouterr().out)["failures"]
    assert failure["seed"] == FAILS.seed
    assert failure["name"] == "sums exact"
    assert "wrong sums" in failure["what"]
    assert failure["command"] == f"python -m tests.simulation --scenario {file}"
    assert failure["shrink"] == f"{failure['command']} --out FOLDER"
    assert failure["files"] is None
    assert soak_failing(file, as_json=False) == 1
    said = capsys.readouterr().out
    assert failure["command"] in said
    assert failure["shrink"] in said


@pytest.mark.whole
def test_what_is_written_replays(file, tmp_path, capsys):
    assert soak_failing(file, tmp_path / "a" / "b") == 1
    (failure,) = json.loads(capsys.readouterr().out)["failures"]
    files = failure["files"]
    assert files["least"]
    small = read_scenario(tmp_path / "a" / "b" / "seed-5.json")
    assert (small.workers, small.up, len(small.faults)) == (2, IncidentRates(), 1)
    assert sorted(each.name for each in (tmp_path / "a" / "b").iterdir()) == [
        "seed-5.json",
        "seed-5.txt",
    ]
    assert soak_failing(Path(files["scenario"])) == 1
    again = json.loads(capsys.readouterr().out)
    assert again["failures"][0]["name"] == "sums exact"
    assert again["faults"] == {small.faults[0].kind.value: 1}
    assert again["failures"][0]["what"] in (tmp_path / "a" / "b" / "seed-5.txt").read_text()


def test_ctrl_c_while_it_is_made_small_writes_what_there_is(file, tmp_path, capsys, monkeypatch):
    runs = []

    def run(soak, scenario, **options):
        runs.append(scenario)
        # The first run finds the failure.
        if len(runs) == 6:
            os.kill(os.getpid(), signal.SIGINT)
        return whole(soak, scenario, **options)

    whole = Soak.run
    monkeypatch.setattr(Soak, "run", run)
    assert soak_failing(file, tmp_path / "out") == 1
    (failure,) = json.loads(capsys.readouterr().out)["failures"]
    assert not failure["files"]["least"]
    # One run for the trace comes behind.
    assert failure["files"]["runs"] == 5 == len(runs) - 2
    assert (tmp_path / "out" / "seed-5.txt").exists()


def started(*words):
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=seconds_here(60),
        check=False,
    )


@pytest.mark.whole
def test_as_a_user_starts_it(tmp_path):
    wrong = started("--scenario", tmp_path / "none.json")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    [sentence] = wrong.stderr.splitlines()
    assert sentence.startswith("Error: ")
    assert "holds no scenario" in sentence
    right = started("--seed", 3, "--json", "--out", tmp_path / "found")
    assert right.returncode == 0, right.stderr
    assert json.loads(right.stdout)["failures"] == []


def test_a_missing_folder_is_noticed_before_the_first_scenario(tmp_path):
    done = soak("--seed", 1, "--out", tmp_path / "gone" / "new")
    assert "there is no folder" in str(done.exception)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["endless", "large"])
def test_a_scenario_has_an_end(name, tmp_path):
    (tmp_path / "endless").symlink_to("/dev/zero")
    with (tmp_path / "large").open("wb") as file:
        file.truncate((64 << 20) + 1)
    with pytest.raises(ScenarioError, match=r"not a regular file|larger than 65,536 kB"):
        read_scenario(tmp_path / name)


SMALL = Scenario(seed=5, graph="random:8:12:1", rounds=2, up=LOSSY, down=LOSSY)


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


def test_the_place_in_the_package_is_said_and_no_address(star, monkeypatch):
    def fail(*_arguments):
        raise TypeError(f"no such thing as {object()!r}")

    monkeypatch.setattr(BarrierWaits, "gave", fail)
    (violation,) = star.run(SMALL).violations[:1]
    assert "<object object at 0x...>" in violation.what
    assert "in tests/simulation/checks/check.py, line " in violation.what
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


@pytest.mark.whole
def test_it_becomes_small(star, monkeypatch):
    monkeypatch.setattr(SumReceiver, "ask_for_what_is_late", crash)
    shrunk = shrink(SMALL, "crash", star.run, Budget(150, lambda: True))
    assert shrunk is not None
    assert shrunk.scenario.rounds == 1
    assert star.run(shrunk.scenario).violations[0].name == "crash"


@pytest.mark.whole
@pytest.mark.parametrize(("owner", "name"), [(BarrierWaits, "gave"), (Subjects, "of")])
def test_its_events_are_written(tmp_path, capsys, monkeypatch, owner, name):
    monkeypatch.setattr(owner, name, crash)
    monkeypatch.setattr("tests.simulation.soak_simulated._MOST_RUNS", 20)
    options = SimulatedOptions(5, 1, 1.0, None, None, None, only=True, out=tmp_path)
    assert soak_simulated(options, as_json=True) == 2
    (failure,) = json.loads(capsys.readouterr().out)["failures"]
    assert failure["name"] == "crash"
    assert failure["what"] in (tmp_path / "seed-5.txt").read_text()


def soak(*words):
    return CliRunner().invoke(app, list(map(str, words)))


def told(*words):
    return json.loads(soak(*words, "--json").stdout)


def test_one_object_says_all():
    said = told("--seed", 3, "--exchanges", 1)
    assert {"seed", "exchanges", "failures", "faults", "virtual_seconds", "seconds"} <= set(said)
    assert said["scenarios"] == 1
    assert said["failures"] == []
    assert len(said["trace_digest"]) == 64
    again = told("--seed", 3)
    assert {**said, "seconds": 0} == {**again, "seconds": 0}


def test_words_for_people():
    done = soak("--seed", 3)
    assert done.exit_code == 0
    assert "8 exchanges in 1 scenario from seed 3" in done.stdout
    assert "Nothing was otherwise than it must be." in done.stdout


def test_another_seed_is_another_soak():
    assert told("--seed", 8)["trace_digest"] != told("--seed", 9)["trace_digest"]


@pytest.mark.parametrize("suffix", [".json", ".toml"])
def test_a_scenario_of_ones_own(tmp_path, suffix):
    file = tmp_path / f"mine{suffix}"
    file.write_text('{"seed": 4, "rounds": 3}' if suffix == ".json" else "seed = 4\nrounds = 3\n")
    said = told("--scenario", file)
    assert (said["scenarios"], said["exchanges"]) == (1, 3)
    assert said["seed"] == 4
    assert "3 exchanges in 1 scenario as told:" in soak("--scenario", file).stdout


KNOWN = Path(__file__).parent / "a_lost_sum.json"
TIMES = 25


@pytest.mark.whole
def test_a_failure_replays_a_hundred_times(star):
    """In two processes, whose strings have other hashes, on both back ends."""
    backends = ["python", "native"] if find_compiler() else ["python"]
    found = set()
    for chance in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-m", "tests.virtual.mistaken", str(KNOWN), str(TIMES), *backends],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": chance},
            capture_output=True,
            text=True,
            timeout=seconds_here(60),
            check=True,
        )
        found |= {tuple(each) for each in json.loads(done.stdout)}
    assert len(found) == 1
    with sums_that_are_recalled_are_wrong():
        here = star.run(read_scenario(KNOWN))
    assert found == {(here.digest, here.violations[0].what)}


NOW = 10**12
TRACE = f"""\
{NOW} s0 starts
{NOW + 171_882} w0.up passed {NOW + 221_882} 000000008071e3950000000183200000000001000001128c41a3
{NOW + 3_045_139} w0.down loss 0 00000000000000000001000142200000000001000001e295c3e2
{NOW + 3_050_000} w1.up late {NOW + 150_000_000_000} 0102
{NOW + 3_100_000} w1.up silence 0.01
{NOW + 3_569_926} check sums exact: worker 0 has 1 wrong sums
{NOW + 3_573_770} w1 has round 1
"""
TABLE = """\
          ms  where
       0.000  s0          starts
       0.172  w0.up       DONE 1.1.0.0 src 0 dst 2154947477 count 1 ack, passed at 0.222
       3.045  w0.down     SUM 1.1.1.0 src 0 dst 0 count 1 fetch, loss
       3.050  w1.up       another protocol, late at 150,000.000
       3.100  w1.up       silence 0.01
       3.570  check       sums exact: worker 0 has 1 wrong sums
"""


def test_the_events_until_the_failure_are_a_table():
    assert table_of(TRACE.splitlines(), "sums exact") == TABLE
