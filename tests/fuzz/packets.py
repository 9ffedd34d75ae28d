# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Frames from the Scapy layers, one of each sort, and their fields as bytes.

Scapy takes a millisecond per frame, so it builds the templates only; what varies is
written into copies of them, and the CRC is made anew.
"""

from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, LLC, Dot1Q, Ether
from scapy.packet import Packet, Raw

from switchgnn.capture.layers import BarrierLayer as Barrier
from switchgnn.capture.layers import Fragment, SwitchGNN
from switchgnn.host.wire.header import PROTOCOL, Kind
from switchgnn.lab.virtual.network import LANE_KINDS

BROADCAST = "ff:ff:ff:ff:ff:ff"
# Addresses that no kernel on the path owns.
STRANGER_IP = "10.9.1.1"
OTHER_STRANGER_IP = "10.9.2.2"

PING_MARK = b"that was mine"
# For experiments within a network (IEEE 802).
PING_ETHERTYPE = 0x88B5


def kind_template(kind: int, *, source: str, target: str, plan: int) -> bytes:
    """A packet of a kind, sound but for its numbers; unknown kinds have no body."""
    layers = Ether(src=source, dst=target) / IP(
        src=STRANGER_IP, dst=OTHER_STRANGER_IP, proto=PROTOCOL
    )
    layers = layers / SwitchGNN(Kind=kind)
    if kind in LANE_KINDS:
        layers = layers / Fragment()
    elif kind in (Kind.DONE, Kind.ADVANCE):
        layers = layers / Barrier(plan=plan)
    return bytes(layers)


def ordinary_packets(source: str, target: str) -> list[bytes]:
    """Packets of other programs, and truncated ones."""
    ether = Ether(src=source, dst=target)
    ip = IP(src=STRANGER_IP, dst=OTHER_STRANGER_IP)
    packet = SwitchGNN(Kind=int(Kind.SUM), Count=1) / Fragment()
    frames: list[Packet] = [
        ether / ARP(psrc=STRANGER_IP, pdst=OTHER_STRANGER_IP),
        ether / ip / TCP(dport=80, flags="S"),
        ether / ip / UDP(sport=7, dport=7) / Raw(bytes(range(64))),
        ether / ip / ICMP() / Raw(b"ping"),
        ether / IPv6(src="fe80::1", dst="fe80::2") / UDP(dport=5353),
        ether / Dot1Q(vlan=7) / ip / UDP(),
        ether / Dot1Q(vlan=7) / Dot1Q(vlan=8) / ARP(),
        Ether(src=source, dst=target, type=0x88CC) / Raw(bytes(40)),
        ether / IP(src=STRANGER_IP, dst=OTHER_STRANGER_IP, frag=100, proto=17) / Raw(bytes(64)),
        ether
        / IP(src=STRANGER_IP, dst=OTHER_STRANGER_IP, proto=PROTOCOL, options=[IPOption(b"\x01")])
        / packet,
        ether / IP(src=STRANGER_IP, dst=OTHER_STRANGER_IP, proto=254) / packet,
    ]
    return [*(bytes(frame) for frame in frames), bytes(ether)[:12] + b"\0\4" + bytes(LLC()) + b"x"]


def ping(source: str, number: int) -> bytes:
    """An ordinary frame of a station to itself, which returns when the switch has forwarded it."""
    mac = bytes.fromhex(source.replace(":", ""))
    return mac + mac + PING_ETHERTYPE.to_bytes(2, "big") + PING_MARK + number.to_bytes(8, "big")
