"""Run `switchgnn` as a user does, but forked from a process that has imported it already."""

import atexit
import functools
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

from bench.testbeds.forkserver import NewForkserver
from switchgnn.commands.application import COMMANDS
from switchgnn.jobs.workers import ENVIRONMENT
from switchgnn.topologies.child import Child
from tests.support.gpu import cuda_missing
from tests.support.leftovers import lasting
from tests.support.speed import seconds_here

_PRELOAD = (*(command.module for command in COMMANDS), "switchgnn.softswitch.daemon")
_ROOT = Path(__file__).parent.parent.parent
# Optional imports of `switchgnn train`.
_TRAINING = ("switchgnn.jobs.train",)


def switchgnn(*arguments, seconds=100, scratch=None, folder=None, disk=None, environment=None):
    """Run the program in a folder; temporary files go to `scratch` if it is given.

    `seconds` limit it on an idle machine. `disk` is the limit of a disk that `scratch` becomes:
    see `small_disk.py`.
    """
    with tempfile.TemporaryDirectory() as logs:
        log = Path(logs) / "stderr"
        where = {"scratch": scratch, "folder": folder, "disk": disk}
        with started(*arguments, log=log, **where, environment=environment) as child:
            words = child._command
            child.stdin.close()
            with _killed_after(seconds_here(seconds), child.pid) as killed:
                # It ends when the program does.
                output = child.stdout.read()
            code = child.wait(seconds_here())
            if killed.is_set() or code is None:
                raise subprocess.TimeoutExpired(words, seconds, output)
        return subprocess.CompletedProcess(words, code, output, log.read_text())


def started(*arguments, log, scratch=None, folder=None, disk=None, screen=False, environment=None):
    """Return the program as a child to enter; with `screen` it shows progress as on a terminal."""
    on_disk = () if disk is None else ("tests.support.small_disk", str(scratch), disk)
    words = [sys.executable, "-m", *on_disk, "switchgnn.commands", *map(str, arguments)]
    variables = dict(environment or {})
    if scratch:
        variables["TMPDIR"] = str(scratch)
    if screen:
        variables |= {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "200"}
    return Child(
        *("switchgnn", words, log),
        pipe=True,
        environment=variables,
        forkserver=forkserver(),
        folder=folder,
    )


@contextmanager
def _killed_after(seconds, pid):
    over = threading.Event()

    def kill():
        over.set()
        os.kill(pid, signal.SIGKILL)

    timer = threading.Timer(seconds, kill)
    timer.start()
    try:
        yield over
    finally:
        timer.cancel()
        timer.join()


def forkserver():
    return _forkserver(os.getpid())


@functools.cache
def _forkserver(_pid):
    # Where there is a GPU, programs import PyTorch Geometric after the fork.
    preloaded = importlib.util.find_spec("torch_geometric") and cuda_missing() is not None
    training = _TRAINING if preloaded else ()
    # Some programs belong to the tests, and run in other folders.
    known = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    made = NewForkserver((*_PRELOAD, *training), {**ENVIRONMENT, "PYTHONPATH": known})
    with lasting():
        made.start()
    atexit.register(made.stop)
    return made
