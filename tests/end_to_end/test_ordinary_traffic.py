# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The switch forwards ping and TCP between the hosts while a plan is installed."""

import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest
from scapy.layers.inet import ICMP
from scapy.layers.l2 import ARP, Ether

from switchgnn.base.network import star_network
from switchgnn.controller import install, read_counters
from switchgnn.controller.controls.outcome import Outcome
from switchgnn.controller.p4runtime.client import P4RuntimeClient
from switchgnn.p4src import load_program
from switchgnn.planner.build import build_plan
from switchgnn.planner.graphs.load import load_graph
from switchgnn.topologies import FabricKind, Star, Target, build_fabric, socket_address
from tests.support.commands import nursery
from tests.support.markers import needs_ping
from tests.support.networks import in_network
from tests.support.speed import seconds_here

ETH_P_ALL = 3
IS_AT = 2
ECHO = 0  # an echo reply

SERVER = """
import socket
server = socket.create_server(("0.0.0.0", 5001))
print("ready", flush=True)
peer, _ = server.accept()
total = 0
while data := peer.recv(65536):
    total += len(data)
print(total, flush=True)
"""
CLIENT = """
import socket
with socket.create_connection(("10.0.0.2", 5001)) as client:
    client.sendall(bytes(300_000))
"""


@pytest.fixture
def running(mininet_combination, tmp_path):
    target, _ = mininet_combination
    star = Star(star_network(3), Target(target), socket_address(tmp_path))
    program = load_program()
    plan = build_plan(load_graph("karate"), workers=3, slots=64, program=program.digest)
    with build_fabric(FabricKind.MININET, star, tmp_path, nursery=nursery()) as fabric:
        install((plan.manifest, plan.switch), [star.grpc_address], star.network, program=program)
        yield fabric


@needs_ping
def test_ping(running):
    command = running.worker_command(0, ["ping", "-c", "3", "-i", "0.2", "-W", "5", "10.0.0.2"])
    result = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=seconds_here(60)
    )
    assert "3 received" in result.stdout, result.stdout
    with P4RuntimeClient(running.star.grpc_address) as client:
        outcomes = read_counters(client).outcomes
    assert outcomes[Outcome.FORWARDED] >= 6
    assert outcomes[Outcome.FLOODED] >= 1  # the first ARP request
    assert outcomes[Outcome.MALFORMED] == 0


@needs_ping
def test_every_host_reaches_every_other(running):
    stations = [each.station for each in running.star.network.neighbours]
    for worker, station in enumerate(stations):
        others = [each.ip for each in stations if each is not station]
        for ip in others:
            ping = running.worker_command(worker, ["ping", "-c", "1", "-W", "5", ip])
            assert (
                subprocess.run(
                    ping, capture_output=True, check=False, timeout=seconds_here(60)
                ).returncode
                == 0
            )


def test_tcp(running):
    with running.worker_child(1, [sys.executable, "-c", SERVER]) as server:
        assert server.stdout.readline() == "ready\n"
        client = running.worker_command(0, [sys.executable, "-c", CLIENT])
        subprocess.run(client, check=True, timeout=seconds_here(60))
        assert server.stdout.readline() == "300000\n"


def test_the_root_namespace_has_no_address_among_the_workers(running):
    """It holds the switch's ends of the links, and must not answer for a worker."""
    shown = subprocess.run(["ip", "-4", "-o", "addr"], capture_output=True, text=True, check=True)
    assert " 10.0." not in shown.stdout


@needs_ping
def test_only_the_worker_answers_for_its_address(running):
    """The kernel at the switch must not, even if it has the same address."""
    answers = []
    with (
        in_network(running.switch_namespace(0)),
        own_address("10.0.0.2"),
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire,
    ):
        wire.bind((running._switch_side[0], ETH_P_ALL))
        wire.settimeout(seconds_here())
        ping = running.worker_command(0, ["ping", "-c", "1", "-W", "5", "10.0.0.2"])
        subprocess.run(ping, check=True, capture_output=True, timeout=seconds_here(60))
        while not answers or answers[-1] != ECHO:
            frame = Ether(wire.recv(2048))
            if ARP in frame and frame[ARP].op == IS_AT:
                answers.append(frame[ARP].hwsrc)
            elif ICMP in frame and frame[ICMP].type == ECHO:
                answers.append(ECHO)
    assert answers == [running.star.network.neighbours[1].station.mac, ECHO]


@contextmanager
def own_address(ip):
    change = ["ip", "addr", "add", f"{ip}/32", "dev", "lo"]
    subprocess.run(change, check=True)
    try:
        yield
    finally:
        subprocess.run([*change[:2], "del", *change[3:]], check=True)
