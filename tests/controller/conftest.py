# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A fake switch for unit tests, and real ones for integration tests."""

import importlib.util
import os
import shutil
import socket
import subprocess
import sys

import pytest

from switchgnn.controller import P4RuntimeClient, star_network
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.p4src import load_program
from tests.controller.fake_server import FakeSwitch


@pytest.fixture(scope="session")
def program():
    return load_program()


@pytest.fixture(scope="session")
def layout(program):
    return Layout.from_text(program.p4info)


@pytest.fixture(scope="session")
def network():
    return star_network(4)


@pytest.fixture
def fake():
    switch = FakeSwitch().start()
    yield switch
    switch.stop()


@pytest.fixture
def other_fake():
    switch = FakeSwitch().start()
    yield switch
    switch.stop()


@pytest.fixture
def client(fake):
    with P4RuntimeClient(fake.address, deadline=3) as client:
        yield client


def free_port(kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def bmv2_command(grpc_port):
    return [
        *("simple_switch_grpc", "--no-p4", "--device-id", "0", "--"),
        *("--grpc-server-addr", f"127.0.0.1:{grpc_port}", "--cpu-port", "510"),
    ]


def embedded_command(grpc_port):
    here, there = free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_DGRAM)
    return [
        *(sys.executable, "-m", "switchgnn.softswitch", "--device-id", "0"),
        *("--grpc", f"127.0.0.1:{grpc_port}"),
        *("--port", f"1=udp:127.0.0.1:{here}:127.0.0.1:{there}"),
    ]


class RealSwitch:
    """A switch in a process of its own, without anything attached to its ports."""

    def __init__(self, command):
        self._port = free_port()
        self._command = command(self._port)
        self._process = None

    @property
    def address(self):
        return f"127.0.0.1:{self._port}"

    def start(self):
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        # It is ready when it accepts a controller.
        with P4RuntimeClient(self.address, deadline=20):
            pass

    def stop(self):
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self):
        self.stop()
        self.start()


def embedded_missing():
    if importlib.util.find_spec("switchgnn.softswitch.__main__") is None:
        return "the embedded switch is not in this tree"
    return None


def bmv2_missing():
    if shutil.which("simple_switch_grpc") is None:
        return "simple_switch_grpc is not on the PATH"
    return None if os.geteuid() == 0 else "simple_switch_grpc needs root"


@pytest.fixture(scope="session", params=["embedded", "bmv2"])
def target(request):
    missing, command = {
        "embedded": (embedded_missing, embedded_command),
        "bmv2": (bmv2_missing, bmv2_command),
    }[request.param]
    if reason := missing():
        pytest.skip(reason)
    switch = RealSwitch(command)
    try:
        switch.start()
        yield switch
    finally:
        switch.stop()
