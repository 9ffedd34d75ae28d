# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The switch as a process, and the signals that end it."""

import ctypes
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from switchgnn.softswitch.daemon.serving import STOP_SIGNALS, StopSignals
from tests.softswitch.harness import DEADLINE, Controller, free_address, udp_socket
from tests.support.speed import Deadline, seconds_here
from tests.support.waiting import wait_until

COMMAND = [sys.executable, "-m", "switchgnn.softswitch"]
GRPC = "127.0.0.1:0"


def start(*arguments, grpc=GRPC):
    return subprocess.Popen(
        [*COMMAND, "--grpc", grpc, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def address_of(process):
    return re.search(r"127\.0\.0\.1:\d+", process.stdout.readline())[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it_cleanly(number):
    with start("--device-id", "7") as process:
        address = address_of(process)
        with Controller(address, "fates", device_id=7) as controller:
            assert controller.arbitrate() == 0
            controller.set_config()
        process.send_signal(number)
        assert process.wait(seconds_here(DEADLINE)) == 0
        # Nothing else is printed.
        assert process.stderr.read().startswith(f"Warning: anybody who can connect to {address}")


def test_a_socket_needs_no_warning(tmp_path):
    address = f"unix:{tmp_path}/a switch 100%.sock"
    with start(grpc=address) as process:
        assert process.stdout.readline().endswith(f"{address}\n")
        with Controller(address.replace(" ", "%20").replace("100%", "100%25")) as controller:
            assert controller.arbitrate() == 0
        process.terminate()
        assert process.wait(seconds_here(DEADLINE)) == 0
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["--port", "1=eth:no-such-if0"],
        ["--port", "nonsense"],
        ["--port", "1=eth:lo", "--port", "1=eth:lo"],
        ["--tls-cert", "only-one.pem"],
    ],
)
def test_bad_arguments_are_one_sentence_and_code_two(arguments):
    assert len(refused("--grpc", GRPC, *arguments).splitlines()) == 1


def refused(*arguments):
    done = subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=seconds_here(DEADLINE),
        check=False,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    return done.stderr.strip()


def test_an_address_is_required_and_must_be_free():
    assert "--grpc" in refused()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert address in refused("--grpc", address).splitlines()[-1]


def test_port_bandwidth_is_in_megabits_per_second():
    with udp_socket() as host:
        there, here = free_address()[1], host.getsockname()[1]
        port = f"2=udp:127.0.0.1:{there}:127.0.0.1:{here}"
        with start("--port", port, "--port-bandwidth", "0.01") as process:
            with Controller(address_of(process), "fates") as controller:
                controller.arbitrate()
                controller.set_config()
            host.connect(("127.0.0.1", there))
            for _ in range(3):
                host.send(bytes(103))  # leaves with 22 bytes more: 1000 bits
            host.recv(200)
            begin = time.monotonic()
            assert len(host.recv(200)) == len(host.recv(200)) == 125
            assert 0.15 < time.monotonic() - begin < seconds_here(1.5)
            process.terminate()


def test_it_ends_with_its_parent():
    script = (
        "import subprocess, sys\n"
        f"p = subprocess.Popen({[*COMMAND, '--grpc', GRPC, '--exit-with-parent']!r},"
        " stdout=subprocess.PIPE, text=True)\n"
        "print(p.stdout.readline().split()[-1], flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        host, _, port = parent.stdout.readline().strip().rpartition(":")
        socket.create_connection((host, int(port)), seconds_here(DEADLINE)).close()
        parent.kill()
        parent.wait(seconds_here(DEADLINE))
    deadline = Deadline(DEADLINE)
    while not deadline.is_over():
        try:
            socket.create_connection((host, int(port)), seconds_here(1)).close()
        except ConnectionRefusedError:
            return
        except OSError:
            pass  # it is closing this very connection
        time.sleep(0.02)
    raise AssertionError("the switch outlived its parent")


@pytest.fixture
def process(tmp_path):
    with start(grpc=f"unix:{tmp_path}/switch.sock") as process:
        try:
            assert "serves" in process.stdout.readline()
            yield process
        finally:
            process.kill()


def ended_well(process):
    return process.wait(seconds_here(DEADLINE)) == 0 and process.stderr.read() == ""


def sleeps(process, thread):
    return Path(f"/proc/{process.pid}/task/{thread}/stat").read_text().split()[2] == "S"


def test_a_signal_that_does_not_wake_the_main_thread(process):
    """As a signal just before the main thread sleeps."""
    threads = [int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()]
    other = next(thread for thread in threads if thread != process.pid)
    wait_until(lambda: sleeps(process, process.pid), "a sleeping main thread")
    assert ctypes.CDLL(None).tgkill(process.pid, other, signal.SIGTERM) == 0
    assert ended_well(process)


def test_signals_that_interrupt_each_other(process):
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
