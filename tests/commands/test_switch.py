"""`switchgnn switch` as a process."""

import os
import signal
import socket
from dataclasses import replace
from functools import partial

import pytest

from switchgnn.base.machine import python_program
from switchgnn.base.network import NetworkError
from switchgnn.base.network_file import Target, network_text
from switchgnn.commands.switch import ProgramError, as_described, find_program
from switchgnn.controller import P4RuntimeClient, program_cookie, read_counters
from switchgnn.p4src import load_program, load_strawman, load_tofino
from switchgnn.p4src.program import SWITCHGNN
from switchgnn.softswitch.daemon import SwitchOptions
from switchgnn.topologies.rpc_address import free_udp_addresses
from tests.network.usual import described_leaf_spine, described_star
from tests.planner.helpers import refusal_of
from tests.softswitch.harness import PROGRAMS
from tests.support.commands import started
from tests.support.markers import needs, needs_root
from tests.support.processes import run_program
from tests.support.speed import seconds_here


@pytest.mark.whole
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)], ids=["term", "int"]
)
def test_it_says_that_it_serves_and_ends_cleanly(tmp_path, number, code):
    ready, address = tmp_path / "ready", f"unix:{tmp_path}/switch.sock"
    words = ("switch", "--grpc", address, "--ready-file", ready)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(seconds_here(60))
        variables = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        with started(*words, log=tmp_path / "log", environment=variables) as child:
            assert manager.recv(1000).startswith(b"READY=1\n")
            # It listens before its program is compiled, and answers after that.
            assert any("serves P4Runtime" in line for line in child.stdout)
            assert ready.read_text() == f"{address}\n"
            with P4RuntimeClient(address, primary=False) as client:
                # The product's program is there already.
                assert read_counters(client).passes.passes == 0
            os.kill(child.pid, number)
            assert child.wait(seconds_here(60)) == code
        assert manager.recv(1000) == b"STOPPING=1"
    assert not ready.exists()
    assert child.log.read_text() == ("Interrupted.\n" if code else "")


def test_wrong_input_is_one_sentence(tmp_path, called):
    here, there = free_udp_addresses(2)
    twice = f"1=udp:{here}:{there}"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        wrong = ("127.0.0.1", "::", ":0", "localhost:http", f"127.0.0.1:{taken.getsockname()[1]}")
        for number, (word, *words) in enumerate(
            [
                ("no-such-if0", "--port", "1=eth:no-such-if0"),
                ("one=eth:lo", "--port", "one=eth:lo"),
                ("Port 1 is given twice", "--port", twice, "--port", twice),
                ("no.json", "--program", tmp_path / "no.json"),
                ("nowhere", "--ready-file", tmp_path / "nowhere" / "ready"),
                *((each, "--grpc", each) for each in wrong),
                ("99999", "--grpc", "127.0.0.1:99999"),
            ]
        ):
            code, shown, said = called("switch", "--grpc", f"unix:{tmp_path}/{number}.sock", *words)
            [line] = said.strip().splitlines()
            assert (code, line[:7], shown) == (2, "Error: ", "")
            assert word in line


@pytest.mark.whole
@needs_root
@needs("setpriv", "util-linux")
def test_without_the_right_to_packet_sockets(tmp_path):
    words = ("switch", "--grpc", f"unix:{tmp_path}/s.sock", "--port", "1=eth:lo")
    program = python_program("switchgnn.commands", *words)
    done = run_program(["setpriv", "--bounding-set=-net_raw", *program], seconds=60)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "CAP_NET_RAW" in done.stderr


PORTS = {"1": "eth:enp1s0", "2": "udp:127.0.0.1:1:127.0.0.1:2"}


@pytest.fixture
def file(tmp_path):
    def write(network, **changes):
        changes = {"ports": PORTS, **changes}
        switches = [replace(each, **changes) for each in network.switches]
        path = tmp_path / "network.toml"
        path.write_text(network_text(replace(network, switches=tuple(switches))))
        return path

    return write


def test_the_only_switch(file):
    path = file(described_star(2), grpc="unix:switch.sock", device_id=7)
    found = as_described(SwitchOptions(queue_depth=3), path, None)
    ports = ["1=eth:enp1s0", "2=udp:127.0.0.1:1:127.0.0.1:2"]
    assert found == SwitchOptions(grpc="unix:switch.sock", device_id=7, queue_depth=3, port=ports)


def test_one_of_several(file):
    path = file(described_leaf_spine((0, 1), 1))
    assert as_described(SwitchOptions(), path, "spine0").port
    with pytest.raises(NetworkError, match="several switches: --name is one of leaf0, leaf1, sp"):
        as_described(SwitchOptions(), path, None)
    with pytest.raises(NetworkError, match="has no switch spine1: --name is one of leaf0"):
        as_described(SwitchOptions(), path, "spine1")


@pytest.mark.parametrize(
    ("options", "changes", "sentence"),
    [
        (SwitchOptions(grpc="unix:a"), {}, "leave out --grpc and --port"),
        (SwitchOptions(port=["1=eth:a"]), {}, "leave out --grpc and --port"),
        (SwitchOptions(), {"target": Target.BMV2}, "switch s0 is a bmv2"),
        (SwitchOptions(), {"ports": {}}, "switch s0 has no ports"),
    ],
)
def test_what_cannot_be(file, options, changes, sentence):
    path = file(described_star(2), **changes)
    with pytest.raises(NetworkError, match=sentence):
        as_described(options, path, None)


@pytest.mark.parametrize(
    ("name", "load"),
    [("switchgnn", load_program), ("strawman", load_strawman), ("tofino", load_tofino)],
)
def test_those_of_the_product(name, load):
    found, program = find_program(name, None), load()
    assert found.p4_device_config == program.json
    assert found.cookie.cookie == program_cookie(program)
    assert found.p4info.tables


def test_none_until_a_controller_comes():
    assert find_program("none", None) is None


def test_one_of_ones_own(tmp_path):
    found = find_program(str(PROGRAMS / "tables.json"), None)
    assert found.p4_device_config == (PROGRAMS / "tables.json").read_bytes()
    assert found.p4info.tables
    assert not found.HasField("cookie")
    moved = tmp_path / "elsewhere.txt"
    moved.write_bytes((PROGRAMS / "tables.p4info.txtpb").read_bytes())
    assert find_program(str(PROGRAMS / "tables.json"), moved).p4info == found.p4info


refused = partial(refusal_of, ProgramError, find_program)


def test_what_is_not_there(tmp_path):
    assert "nowhere.json" in refused(str(tmp_path / "nowhere.json"), None)
    alone = tmp_path / "alone.json"
    alone.write_text("{}")
    assert "alone.p4info.txtpb" in refused(str(alone), None)
    # p4c's source is no program yet.
    assert "p4info" in refused(str(SWITCHGNN.main), None)
    # P4Info is for a file.
    assert "--p4info" in refused("switchgnn", PROGRAMS / "tables.p4info.txtpb")
