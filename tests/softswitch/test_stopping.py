# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Signals that come at a bad moment still end the process."""

import contextlib
import ctypes
import re
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from switchgnn.softswitch.daemon.serving import STOP_SIGNALS, StopSignals
from tests.softswitch.harness import DEADLINE
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

COMMAND = [sys.executable, "-m", "switchgnn.softswitch"]


@contextlib.contextmanager
def running():
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [*COMMAND, "--grpc", f"unix:{folder}/switch.sock"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        try:
            assert re.search(r"serves", process.stdout.readline())
            yield process
        finally:
            process.kill()


def ended_well(process):
    return process.wait(seconds_here(DEADLINE)) == 0 and process.stderr.read() == ""


def sleeps(process, thread):
    return Path(f"/proc/{process.pid}/task/{thread}/stat").read_text().split()[2] == "S"


def test_a_signal_that_does_not_wake_the_main_thread():
    """What a signal just before the main thread sleeps comes down to, at a chosen time."""
    with running() as process:
        threads = [int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()]
        other = next(thread for thread in threads if thread != process.pid)
        wait_until(lambda: sleeps(process, process.pid), "a sleeping main thread")
        assert ctypes.CDLL(None).tgkill(process.pid, other, signal.SIGTERM) == 0
        assert ended_well(process)


def test_signals_that_interrupt_each_other():
    with running() as process:
        for _ in range(100):
            for number in STOP_SIGNALS:
                process.send_signal(number)
        assert ended_well(process)


@pytest.fixture
def signals():
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    try:
        with StopSignals() as signals:
            yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_signal_before_the_wait_ends_it(signals, number):
    signal.raise_signal(number)
    signals.wait()


def test_other_signals_do_not_end_the_wait(signals):
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        signal.raise_signal(signal.SIGUSR1)
        timer = threading.Timer(0.05, signal.pthread_kill, (threading.get_ident(), signal.SIGTERM))
        timer.start()
        signals.wait()
        assert timer.finished.is_set()
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_more_signals_than_fit_do_no_harm(signals, capfd):
    for _ in range(2000):
        signal.raise_signal(signal.SIGINT)
    signals.wait()
    assert capfd.readouterr().err == ""
