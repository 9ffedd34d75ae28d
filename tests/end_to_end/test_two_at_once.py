# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Two commands at the same time, of one user on one machine, know nothing of each other."""

import importlib.util
import json
import sys
from contextlib import ExitStack

import pytest

from tests.support.commands import nursery
from tests.support.markers import COMBINATIONS, MININET_COMBINATIONS, full, some_of, words_of
from tests.support.speed import seconds_here

RUN = ("run", "--graph", "karate", "--workers", 3, "--slots", 16, "--rounds", 20)
TRAIN = ("train", "--data", "karate", "--workers", 3, "--epochs", 5, "--dropout", 0)
OVER_SWITCH = ("--transport", "switch")
# Each combination beside itself: interfaces, ports and folders of one kind.
PLACES = some_of(lambda one, other: one == other, COMBINATIONS, COMBINATIONS)
needs_training = pytest.mark.skipif(
    importlib.util.find_spec("torch_geometric") is None, reason="PyTorch Geometric is not installed"
)


def reports_of(tmp_path, *commands, environment=None):
    with ExitStack() as stack:
        children = []
        for number, arguments in enumerate(commands):
            words = [sys.executable, "-m", "switchgnn.commands", *map(str, arguments), "--json"]
            log = tmp_path / f"{number}.log"
            child = nursery().child(
                "switchgnn", words, log, pipe=True, environment=environment or {}
            )
            children.append(stack.enter_context(child))
        reports = []
        for child in children:
            # It ends when the program does.
            lines = child.stdout.read().splitlines()
            assert child.wait(seconds_here(60)) == 0, child.log.read_text()[-2000:]
            reports.append(json.loads(lines[-1]))
    return reports


@pytest.mark.parametrize(("one", "other"), PLACES)
def test_runs(one, other, tmp_path):
    commands = [(*RUN, *words_of(each)) for each in (one, other)]
    for report in reports_of(tmp_path, *commands):
        assert report["exact"] is True


@full
@pytest.mark.parametrize("combination", MININET_COMBINATIONS)
def test_runs_over_shaped_links(combination, tmp_path):
    """BMv2's send buffers are limited for the whole machine: see docs/limitations.md."""
    run = (*RUN, *words_of(combination), "--bandwidth", 20)
    for report in reports_of(tmp_path, run, run):
        assert report["exact"] is True


@needs_training
@pytest.mark.parametrize(
    ("one", "other"),
    some_of(lambda one, other: (one, other) == (0, 2), COMBINATIONS, COMBINATIONS),
)
def test_a_training_beside_a_run(one, other, tmp_path):
    train = (*TRAIN, *OVER_SWITCH, *words_of(one))
    trained, ran = reports_of(tmp_path, train, (*RUN, *words_of(other)))
    assert ran["exact"] is True
    (alone,) = reports_of(tmp_path, (*TRAIN, "--transport", "local"))
    assert trained["losses"] == pytest.approx(alone["losses"], rel=1e-4)


@full
@needs_training
@pytest.mark.parametrize("combination", COMBINATIONS)
def test_trainings(combination, tmp_path):
    train = (*TRAIN, *OVER_SWITCH, *words_of(combination))
    one, other = reports_of(tmp_path, train, train)
    assert one["losses"] == pytest.approx(other["losses"], rel=1e-4)


@full
@pytest.mark.parametrize("combination", COMBINATIONS[:2])
def test_runs_that_compile(combination, tmp_path):
    """With an empty cache, one compiles, and the other waits for it."""
    cache = tmp_path / "cache"
    run = (*RUN, *words_of(combination))
    reports = reports_of(tmp_path, run, run, environment={"XDG_CACHE_HOME": str(cache)})
    assert all(report["exact"] for report in reports)
    assert reports[0]["backend"] == reports[1]["backend"]
    if reports[0]["backend"] == "native":
        programs = [path for path in cache.rglob("program-*") if path.suffix != ".lock"]
        assert len(programs) == 1
