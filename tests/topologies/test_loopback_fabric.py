# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What is written down of a running site is the network that it is, with its bandwidth."""

import pytest

from switchgnn.base.described import network_text, networks_of, read_network
from switchgnn.base.network import leaf_spine_networks, star_network
from switchgnn.host.wire.link import LimitedUdpLink, open_link
from switchgnn.topologies import LeafSpineSite, Star, Target
from switchgnn.topologies.loopback_fabric import LoopbackFabric
from switchgnn.topologies.targets import switch_command


def star():
    network = star_network(3)
    return Star(network, Target.EMBEDDED, "unix:/nowhere/switch.sock"), (network,)


def leaf_spine():
    networks = leaf_spine_networks((0, 0, 1), 2)
    addresses = tuple(f"unix:/nowhere/switch-{number}.sock" for number in range(4))
    return LeafSpineSite(networks, Target.EMBEDDED, addresses), networks.switches


@pytest.mark.parametrize("made", [star, leaf_spine])
def test_the_file_of_a_site_has_its_switches_workers_and_cables(made, tmp_path):
    site, networks = made()
    fabric = LoopbackFabric(site, tmp_path)
    fabric._links()  # what `start` chooses; nothing needs to run
    path = tmp_path / "network.toml"
    path.write_text(network_text(fabric.describe()))
    read = read_network(path)
    for found, network in zip(networks_of(read), networks, strict=True):
        assert found.switch == network.switch
        assert found.neighbours == network.neighbours
        assert {each.station for each in found.beyond} == {
            each.station for each in network.beyond
        }  # fmt: skip
    assert [each.grpc for each in read.in_order] == [each.grpc_address for each in site.switches]
    assert [each.opens for each in read.workers] == [fabric.worker_link(w) for w in range(3)]


def test_both_ends_of_a_link_have_its_bandwidth(tmp_path):
    site = Star(star_network(2), Target.EMBEDDED, "unix:/nowhere/switch.sock", bandwidth=2.5)
    fabric = LoopbackFabric(site, tmp_path)
    fabric._links()
    with open_link(fabric.worker_link(1)) as link:
        assert isinstance(link, LimitedUdpLink)
        assert link._bucket._rate == 2.5e6 / 8
    words = switch_command(
        site.target, ports={}, grpc_address=site.grpc_address, device_id=0, bandwidth=2.5
    )
    assert words[words.index("--port-bandwidth") + 1] == "2.5"
