"""`switchgnn soak`: random runs, a summary in any case, and a command for each failure."""

import json
import os
import shlex
import signal
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from switchgnn.base.errors import SwitchGNNError
from switchgnn.commands.application import app
from switchgnn.host.links.faults import FaultRates, Faults, worker_link
from switchgnn.jobs import reference
from switchgnn.jobs import run as job
from switchgnn.lab.commands.soak_runs import draw_run, soak
from switchgnn.topologies import choose
from tests.end_to_end.conftest import (
    BOTH_ENDS,
    LEAF_SPINE,
    MOSTLY_LOOPBACK,
    all_end,
    said,
    succeeded,
)
from tests.support.commands import forks_elsewhere, forkserver, started
from tests.support.kept_logs import take_kept_logs
from tests.support.markers import COMBINATION_ON_PYTHON, COMBINATIONS, some_of, words_of
from tests.support.processes import descendants
from tests.support.seeds import seeds
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

LOOPBACK = choose("embedded", "loopback")
HERE = ("soak", "--target", "embedded", "--fabric", "loopback", "--minutes", "0", "--seed", "3")


def soaked(combination, minutes, *options):
    words = ("soak", *words_of(combination), "--minutes", minutes, "--seed", 7, "--json")
    result = succeeded(*words, *options)
    report = json.loads(result.stdout)
    assert report["runs"] >= 1
    assert report["faults_injected"]["lost"] > 0
    assert (report["seed"], report["wrong_sums"], report["failures"]) == (7, 0, [])
    return report, result.stderr


@pytest.mark.parametrize("combination", [*BOTH_ENDS, COMBINATION_ON_PYTHON])
def test_a_short_soak_is_exact(combination):
    report, _ = soaked(combination, 0.03)
    assert report["rounds"] >= report["runs"]
    assert report["packets"] > 0
    assert report["repairs"]["features_resent"] > 0


@pytest.mark.parametrize("combination", MOSTLY_LOOPBACK)
def test_a_short_soak_over_leaves_and_spines(combination):
    _, shown = soaked(combination, 0.02, *LEAF_SPINE, "--leaves", 2, "--spines", 2)
    assert "on 2 leaves and 2 spines" in shown


def test_a_wrong_sum_is_exit_code_1(monkeypatch):
    forks_elsewhere(monkeypatch)
    real = reference.judge
    monkeypatch.setattr(reference, "judge", lambda *given: replace(real(*given), wrong_sums=2))
    result = CliRunner().invoke(app, HERE)
    assert result.exit_code == 1, result.output
    assert "2 sums differ from the reference" in result.output
    assert "repeat it: switchgnn run --graph " in result.output
    assert "Every sum equals" not in result.output
    assert take_kept_logs()


@pytest.mark.parametrize("error", [SwitchGNNError("Broken on purpose."), ZeroDivisionError("x")])
def test_a_failed_run_is_exit_code_2(monkeypatch, error):
    forks_elsewhere(monkeypatch)

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(job, "run_workers", fail)
    result = CliRunner().invoke(app, [*HERE, "--json"])
    assert result.exit_code == 2, result.output
    (failure,) = json.loads(result.stdout)["failures"]
    assert str(error) in failure["reason"]
    assert take_kept_logs()


@pytest.mark.parametrize("leaves_and_spines", [None, (3, 2)])
@pytest.mark.parametrize("number", seeds(2))
def test_the_command_repeats_the_run(monkeypatch, number, leaves_and_spines):
    drawn = draw_run(11, number, LOOPBACK, leaves_and_spines)
    asked = []

    def note(options, *_, **__):
        asked.append(options)
        raise KeyboardInterrupt

    failed = failure_of(monkeypatch, drawn)
    monkeypatch.setattr("switchgnn.commands.run.run_job", note)
    program, *words = shlex.split(failed.command)
    assert program == "switchgnn"
    outcome = CliRunner().invoke(app, words)
    assert asked == [drawn], (outcome.output, outcome.exception)


def show(line, ended):
    assert line


def test_each_run_is_the_next_one_of_the_seed(monkeypatch):
    done = []

    def note(options, *_, **__):
        done.append(options)
        raise KeyboardInterrupt if len(done) == 3 else SwitchGNNError("Broken on purpose.")

    monkeypatch.setattr("switchgnn.lab.commands.soak_runs.run_job", note)
    report = soak(LOOPBACK, 5, 1, show, forkserver())
    assert done == [draw_run(5, number, LOOPBACK) for number in range(3)]
    assert [failure.run for failure in report.failures] == [0, 1]


def test_a_signal_while_sums_are_compared_ends_the_soak_behind_the_run(monkeypatch):
    done = []

    def compare(options, step, **_):
        done.append(options)
        step(job.COMPARING, 0, 0)
        signal.raise_signal(signal.SIGTERM)
        nothing = {"faults_injected": {}, "repairs": {}, "wrong_sums": 0, "exact": True}
        ran = {"backend": "python", "backend_reason": "", "compile_seconds": 0.0}
        return SimpleNamespace(rounds=1, frames_up=1, frames_down=1, **ran, **nothing)

    monkeypatch.setattr("switchgnn.lab.commands.soak_runs.run_job", compare)
    report = soak(LOOPBACK, 5, 0.02, show, forkserver())
    assert (len(done), report.runs, report.interrupted) == (1, 1, True)


def failure_of(monkeypatch, drawn):
    def fail(*_, **__):
        raise SwitchGNNError("Broken on purpose.")

    monkeypatch.setattr("switchgnn.lab.commands.soak_runs.draw_run", lambda *_: drawn)
    monkeypatch.setattr("switchgnn.lab.commands.soak_runs.run_job", fail)
    return soak(LOOPBACK, 0, 0, show, forkserver()).failures[0]


def test_runs_differ_and_follow_from_the_seed():
    runs = [draw_run(5, number, LOOPBACK) for number in range(200)]
    assert runs == [draw_run(5, number, LOOPBACK) for number in range(200)]
    assert runs != [draw_run(6, number, LOOPBACK) for number in range(200)]
    assert {run.workers for run in runs} == {2, 3, 4, 5}
    assert {run.request.send for run in runs} == {"multicast", "cover"}
    assert {run.graph.partition(":")[0] for run in runs} == {"karate", "digits", "random"}
    for run in runs:
        faults = Faults.parse(run.faults)
        for worker in range(run.workers):
            for way in ("up", "down"):
                rates = faults.of(worker_link(worker), way)
                most = FaultRates(loss=0.2, duplicate=0.05, reorder=0.05, corrupt=0.01)
                assert all(vars(rates)[name] <= vars(most)[name] for name in vars(most))


def test_each_leaf_has_a_worker_and_cables_have_faults():
    runs = [draw_run(5, number, LOOPBACK, (4, 2)) for number in range(200)]
    assert {run.workers for run in runs} == {4, 5, 6, 7}
    named = set()
    for run in runs:
        assert (run.leaf_spine.leaves, run.leaf_spine.spines) == (4, 2)
        faults = Faults.parse(run.faults)
        named |= {link for link, _ in faults.rates if link and link.startswith("l")}
        assert faults.on_cables
    assert named == {f"l{leaf}s{spine}" for leaf in range(4) for spine in range(2)}


def interfaces():
    return {each.name for each in Path("/sys/class/net").iterdir()}


@pytest.mark.parametrize(
    ("combination", "stage", "how"),
    some_of(
        lambda where, stage, how: (where, stage, how) in {(0, 0, 0), (1, 3, 1), (2, 2, 0)},
        COMBINATIONS,
        ["starting the switch", "installing", "exchanging", "exact"],
        [signal.SIGINT, signal.SIGTERM],
    ),
)
def test_the_summary_comes_when_it_is_interrupted(combination, stage, how, tmp_path):
    before = interfaces()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    words = ("soak", *words_of(combination), "--minutes", 10, "--seed", 4, "--json")
    with started(*words, log=tmp_path / "log", scratch=scratch, screen=True) as child:
        wait_until(lambda: stage in said(child))
        children = descendants(child.pid)
        # A second Ctrl-C follows.
        for _ in range(2 if how is signal.SIGINT else 1):
            os.kill(child.pid, how)
        assert child.wait(seconds_here()) == 0
        report = json.loads(child.stdout.read())
    assert report["interrupted"] is True
    assert report["failures"] == []
    all_end(children)
    wait_until(lambda: interfaces() <= before)
    assert not list(scratch.iterdir())
