# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Random and mutated frames for a world, from a seed.

Scapy takes a millisecond per frame, so it builds templates only: one packet of each sort. The
generators write what varies into copies of them, and compute the CRC.
"""

import random

from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, LLC, Dot1Q, Ether
from scapy.packet import Raw

from switchgnn.capture.layers import BarrierLayer as Barrier
from switchgnn.capture.layers import Fragment, SwitchGNN, WaitingLayer
from switchgnn.host.wire.header import BARRIER_KINDS, HEARTBEAT_KINDS, PROTOCOL, Kind
from tests.simulation import byzantine
from tests.simulation.network import EXTENSION_AT, LANE_KINDS, body_end, seal

IN_A_DATAGRAM = 60_000
# Addresses that no kernel on the path owns.
IPS = {"src": "10.9.1.1", "dst": "10.9.2.2"}
_BITS_AT = 2
_PING_MARK = b"an echo request"
# For experiments within a network (IEEE 802).
_PING_ETHERTYPE = 0x88B5


class Generator(byzantine.Generator):
    """Draws frames of a source for a target."""

    def __init__(self, world, seed, *, source, target, longest=IN_A_DATAGRAM):
        macs = [each.station.mac for each in world.network.neighbours]
        everybody = (*macs, target, "ff:ff:ff:ff:ff:ff", "02:00:00:00:77:77")
        plan = world.facts.plan_id
        super().__init__(
            world.facts,
            random.Random(seed),
            templates={
                kind: _kind_template(kind, source=source, target=target, plan=plan)
                for kind in range(16)
            },
            ordinary=[frame for mac in everybody for frame in _ordinary_packets(source, mac)],
            shortest=0,
            longest=longest,
        )

    def packet(self, kind=None):
        """Draw a sound packet; some have numbers of fewer bits, even where no body has them."""
        frame, draw = super().packet(kind), self.random
        if draw.random() < 0.4:
            frame[EXTENSION_AT] |= draw.randrange(1, 4) << _BITS_AT
            del frame[body_end(frame) :]
            seal(frame)
        return frame


def _kind_template(kind, *, source, target, plan):
    """A packet of a kind, sound but for its numbers; unknown kinds have no body."""
    layers = Ether(src=source, dst=target) / IP(**IPS, proto=PROTOCOL) / SwitchGNN(Kind=kind)
    if kind in LANE_KINDS:
        layers = layers / Fragment()
    elif kind in BARRIER_KINDS:
        layers = layers / Barrier(plan=plan)
        if kind in HEARTBEAT_KINDS:
            layers = layers / WaitingLayer()
    return bytes(layers)


def _ordinary_packets(source, target):
    """Packets of other programs, and packets in wrappings that a switch does not unpack."""
    ether, ip = Ether(src=source, dst=target), IP(**IPS)
    packet = SwitchGNN(Kind=int(Kind.SUM), Count=1) / Fragment()
    frames = [
        ether / ARP(psrc=IPS["src"], pdst=IPS["dst"]),
        ether / ip / TCP(dport=80, flags="S"),
        ether / ip / UDP(sport=7, dport=7) / Raw(bytes(range(64))),
        ether / ip / ICMP() / Raw(b"ping"),
        ether / IPv6(src="fe80::1", dst="fe80::2") / UDP(dport=5353),
        ether / Dot1Q(vlan=7) / ip / UDP(),
        ether / Dot1Q(vlan=7) / Dot1Q(vlan=8) / ARP(),
        Ether(src=source, dst=target, type=0x88CC) / Raw(bytes(40)),
        ether / IP(**IPS, frag=100, proto=17) / Raw(bytes(64)),
        ether / IP(**IPS, proto=PROTOCOL, options=[IPOption(b"\x01")]) / packet,
        ether / IP(**IPS, proto=254) / packet,
    ]
    return [*map(bytes, frames), bytes(ether)[:12] + b"\0\4" + bytes(LLC()) + b"x"]


def ping(source, number):
    """An ordinary frame of a station to itself, which returns when the switch has forwarded it."""
    mac = bytes.fromhex(source.replace(":", ""))
    return mac + mac + _PING_ETHERTYPE.to_bytes(2, "big") + _PING_MARK + number.to_bytes(8, "big")


def is_ping(frame):
    return _PING_MARK in bytes(frame[:64])
