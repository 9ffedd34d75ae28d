"""The switch as a process: readiness, undecodable requests, signals, and what it waits for."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from switchgnn.softswitch import Backend, QueueSettings, SoftSwitch, SoftSwitchError
from switchgnn.softswitch.base.ports import Port
from switchgnn.softswitch.daemon import STOP_SIGNALS, forget_ready, ready, stop_signals
from switchgnn.softswitch.native.build import NoCompilerError
from tests.softswitch.harness import DEADLINE, Controller
from tests.support.markers import whole
from tests.support.speed import seconds_here

ADDRESS = "127.0.0.1:9559"


def test_the_ready_file(tmp_path):
    path = tmp_path / "ready"
    path.write_text("an earlier switch was killed")
    forget_ready(path)
    assert not path.exists()
    with ready(ADDRESS, path):
        assert path.read_text() == f"{ADDRESS}\n"
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written(tmp_path):
    for wrong in (tmp_path, tmp_path / "a" / "b"):
        with pytest.raises(SoftSwitchError, match="--ready-file"):
            forget_ready(wrong)


def test_a_full_socket_is_waited_for_and_other_errors_lose_the_frame():
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with near, far:
        near.setblocking(False)
        port = Port(near, 100)
        begin, sent = time.monotonic(), 0
        while port.send(b"x"):
            sent += 1
        assert time.monotonic() - begin > 0.9  # the time that it waits for room
        reader = threading.Thread(target=lambda: [far.recv(100) for _ in range(sent)])
        reader.start()
        assert port.send(b"x")
        reader.join()
        far.close()
        assert not port.send(b"x")


@pytest.fixture
def signals():
    """Restore the handlers of a switch in this process."""
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def start():
    command = [sys.executable, "-m", "switchgnn.softswitch", "--grpc", "127.0.0.1:0"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_signal_before_the_wait_ends_it(signals, number):
    with stop_signals() as wait:
        # More than fit do no harm.
        for _ in range(2000):
            signal.raise_signal(number)
        assert wait() == number


BAD = b"\xff\xff\xff"
METHODS = {
    "Capabilities": "unary_unary",
    "SetForwardingPipelineConfig": "unary_unary",
    "GetForwardingPipelineConfig": "unary_unary",
    "Write": "unary_unary",
    "Read": "unary_stream",
    "StreamChannel": "stream_stream",
}
REPEATS, MOST_GROWTH = 2000, 6 << 10  # KiB; deserializers of gRPC took 38 MiB for as many


def resident(process):
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1])


def refusal(channel, method):
    kind = METHODS[method]
    call = getattr(channel, kind)(f"/p4.v1.P4Runtime/{method}")
    with pytest.raises(grpc.RpcError) as caught:
        request = iter([BAD]) if kind.startswith("stream") else BAD
        list(call(request, timeout=seconds_here(DEADLINE)))
    return caught.value


@whole
@pytest.mark.parametrize("method", METHODS)
def test_undecodable_requests_are_refused_and_forgotten(method):
    with start() as process:
        address = re.search(r"127\.0\.0\.1:\d+", process.stdout.readline())[0]
        with grpc.insecure_channel(address) as channel:
            # What the first ones take stays.
            for _ in range(REPEATS // 10):
                assert refusal(channel, method).code() is grpc.StatusCode.INVALID_ARGUMENT
            assert "is not a p4.v1." in refusal(channel, method).details()
            before = resident(process)
            for _ in range(REPEATS):
                refusal(channel, method)
            assert resident(process) < before + MOST_GROWTH
        with Controller(address, "fates") as controller:
            assert controller.arbitrate() == 0
            controller.set_config()
        process.terminate()
        assert process.wait(seconds_here(DEADLINE)) == 0
        assert process.stderr.read().startswith(f"Warning: anybody who can connect to {address}")


@whole
def test_a_call_that_does_not_end_delays_no_signal(tmp_path, monkeypatch):
    compiler, fifo = tmp_path / "compiler", tmp_path / "fifo"
    os.mkfifo(fifo)
    compiler.write_text(f'#!/bin/sh\n[ "$1" = --version ] || read -r _ < "{fifo}"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with start() as process:
        address = re.search(r"127\.0\.0\.1:\d+", process.stdout.readline())[0]
        with Controller(address, "fates") as controller, ThreadPoolExecutor(1) as pool:
            assert controller.arbitrate() == 0
            call = pool.submit(controller.set_config)
            with fifo.open("w"):  # the compiler has begun
                process.terminate()
                assert process.wait(seconds_here(DEADLINE)) == 0
            assert isinstance(call.exception(seconds_here(DEADLINE)), grpc.RpcError)


def test_limits_without_a_compiler_are_refused():
    with pytest.raises(NoCompilerError, match="Rates and bandwidths"):
        SoftSwitch(grpc=None, queues=QueueSettings(rate=1.0), backend=Backend.PYTHON)
