# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

import pytest

from switchgnn.base.described import (
    Interface,
    SwitchTarget,
    interface_named,
    interfaces,
    network_text,
    networks_of,
    read_network,
)
from switchgnn.base.network import NetworkError, star_network
from switchgnn.commands.network import draft_star, place_worker
from tests.support.markers import needs_root
from tests.support.networks import in_network, own_network

PORTS = [
    Interface(f"enp{number}s0", f"52:54:00:00:00:0{number}", "", 1500, True) for number in (1, 2)
]
HERE = Interface("eth1", "52:54:00:00:01:00", "192.0.2.7", 1500, True)


def draft():
    return draft_star(PORTS, grpc="192.0.2.1:9559", target=SwitchTarget.BMV2)


def test_a_draft_is_a_network(tmp_path):
    network = draft()
    assert networks_of(network) == (star_network(2),)
    assert network.switches[0].ports == {"1": "eth:enp1s0", "2": "eth:enp2s0"}
    file = tmp_path / "network.toml"
    file.write_text(network_text(network))
    assert read_network(file) == network


def test_a_worker_has_the_addresses_of_its_interface():
    network = place_worker(draft(), 1, HERE, gloo="eth0")
    placed = network.workers[1]
    assert (placed.interface, placed.mac, placed.ip) == ("eth1", HERE.mac, HERE.ip)
    assert (placed.switch, placed.port, placed.gloo) == ("s0", 2, "eth0")
    assert network.workers[0] == draft().workers[0]
    without = place_worker(draft(), 1, replace(HERE, ip=""))
    assert without.workers[1].ip == draft().workers[1].ip


def test_no_such_worker_or_interface():
    with pytest.raises(NetworkError, match="no worker 2: the network has the workers 0 to 1"):
        place_worker(draft(), 2, HERE)
    with pytest.raises(NetworkError, match="no Ethernet interface that is up"):
        draft_star([], grpc="x:1", target=SwitchTarget.BMV2)
    with pytest.raises(NetworkError, match="no Ethernet interface 'nobody'"):
        interface_named("nobody")


def test_loopback_is_no_interface_to_a_worker():
    assert "lo" not in {interface.name for interface in interfaces()}


@needs_root
def test_interfaces_are_those_of_the_namespace(tmp_path):
    with own_network() as network:
        network.add_cable("sgdraft0", "sgdraft1")
        here = interface_named("sgdraft0")
        with in_network(network.path):
            there = interfaces()
    assert [interface.name for interface in there] == ["sgdraft1"]
    assert there[0].up
    assert there[0].mtu == here.mtu == 1500
    assert there[0].mac != here.mac
