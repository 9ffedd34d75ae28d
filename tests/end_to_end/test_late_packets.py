# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A packet that comes after its worker has left leaves no bytes on the wire."""

import socket

from scapy.layers.l2 import ARP, Ether

from switchgnn.base.network import star_network
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.header import Header, Kind
from switchgnn.topologies import FabricKind, Star, Target, build_fabric, socket_address
from tests.support.commands import nursery
from tests.support.markers import needs_mininet
from tests.support.networks import in_network
from tests.support.waiting import wait_until

ARP_BYTES = 42


@needs_mininet
def test_the_kernel_does_not_answer_for_a_worker_that_has_left(tmp_path):
    network = star_network(2)
    star = Star(network, Target.EMBEDDED, socket_address(tmp_path))
    worker = network.neighbours[0].station
    from_switch = Addresses(network.switch, worker)
    late = bytes(from_switch.frame(Header(kind=Kind.SUM).pack(bytes(128))))
    # Answered after whatever the late packet causes, so its answer tells when to look.
    marker = Ether(src="02:00:00:00:77:77", dst="ff:ff:ff:ff:ff:ff") / ARP(
        hwsrc="02:00:00:00:77:77", psrc="10.0.7.7", pdst=worker.ip
    )
    with build_fabric(FabricKind.MININET, star, tmp_path, nursery=nursery()) as fabric:
        with (
            in_network(fabric.switch_namespace(0)),
            socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire,
        ):
            wire.bind((fabric._switch_side[0], 0))
            wire.send(late)
            wire.send(bytes(marker))
            wait_until(lambda: fabric.wire_bytes()[0].up)
        assert fabric.wire_bytes()[0].up == ARP_BYTES
