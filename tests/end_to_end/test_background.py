# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Runs on shaped links beside TCP: exact sums, counted queues, nothing changed afterwards."""

import pytest

from switchgnn.base.network import star_network
from switchgnn.topologies import FabricKind, Star, Target, build_fabric, socket_address
from switchgnn.topologies.mininet_fabric import settled_default
from tests.end_to_end.conftest import run_json, switchgnn
from tests.support.kept_logs import take_kept_logs
from tests.support.markers import MININET_COMBINATIONS, full, needs_mininet, some_of
from tests.support.processes import is_alive
from tests.support.waiting import wait_until

SHAPED = ("--graph", "karate", "--bandwidth", "20", "--features", "64", "--rounds", "20")


@pytest.mark.parametrize(
    "control", ["--congestion-control", pytest.param("--no-congestion-control", marks=full)]
)
def test_sums_are_exact_beside_tcp(mininet_combination, control):
    with settled_default() as before:
        pass
    report = run_json(mininet_combination, *SHAPED, "--background", "1", "--window", "64", control)
    assert report["exact"]
    assert report["background_bytes"] > 0
    assert sum(report["port_queue"]) > 0
    assert report["wires"] == "sockets"  # the interfaces count the TCP flows as well
    with settled_default() as after:
        assert after == before


@pytest.mark.parametrize(
    ("mininet_combination", "faults"),
    some_of(
        lambda where, faults: where != faults, MININET_COMBINATIONS, ["", "cables.loss=0.02,seed=3"]
    ),
)
def test_sums_are_exact_beside_tcp_over_leaves_and_spines(mininet_combination, faults):
    """Flows go from each worker to the next, so half of them over a spine.

    With faults the threshold is one that no queue reaches, and nothing is marked.
    """
    topology = ("--topology", "leaf-spine", "--spines", "2", "--faults", faults)
    shaped = (*SHAPED[:-1], "5", "--background", "1", "--window", "64")
    threshold = ("--ecn-threshold", "100000") if faults else ()
    report = run_json(mininet_combination, *shaped, *topology, *threshold)
    assert report["exact"]
    assert report["background_bytes"] > 0
    assert sum(report["port_queue"]) > 0
    assert report["wires"] == "sockets"
    assert report["leaf_spine"]["bytes_up"] is None
    assert not threshold or report["marked"] == 0
    assert bool(sum(report["leaf_spine"]["faults_injected"].values())) is bool(faults)


def test_marks_slow_the_workers_down(mininet_combination):
    """With a threshold of 0 every frame is marked."""
    # So slow that hosts on a busy machine are still faster.
    shaped = ("--graph", "digits", "--bandwidth", "1", "--rounds", "1")
    report = run_json(mininet_combination, *shaped, "--ecn-threshold", "0")
    assert report["exact"]
    assert report["marked"] > 0
    assert report["repairs"]["notices"] > 0
    noticed = [worker["tally"]["noticed"] for worker in report["per_worker"]]
    assert all(noticed)


def test_loopback_has_no_room_for_tcp():
    result = switchgnn("run", "--fabric", "loopback", "--target", "embedded", "--background", "1")
    assert result.returncode == 2
    assert "take --fabric mininet" in result.stderr
    assert take_kept_logs()


def read(node):
    """The shell runs `cat`, which an interrupt ends."""
    node.sendCmd("cat")


def deaf(node):
    node.sendCmd("trap '' INT; cat")


def lost(node):
    """Mininet waits for a command that the terminal dropped before the shell read it."""
    node.waiting = True


@needs_mininet
@pytest.mark.parametrize("begin", [read, deaf, lost])
def test_a_network_ends_though_a_command_was_interrupted(begin, tmp_path):
    star = Star(star_network(2), Target.EMBEDDED, socket_address(tmp_path))
    fabric = build_fabric(FabricKind.MININET, star, tmp_path)
    with fabric:
        begin(fabric._hosts[0])
        # Each holds a network namespace, and the interfaces in it.
        shells = [host.pid for host in fabric._net.hosts]
    assert len(shells) == 3
    wait_until(lambda: not any(map(is_alive, shells)))


@needs_mininet
@pytest.mark.parametrize("shape", [(), ("--bandwidth", "100")])
def test_mininet_has_nothing_to_complain_of(shape):
    """Its warnings would reach a user who can do nothing about them."""
    where = ("--fabric", "mininet", "--target", "embedded")
    result = switchgnn("run", "--graph", "karate", *where, *shape)
    assert result.returncode == 0, result.stderr
    assert "***" not in result.stdout + result.stderr
