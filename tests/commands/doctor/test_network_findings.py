# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn doctor --network`: a worker's machine, the switch's, and switches in all states."""

import subprocess
from dataclasses import replace

import pytest

from switchgnn.base.described import interface_named
from switchgnn.commands.doctor import examine_network
from switchgnn.controller import P4RuntimeClient
from switchgnn.controller.p4runtime.client import program_cookie
from switchgnn.p4src import load_strawman
from switchgnn.topologies import Target
from tests.network.usual import described_star
from tests.support.fabrics import bed
from tests.support.markers import needs_root
from tests.support.networks import own_network


def by_name(network):
    return {finding.name: finding for finding in examine_network(network)}


@pytest.mark.whole
def test_a_switch_says_what_it_serves(tmp_path):
    with bed(Target.EMBEDDED, 2, tmp_path) as made:
        network = described_star(2, grpc=made.address)
        assert by_name(network)["switch s0"].found == "no program yet; installing brings it"
        with P4RuntimeClient(made.address) as client:
            program = load_strawman()
            client.set_pipeline(program, program_cookie(program))
        assert "another program" in by_name(network)["switch s0"].found
        report = made.install()
        found = by_name(network)["switch s0"].found
        assert (
            found == f"plan {made.plan.manifest.digest[:8]} for 2 workers, session {report.session}"
        )


def test_a_switch_that_is_not_there(tmp_path):
    found = by_name(described_star(2, grpc=f"unix:{tmp_path}/nobody"))["switch s0"]
    assert found.found is None
    assert found.required
    assert found.mend.startswith("start it: switchgnn switch")


@needs_root
def test_the_machine_of_a_worker(tmp_path):
    with own_network() as other:
        other.add_cable("sgdoc0", "sgdoc1")
        here = interface_named("sgdoc0")
        star = described_star(2, grpc=f"unix:{tmp_path}/nobody")
        mine = replace(star.workers[1], interface="sgdoc0", mac=here.mac, gloo="sgnone")
        network = replace(star, workers=(star.workers[0], mine))
        found = by_name(network)
        assert not any(name.startswith("worker 0") for name in found)
        assert found["worker 1: sgdoc0"].found == "MTU 1500"
        assert found["worker 1: sgnone"].found is None
        assert found["packet sockets"].found == "yes"
        for place, there in (("127.0.0.1:9561", "there"), ("192.0.2.77:9561", None)):
            told = replace(network, workers=(star.workers[0], replace(mine, metrics=place)))
            assert by_name(told)[f"worker 1: {place}"].found == there
        offloads = found["worker 1: sgdoc0, offloads"]
        if offloads.mend.startswith("ethtool"):
            assert offloads.found is None
            # What it says mends it.
            subprocess.run(offloads.mend.split(), check=True, capture_output=True)
            assert by_name(network)["worker 1: sgdoc0, offloads"].found == "off"
        subprocess.run(["ip", "link", "set", "sgdoc0", "mtu", "100"], check=True)
        small = by_name(network)["worker 1: sgdoc0, MTU"]
        assert small.found is None
        subprocess.run(small.mend.split(), check=True)
        assert "worker 1: sgdoc0, MTU" not in by_name(network)
        subprocess.run(["ip", "link", "set", "sgdoc0", "down"], check=True)
        down = by_name(network)["worker 1: sgdoc0"]
        assert (down.found, down.mend) == (None, "ip link set sgdoc0 up")


@needs_root
def test_the_machine_of_the_switch(tmp_path):
    with own_network() as other:
        other.add_cable("sgdoc2", "sgdoc3")
        ports = {"1": "eth:sgdoc2", "2": "udp:127.0.0.1:1:127.0.0.1:2"}
        found = by_name(described_star(2, grpc=f"unix:{tmp_path}/nobody", ports=ports))
    assert found["port sgdoc2"].found == "MTU 1500"
    assert not any(name.startswith("worker") for name in found)
