"""Ctrl-C ends work and leaves no lock taken; children import nothing from the current folder."""

import os
import signal
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from switchgnn.base import interruptible as subject
from switchgnn.base.interruptible import interruptible
from switchgnn.base.machine import module_of, python_program
from tests.support.processes import run_program
from tests.support.waiting import wait_until


class Interrupted:
    """A lock of a ``threading.Condition``; a signal comes when it is given back."""

    def __init__(self, then=lambda: None):
        self.taken = False
        self._then = then

    def acquire(self):
        self.taken = True

    def release(self):
        signal.raise_signal(signal.SIGINT)
        self._then()
        self.taken = False

    def __enter__(self):
        self.acquire()

    def __exit__(self, *_):
        self.release()

    def be_used(self):
        condition = threading.Condition(self)
        with condition:
            pass


@contextmanager
def handlers_unchanged():
    before = signal.getsignal(signal.SIGINT)
    yield
    assert signal.getsignal(signal.SIGINT) == before


def be_interrupted():
    wait_until(lambda: False, "an interrupt")


def test_a_lock_of_a_library_is_given_back_before():
    lock = Interrupted()
    with handlers_unchanged(), interruptible(), pytest.raises(KeyboardInterrupt):
        lock.be_used()
        be_interrupted()
    assert not lock.taken


def test_work_in_a_library_is_interrupted_in_the_end(monkeypatch):
    monkeypatch.setattr(subject, "_MOST_DELAYS", 20)
    lock = Interrupted(be_interrupted)
    with handlers_unchanged(), interruptible(), pytest.raises(KeyboardInterrupt):
        lock.be_used()


def test_what_is_ignored_stays_so():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interruptible():
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


REPOSITORY = Path(__file__).resolve().parents[1]
# The relay ends at once: it has no cables, and its input is at its end.
RELAY = "switchgnn.topologies.relay"


@pytest.mark.whole
def test_what_lies_in_the_current_folder_is_not_run(tmp_path):
    trace = tmp_path / "ran"
    for name in ("json", "select", "runpy", "numpy", "switchgnn"):
        (tmp_path / f"{name}.py").write_text(f"open({str(trace)!r}, 'a').write({name!r})\n")
    environment = {"PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"}
    ended = run_program(
        python_program(RELAY), cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ready\n", "")
    assert not trace.exists()


def test_the_arguments_arrive(tmp_path):
    (tmp_path / "told.py").write_text("import sys; print(sys.argv[1:], __name__)")
    command = python_program("told", "one", "two words")
    environment = {"PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert ended.stdout == "['one', 'two words'] __main__\n"
    assert module_of(command) == ["told", "one", "two words"]
    assert module_of(["mnexec", *command]) is None
