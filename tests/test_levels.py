# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The sets of tests, and deadlines that follow the speed of the machine."""

import itertools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.host.pace import Pace
from tests.support import speed
from tests.support.bare_path import OPTIONAL, bare_path
from tests.support.commands import switchgnn
from tests.support.levels import SHARED, WHOLE, group_of, in_share, is_whole
from tests.support.markers import covering, some_of
from tests.support.speed import Deadline, pace_here, seconds_here
from tests.support.waiting import wait_until

AXES = st.lists(st.integers(1, 4), min_size=2, max_size=4)


def is_full(param):
    return any(mark.name == "full" for mark in param.marks)


@given(AXES)
def test_every_pair_of_values_is_covered(sizes):
    params = covering(*map(range, sizes))
    assert len(params) == len({param.values for param in params})
    assert {param.values for param in params} == set(itertools.product(*map(range, sizes)))
    kept = [param.values for param in params if not is_full(param)]
    for one, other in itertools.combinations(range(len(sizes)), 2):
        pairs = {(values[one], values[other]) for values in kept}
        assert pairs == set(itertools.product(range(sizes[one]), range(sizes[other])))


def test_marks_and_names_of_values_stay():
    slow = pytest.param("b", "c", marks=pytest.mark.whole, id="two")
    params = some_of(lambda one, other: other == 1, [1, 2], ["a", slow])
    assert [param.id for param in params] == ["1-a", "1-two", "2-a", "2-two"]
    assert [is_full(param) for param in params] == [True, False, True, False]
    assert params[3].values == (2, "b", "c")
    assert [mark.name for mark in params[3].marks] == ["whole"]


def test_shares_differ_and_repeat():
    names = [f"tests/test_{number}.py::test" for number in range(4000)]
    shares = [{name for name in names if in_share(name, f"10:{seed}")} for seed in "ab"]
    assert shares[0] == {name for name in names if in_share(name, "10:a")}
    assert all(300 < len(share) < 500 for share in shares)
    assert len(shares[0] & shares[1]) < 100


def test_a_bare_path_has_all_but_the_optional_programs(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("ours", *OPTIONAL):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    bare = bare_path(os.pathsep.join([str(folder), "/nowhere"]))
    assert shutil.which("ours", path=str(bare)) is not None
    assert not any(shutil.which(name, path=str(bare)) for name in OPTIONAL)


def test_tests_of_one_switch_run_in_one_process():
    ptf = "tests/ptf/test_ptf.py::test_case[{}-seen.RepeatedAtOnce]"
    assert group_of(ptf.format("bmv2")) != group_of(ptf.format("embedded-udp"))
    assert group_of(ptf.format("bmv2")) == group_of("tests/ptf/test_ptf.py::test_case[bmv2-a.B]")
    mistakes = group_of("tests/ptf/test_ptf.py::test_mistake_is_noticed[a]")
    assert mistakes not in {group_of(ptf.format(name)) for name in ("bmv2", "embedded-udp")}
    alone = "tests/recovery/test_restarts.py::test_something[1]"
    assert group_of(alone) == alone
    assert group_of("tests/host/test_congestion.py::test[1]") == "tests/host/test_congestion.py"


def test_what_runs_whole_programs_is_there():
    assert all((Path("tests") / place).exists() for place in WHOLE)
    assert all(Path(file).is_file() for file in SHARED)
    assert is_whole("tests/recovery/test_faults.py")
    assert not is_whole("tests/host/direct/test_sums.py")


@pytest.fixture
def machine(monkeypatch):
    """Call it to be on a machine with slow cores, or with others who want them."""

    def be(*, core=1.0, waiting=0.0):
        monkeypatch.setattr(speed, "core_slowness", lambda: core)
        monkeypatch.setattr(speed, "crowd", lambda: waiting)

    return be


@pytest.mark.parametrize(
    ("core", "waiting", "factor"),
    [(1, 0.2, 1), (0.5, 1, 1), (3, 0, 3), (1, 4, 4), (2, 3, 6), (50, 1, 20), (7, 7, 20)],
)
def test_deadlines_are_longer_on_a_slow_or_busy_machine(machine, core, waiting, factor):
    machine(core=core, waiting=waiting)
    assert seconds_here(2.0) == 2.0 * factor
    assert pace_here(Pace(window=5, patience=3.0)) == Pace(window=5, patience=3.0 * factor)


def test_a_deadline_moves_when_somebody_comes(machine, monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr(speed, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    machine()
    deadline = Deadline(2.5)
    assert [deadline.is_over() for _ in range(3)] == [False, False, True]
    machine(waiting=3)
    assert not deadline.is_over()
    machine()  # and stays when they leave
    assert [deadline.is_over() for _ in range(4)] == [False, False, False, True]


def test_a_busy_machine_and_a_share_of_it_are_seen(monkeypatch, tmp_path):
    for name, file in (("_LOAD", "loadavg"), ("_QUOTA", "cpu.max")):
        monkeypatch.setattr(speed, name, tmp_path / file)
    monkeypatch.setattr(speed.os, "sched_getaffinity", lambda _: {3})
    for quota, cores in (("50000 100000", 0.5), ("max 100000", 1.0)):
        (tmp_path / "cpu.max").write_text(f"{quota}\n")
        assert speed.cores.__wrapped__() == cores
    monkeypatch.setattr(speed, "cores", lambda: 2.0)
    for load, crowd in (("1.00 9.00 9.00 8/200 4242", 4.0), ("5.00 0.00 0.00 1/200 42", 2.5)):
        (tmp_path / "loadavg").write_text(f"{load}\n")
        assert speed.crowd() == crowd


def test_waiting_in_vain_ends_and_says_for_what(machine):
    machine()
    with pytest.raises(AssertionError, match="not in time: a wonder"):
        wait_until(lambda: False, "a wonder", 0.01)


@pytest.mark.whole
def test_a_command_without_end_is_ended():
    """Also while it writes."""
    words = ("soak", "--minutes", "10", "--target", "embedded", "--fabric", "loopback")
    with (
        tempfile.TemporaryDirectory() as scratch,
        pytest.raises(subprocess.TimeoutExpired, match=r"soak.*after 0\.5 seconds"),
    ):
        switchgnn(*words, scratch=scratch, seconds=0.5)
