# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A fake switch for unit tests, and real ones for integration tests."""

import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from switchgnn.controller import P4RuntimeClient, star_network
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.p4src import load_program
from switchgnn.topologies.free_ports import free_udp_addresses
from switchgnn.topologies.rpc_address import socket_address
from switchgnn.topologies.targets import Target, switch_command
from tests.controller.fake_server import FakeSwitch
from tests.support.speed import seconds_here


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
    with P4RuntimeClient(fake.address, deadline=seconds_here(3)) as client:
        yield client


def bmv2_command(address):
    command = switch_command(Target.BMV2, ports={}, grpc_address=address, device_id=0)
    # In a network namespace of its own: its Thrift server would take all interfaces.
    return ["unshare", "--net", *command]


def embedded_command(address):
    here, there = free_udp_addresses(2)
    ports = {1: f"udp:{here}:{there}"}
    return switch_command(Target.EMBEDDED, ports=ports, grpc_address=address, device_id=0)


class RealSwitch:
    """A switch in a process of its own, without anything attached to its ports."""

    def __init__(self, command):
        self._folder = tempfile.TemporaryDirectory()
        self.address = socket_address(Path(self._folder.name))
        self._command = command(self.address)
        self._process = None

    def start(self):
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        # It is ready when it accepts a controller.
        with P4RuntimeClient(self.address, deadline=seconds_here(20)):
            pass

    def stop(self):
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self):
        self.stop()
        self.start()

    def close(self):
        self.stop()
        self._folder.cleanup()


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
        switch.close()
