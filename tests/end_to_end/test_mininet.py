"""Mininet: a plan beside ping and TCP, shaped links, and what hosts must not answer."""

import socket
import subprocess

import pytest
from scapy.layers.l2 import ARP, Ether

from switchgnn.base.network import star_network
from switchgnn.controller import Outcome, P4RuntimeClient, read_counters
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.header import Header, Kind
from switchgnn.p4src import load_program
from switchgnn.planner import build_plan, load_graph
from switchgnn.topologies import FABRICS, FabricKind, Target, Topology, socket_address
from switchgnn.topologies.mininet_fabric import settled_default
from tests.controller.plans import install
from tests.end_to_end.conftest import LEAF_SPINE, for_test_all, run_json
from tests.support.commands import forkserver
from tests.support.markers import MININET_COMBINATIONS, full, needs_ping, some_of
from tests.support.networks import in_network
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

SHAPED = ("--graph", "karate", "--bandwidth", "20", "--features", "64", "--rounds", "20")


def run_beside_tcp(combination, *options):
    report = run_json(combination, "--background", "1", "--window", "64", *options)
    assert report["background_bytes"] > 0
    assert sum(report["port_queue"]) > 0
    assert report["wires"] == "sockets"  # the interfaces count the TCP flows as well
    return report


@pytest.mark.parametrize(
    "control",
    [(), *(pytest.param(("--congestion", rule), marks=full) for rule in ("paper", "none"))],
    ids=["heeding", "halving", "blind"],
)
def test_sums_are_exact_beside_tcp(mininet_combination, control):
    with settled_default() as before:
        pass
    run_beside_tcp(mininet_combination, *SHAPED, *control)
    with settled_default() as after:
        assert after == before


@pytest.mark.parametrize(
    ("mininet_combination", "faults"),
    some_of(
        lambda where, faults: where != faults, MININET_COMBINATIONS, ["", "cables.loss=0.02,seed=3"]
    ),
)
def test_sums_are_exact_beside_tcp_over_leaves_and_spines(mininet_combination, faults):
    """With faults the threshold is one that no queue reaches, and nothing is marked."""
    topology = (*LEAF_SPINE, "--spines", "2", "--faults", faults)
    threshold = ("--ecn-threshold", "100000") if faults else ()
    report = run_beside_tcp(mininet_combination, *SHAPED[:-1], "5", *topology, *threshold)
    assert report["leaf_spine"]["bytes_up"] is None
    assert not threshold or report["marked"] == 0
    assert bool(sum(report["leaf_spine"]["faults_injected"].values())) is bool(faults)


@pytest.mark.parametrize(
    "mininet_combination", [MININET_COMBINATIONS[0], for_test_all(MININET_COMBINATIONS[1])]
)
def test_marks_slow_the_workers_down(mininet_combination):
    # So slow that hosts on a busy machine are still faster.
    shaped = ("--graph", "digits", "--bandwidth", "1", "--rounds", "1")
    report = run_json(mininet_combination, *shaped, "--ecn-threshold", "0")
    assert report["marked"] > 0
    assert report["repairs"]["notices"] > 0
    assert all(worker["counters"]["noticed"] for worker in report["per_worker"])


ARP_BYTES = 42


@pytest.fixture(scope="module", params=MININET_COMBINATIONS)
def running(request, tmp_path_factory):
    """A star of three workers with a plan on its switch."""
    folder = tmp_path_factory.mktemp("star")
    star = Topology(star_network(3).alone, Target(request.param[0]), (socket_address(folder),))
    program = load_program()
    plan = build_plan(load_graph("karate"), workers=3, slots=64, program=program.digest)
    with FABRICS[FabricKind.MININET](star, folder, forkserver=forkserver()) as fabric:
        parts = (plan.manifest, plan.switch)
        install(parts, list(star.grpc_addresses), star.network_of(0), program=program)
        yield fabric


def ping(running, worker, ip, *options):
    enter = ("nsenter", f"--net={running.worker_namespace(worker)}")
    command = [*enter, "ping", "-c", "1", "-W", "5", *options, ip]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=seconds_here(60)
    ).stdout


@needs_ping
def test_every_host_reaches_every_other(running):
    assert "3 received" in ping(running, 0, "10.0.0.2", "-c", "3", "-i", "0.2")
    with P4RuntimeClient(running.topology.grpc_addresses[0]) as client:
        outcomes = read_counters(client).outcomes
    assert outcomes[Outcome.FORWARDED] >= 6
    assert outcomes[Outcome.FLOODED] >= 1  # the first ARP request
    assert outcomes[Outcome.MALFORMED] == 0
    stations = [each.station for each in running.topology.network_of(0).neighbours]
    for worker, station in enumerate(stations):
        for ip in (each.ip for each in stations if each is not station):
            ping(running, worker, ip)


def test_the_root_namespace_has_no_address_among_the_workers(running):
    """It holds the switch's ends of the links, and must not answer for a worker."""
    shown = subprocess.run(["ip", "-4", "-o", "addr"], capture_output=True, text=True, check=True)
    assert " 10.0." not in shown.stdout


def test_the_kernel_does_not_answer_for_a_worker_that_has_left(running):
    """A packet that comes late leaves no bytes on the wire."""
    network = running.topology.network_of(0)
    worker = network.neighbours[2].station
    late = bytes(Addresses(network.switch, worker).frame(Header(kind=Kind.SUM).pack(bytes(128))))
    # Answered after whatever the late packet causes, so its answer tells when to look.
    marker = Ether(src="02:00:00:00:77:77", dst="ff:ff:ff:ff:ff:ff") / ARP(
        hwsrc="02:00:00:00:77:77", psrc="10.0.7.7", pdst=worker.ip
    )
    before = running.wire_bytes()[2].up
    with (
        in_network(running.switch_namespace(0)),
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire,
    ):
        wire.bind((running._switch_side[2], 0))
        wire.send(late)
        wire.send(bytes(marker))
        wait_until(lambda: running.wire_bytes()[2].up > before)
    assert running.wire_bytes()[2].up == before + ARP_BYTES
