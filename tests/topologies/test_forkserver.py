"""Forked programs behave as any others do, and die with their server."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bench.testbeds.forkserver import NewForkserver
from switchgnn.topologies import child as child_module
from switchgnn.topologies.child import Child
from switchgnn.topologies.errors import FabricError
from tests.support.markers import needs_root
from tests.support.processes import is_alive, run_program
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

PROGRAM = """
import os, signal, sys, time
if __name__ == "__main__":
    what = sys.argv[1]
    print(what, os.environ.get("COLOUR"), os.readlink("/proc/self/ns/net"), flush=True)
    if what == "echo":
        print(sys.stdin.read(), end="", flush=True)
    elif what == "fail":
        raise ValueError("on purpose")
    elif what == "stay":
        time.sleep(60)
    elif what == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(60)
"""


@pytest.fixture
def forkserver(tmp_path, monkeypatch):
    (tmp_path / "planted_program.py").write_text(PROGRAM)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    with NewForkserver(["planted_program"], {}) as made:
        yield made


def child_of(forkserver, tmp_path, what, **options):
    command = [sys.executable, "-m", "planted_program", what]
    log = tmp_path / f"{what}.log"
    return Child("Worker 0", command, log, pipe=True, forkserver=forkserver, **options)


def test_input_output_and_environment_are_its_own(forkserver, tmp_path):
    for colour in ("red", "blue"):
        with child_of(forkserver, tmp_path, "echo", environment={"COLOUR": colour}) as child:
            child.stdin.write("a\nb\n")
            child.stdin.close()
            assert child.stdout.readline().startswith(f"echo {colour} ")
            assert child.stdout.read() == "a\nb\n"
            assert child.wait(seconds_here(10)) == 0
            assert child.exit_code() == 0
    assert "COLOUR" not in os.environ


def test_one_that_does_not_listen_is_killed(forkserver, tmp_path, monkeypatch):
    monkeypatch.setattr("switchgnn.topologies.child._STOP_SECONDS", 0.2)
    with child_of(forkserver, tmp_path, "deaf") as child:
        assert child.stdout.readline().startswith("deaf")
        pid = child.pid
    wait_until(lambda: not is_alive(pid))


def test_a_killed_one_is_noticed(forkserver, tmp_path):
    with child_of(forkserver, tmp_path, "stay") as child:
        os.kill(child.pid, signal.SIGKILL)
        assert child.wait(seconds_here(10)) == -signal.SIGKILL


def test_children_end_with_the_forkserver(forkserver, tmp_path):
    child = child_of(forkserver, tmp_path, "stay")
    child.start()
    pid = child.pid
    forkserver.stop()
    wait_until(lambda: not is_alive(pid))
    assert child.wait(seconds_here(10)) is not None
    child.stop()
    with pytest.raises(FabricError, match="stopped"):
        child_of(forkserver, tmp_path, "stay").start()


PARENT = """
import sys
from contextlib import suppress
from pathlib import Path
from switchgnn.topologies.child import Child
from switchgnn.topologies.forkserver import Forkserver
with Forkserver() as forkserver:
    command = [sys.executable, "-m", "planted_program", {what!r}]
    log = Path({folder!r}, "log")
    options = {{"pipe": True, "environment": {{"COLOUR": "red"}}, "forkserver": forkserver}}
    with Child("Worker 0", command, log, **options) as child:
        print(child.pid, flush=True)
        # One that fails may be gone by now.
        with suppress(BrokenPipeError):
            child.stdin.write("a")
            child.stdin.close()
        print(child.stdout.read(), end="")
        print(child.wait({seconds}), flush=True)
    forkserver.stop()
    print("stopped")
"""


@pytest.mark.parametrize("what", ["echo", "fail", "stay"])
def test_a_forkserver_serves_stops_and_ends(tmp_path, what):
    """In a process of its own, so that no thread of pytest is forked."""
    (tmp_path / "planted_program.py").write_text(PROGRAM)
    path = f"{tmp_path}:{os.environ.get('PYTHONPATH') or Path.cwd()}"
    text = PARENT.format(what=what, folder=str(tmp_path), seconds=seconds_here(60))
    options = {"stdout": subprocess.PIPE, "env": {**os.environ, "PYTHONPATH": path}, "text": True}
    with subprocess.Popen([sys.executable, "-c", text], **options) as process:
        pid = int(process.stdout.readline())
        if what == "stay":
            assert is_alive(pid)
            process.kill()
        output = process.stdout.read()
    wait_until(lambda: not is_alive(pid))
    if what != "stay":
        assert output.startswith(f"{what} red ")
        assert output.endswith("a0\nstopped\n" if what == "echo" else "1\nstopped\n")


def test_a_signal_at_once_does_not_bring_the_child_back():
    """A handler that raises would have the child go on with our program, as a second one."""
    program = """
import signal
from switchgnn.topologies.forkserver import Forkserver
signal.signal(signal.SIGTERM, signal.default_int_handler)
for _ in range(100):
    forkserver = Forkserver()
    forkserver.start()
    forkserver.stop()
print("once")
"""
    done = run_program([sys.executable, "-c", program])
    assert (done.stdout, done.stderr, done.returncode) == ("once\n", "", 0)


@needs_root
def test_a_child_enters_the_namespace(forkserver, tmp_path):
    with subprocess.Popen(["unshare", "--net", "sleep", "60"]) as holder:
        try:
            theirs = Path(f"/proc/{holder.pid}/ns/net")
            wait_until(lambda: theirs.readlink() != Path("/proc/self/ns/net").readlink())
            with child_of(forkserver, tmp_path, "echo", namespace=theirs) as child:
                child.stdin.close()
                assert child.stdout.readline().split()[-1] == str(theirs.readlink())
                assert child.wait(seconds_here(10)) == 0
        finally:
            holder.kill()


def test_lines_come_one_by_one_and_their_end_is_reported(tmp_path):
    with Child("Cat", ["cat"], tmp_path / "log", pipe=True) as cat:
        for word in ("one", "two"):
            cat.tell(word)
            assert cat.read_line() == f"{word}\n"
        cat.stdin.close()
        with pytest.raises(FabricError, match="Cat ended: it left no message"):
            cat.read_line()


def test_a_child_that_prints_nothing_is_not_waited_for_forever(tmp_path, monkeypatch):
    monkeypatch.setattr(child_module, "_ANSWER_SECONDS", 0.05)
    with (
        Child("Cat", ["cat"], tmp_path / "log", pipe=True) as cat,
        pytest.raises(FabricError, match=r"Cat has not answered for 0\.05 s"),
    ):
        cat.read_line()
