# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The switch as a process."""

import re
import signal
import socket
import subprocess
import sys
import time

import pytest

from tests.softswitch.harness import DEADLINE, Controller
from tests.support.speed import Deadline, seconds_here

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
        # It says nothing but what an open port needs to be said of.
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


def test_where_it_serves_must_be_said():
    done = subprocess.run(
        COMMAND, capture_output=True, text=True, timeout=seconds_here(DEADLINE), check=False
    )
    assert done.returncode == 2
    assert "--grpc" in done.stderr


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
    with start(*arguments) as process:
        _, errors = process.communicate(timeout=seconds_here(DEADLINE))
        assert process.returncode == 2
        assert len(errors.strip().splitlines()) == 1
        assert "Traceback" not in errors


def test_taken_grpc_port_is_one_sentence_and_code_two():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = subprocess.run(
            [*COMMAND, "--grpc", address],
            capture_output=True,
            text=True,
            timeout=seconds_here(DEADLINE),
            check=False,
        )
    assert done.returncode == 2
    assert address in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_port_bandwidth_is_in_megabits_per_second():
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as host,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as spare,
    ):
        for sock in (host, spare):
            sock.bind(("127.0.0.1", 0))
        host.settimeout(seconds_here(DEADLINE))
        there, here = spare.getsockname()[1], host.getsockname()[1]
        spare.close()
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
