# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""BMv2s that were built with Thrift, as by default, run side by side: each has its own port.

The real one is there in tests/topologies/test_targets.py, where it is on the PATH.
"""

import sys
from contextlib import ExitStack

import pytest

from switchgnn.topologies import Target, socket_address, targets
from switchgnn.topologies.errors import FabricError
from switchgnn.topologies.free_ports import free_tcp_port
from switchgnn.topologies.targets import switch_child, wait_until_serving

# It takes the usual port unless it is told another, and ends if it cannot have it.
FAKE = """#!{python}
import socket, sys
words = sys.argv[1:]
if "--help" in words:
    sys.exit("  --thrift-port arg   TCP port on which to run the Thrift runtime server")
def option(name, usual=None):
    return words[words.index(name) + 1] if name in words else usual
thrift = socket.socket()
try:
    thrift.bind(("127.0.0.1", int(option("--thrift-port", {usual}))))
except OSError:
    sys.exit("Thrift returned an exception when trying to bind to its port.")
thrift.listen()
grpc = socket.socket(socket.AF_UNIX)
grpc.bind(option("--grpc-server-addr").removeprefix("unix:"))
grpc.listen()
while True:
    grpc.accept()[0].close()
"""


@pytest.fixture
def bmv2(tmp_path, monkeypatch):
    """A program of BMv2's name on the PATH, whose usual port is a free one instead of 9090."""
    program = tmp_path / "bin" / targets.BMV2_PROGRAM
    program.parent.mkdir()
    program.write_text(FAKE.format(python=sys.executable, usual=free_tcp_port()))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    # What is known of another program of that name.
    targets._has_thrift.cache_clear()
    yield program
    targets._has_thrift.cache_clear()


def start_two(tmp_path):
    with ExitStack() as stack:
        for number in range(2):
            address = socket_address(tmp_path, f"switch-{number}")
            log = tmp_path / f"{number}.log"
            child = switch_child(Target.BMV2, ports={}, grpc_address=address, device_id=0, log=log)
            stack.enter_context(child)
            wait_until_serving(child, address)


@pytest.mark.usefixtures("bmv2")
def test_two_run_side_by_side(tmp_path):
    start_two(tmp_path)


def test_two_with_the_usual_port_would_not(bmv2, tmp_path, monkeypatch):
    monkeypatch.setattr(targets, "_thrift_options", list)
    with pytest.raises(FabricError, match="stopped with code 1: Thrift returned an exception"):
        start_two(tmp_path)
