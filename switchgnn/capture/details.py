# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Every field of a packet, as Scapy shows it.

Importing this module imports Scapy, which is GPL-2.0; see the README.
"""

from scapy.layers.inet import IP
from scapy.layers.l2 import Ether

from switchgnn.capture.packet import Packet
from switchgnn.host.wire.header import ETHERNET_BYTES, HEADER_AT
from switchgnn.host.wire.layers import BetweenHosts


def details_of(packet: Packet) -> str:
    """Return what Scapy shows of a packet."""
    frame = packet.captured.frame
    layers = Ether(frame)
    if packet.direct and IP in layers and packet.fields is not None:
        layers[IP].remove_payload()
        layers[IP].add_payload(BetweenHosts(frame[HEADER_AT : ETHERNET_BYTES + layers[IP].len]))
    return str(layers.show(dump=True)).rstrip()
