# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Deadlines of tests follow the speed of the machine, and all of them do."""

import ast
import itertools
import re
import subprocess
import tempfile
import textwrap
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from switchgnn.host.pace import Pace
from tests.support import speed
from tests.support.commands import switchgnn
from tests.support.speed import Deadline, pace_here, seconds_here
from tests.support.waiting import wait_until

WAITS = {"wait", "join", "settimeout", "acquire", "create_connection"}
WORDS = {"timeout", "deadline"}
# Times of a model, not of this machine.
MODELS = {"simulated", "NetworkOptions"}
# What is over sooner is meant to expire.
SHORTEST = 1.0


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


def test_a_busy_machine_is_seen(machine, monkeypatch, tmp_path):
    (tmp_path / "loadavg").write_text("1.00 9.00 9.00 8/200 4242\n")
    monkeypatch.setattr(speed, "_LOAD", tmp_path / "loadavg")
    monkeypatch.setattr(speed, "cores", lambda: 2.0)
    assert speed.crowd() == 4.0
    (tmp_path / "loadavg").write_text("5.00 0.00 0.00 1/200 4242\n")
    assert speed.crowd() == 2.5


@pytest.mark.parametrize(("quota", "cores"), [("50000 100000", 0.5), ("max 100000", 1.0)])
def test_a_share_of_the_machine_counts(monkeypatch, tmp_path, quota, cores):
    (tmp_path / "cpu.max").write_text(f"{quota}\n")
    monkeypatch.setattr(speed, "_QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(speed.os, "sched_getaffinity", lambda _: {3})
    assert speed.cores.__wrapped__() == cores


def test_this_machine_was_measured():
    assert 0 < speed.core_slowness() < 1000
    assert 1 <= speed.slowness() <= 20


def test_waiting_in_vain_ends_and_says_for_what(machine):
    machine()
    with pytest.raises(AssertionError, match="not in time: a wonder"):
        wait_until(lambda: False, "a wonder", 0.01)
    done = threading.Event()
    threading.Timer(0.01, done.set).start()
    assert wait_until(done.is_set)


@pytest.mark.whole
def test_a_command_without_end_is_ended():
    """Also while it writes."""
    words = ("soak", "--minutes", "10", "--target", "embedded", "--fabric", "loopback")
    with (
        tempfile.TemporaryDirectory() as scratch,
        pytest.raises(subprocess.TimeoutExpired, match=r"soak.*after 0\.5 seconds"),
    ):
        switchgnn(*words, scratch=scratch, seconds=0.5)


def of_fixed_length(text):
    """Lines with a deadline of some seconds that does not know of the machine."""
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(r"monotonic\(\) \+ (?!seconds_here)", line):
            yield number
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or is_of_a_string(node.func):
            continue
        name = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
        given = [each.value for each in node.keywords if each.arg in WORDS and name not in MODELS]
        given += node.args[-1:] if name in WAITS else []
        yield from (node.lineno for value in given if is_fixed(value))


def is_of_a_string(function):
    """`join` is."""
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Constant)


def is_fixed(value):
    if isinstance(value, ast.Name):
        return value.id.isupper()
    seconds = getattr(value, "value", None)
    return isinstance(seconds, (int, float)) and seconds is not True and seconds >= SHORTEST


def test_no_deadline_is_of_fixed_length():
    found = [
        f"{path}:{line}"
        for path in sorted(Path("tests").rglob("*.py"))
        for line in of_fixed_length(path.read_text())
        if path.name != Path(__file__).name
    ]
    assert found == [], "take seconds_here() of tests/support/speed.py"


def test_a_deadline_of_fixed_length_is_found():
    text = """\
        process.wait(30)
        subprocess.run(command, timeout=SECONDS)
        end = time.monotonic() + 20
        thread.join(seconds_here(30))
        child.wait(0.2)
        ", ".join(WORDS.split())
        socket.create_connection(address, 5)
    """
    assert sorted(of_fixed_length(textwrap.dedent(text))) == [1, 2, 3, 7]
