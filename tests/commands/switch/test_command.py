# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn switch` as a process."""

import os
import shutil
import signal
import socket
import subprocess
from contextlib import contextmanager

import pytest

from switchgnn.base.machine import python_program
from switchgnn.controller import P4RuntimeClient
from switchgnn.controller.counters import read_totals
from switchgnn.topologies.free_ports import free_udp_addresses
from tests.commands.switch.service import Service
from tests.softswitch.harness import PROGRAMS
from tests.support.commands import switchgnn
from tests.support.networks import own_network
from tests.support.speed import seconds_here

pytestmark = pytest.mark.whole
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
needs_setpriv = pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)], ids=["term", "int"]
)
def test_it_says_that_it_serves_and_ends_cleanly(tmp_path, number, code):
    ready = tmp_path / "ready"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(seconds_here(60))
        variables = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        with Service(tmp_path, "--ready-file", ready, variables=variables) as service:
            assert manager.recv(1000).startswith(b"READY=1\n")
            service.wait_until_serving()
            assert ready.read_text() == f"{service.address}\n"
            with P4RuntimeClient(service.address, primary=False) as client:
                # The product's program is there already.
                assert read_totals(client).passes.passes == 0
            assert service.end(number) == code
        assert manager.recv(1000) == b"STOPPING=1"
    assert not ready.exists()
    assert service.errors() == ""


def test_another_program(tmp_path):
    with Service(tmp_path, "--program", PROGRAMS / "tables.json") as service:
        service.wait_until_serving()
        with P4RuntimeClient(service.address, primary=False) as client:
            assert "hit_table" in client.get_layout().tables


def refused(*arguments, word):
    """Exit code 2 and one sentence with this word."""
    done = switchgnn("switch", *arguments)
    lines = done.stderr.strip().splitlines()
    assert done.returncode == 2, done.stderr
    assert len(lines) == 1, lines
    assert lines[0].startswith("Error: ")
    assert str(word) in lines[0]
    assert "Traceback" not in done.stderr
    assert "serves" not in done.stdout


def test_wrong_input_is_one_sentence(tmp_path):
    grpc = ("--grpc", f"unix:{tmp_path}/s.sock")
    here, there = free_udp_addresses(2)
    refused(*grpc, "--port", "1=eth:no-such-if0", word="no-such-if0")
    refused(*grpc, "--port", "one=eth:lo", word="one=eth:lo")
    twice = f"1=udp:{here}:{there}"
    refused(*grpc, "--port", twice, "--port", twice, word="Port 1 is given twice")
    refused(*grpc, "--program", tmp_path / "no.json", word="no.json")
    refused(*grpc, "--state", tmp_path / "nowhere" / "state", word="nowhere")
    refused(*grpc, "--ready-file", tmp_path / "nowhere" / "ready", word="nowhere")
    (tmp_path / "state").write_bytes(b"something else")
    (tmp_path / "state").chmod(0o600)
    refused(*grpc, "--state", tmp_path / "state", word="not a state file")
    for wrong in ("127.0.0.1", "::", "127.0.0.1:99999", ":0", "localhost:http"):
        refused("--grpc", wrong, word=wrong)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        refused("--grpc", address, word=address)


@contextmanager
def cable():
    """Two interfaces in a network of their own, both down."""
    with own_network() as network:
        run = ["nsenter", f"--net={network.path}"]
        made = ["ip", "link", "add", "sdown", "type", "veth", "peer", "name", "sother"]
        subprocess.run([*run, *made], check=True, capture_output=True)
        yield run


def in_network(run, *arguments):
    words = python_program("switchgnn.commands", "switch", *map(str, arguments))
    return subprocess.run(
        [*run, *words], capture_output=True, text=True, check=False, timeout=seconds_here(60)
    )


@needs_root
def test_an_interface_that_is_down(tmp_path):
    with cable() as run:
        done = in_network(run, "--grpc", f"unix:{tmp_path}/s.sock", "--port", "1=eth:sdown")
    assert done.returncode == 2
    assert done.stderr == (
        "Error: Port 1 cannot use interface 'sdown', which is down: ip link set sdown up.\n"
    )


@needs_root
@needs_setpriv
def test_without_the_right_to_packet_sockets(tmp_path):
    with cable() as run:
        bare = [*run, "setpriv", "--bounding-set=-net_raw"]
        done = in_network(bare, "--grpc", f"unix:{tmp_path}/s.sock", "--port", "1=eth:sdown")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "CAP_NET_RAW" in done.stderr
