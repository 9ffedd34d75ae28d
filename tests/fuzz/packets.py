# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Frames from the Scapy layers, one of each sort, and their fields as bytes.

Scapy takes a millisecond per frame, so it builds the templates only; what varies is
written into copies of them, and the CRC is made anew.
"""

import zlib

from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, LLC, Dot1Q, Ether
from scapy.packet import Packet, Raw

from switchgnn.host.wire.header import BODY_AT, CHECKED_BYTES, HEADER_AT, PROTOCOL, Kind
from switchgnn.host.wire.layers import Barrier, Fragment, SwitchGNN

BROADCAST = "ff:ff:ff:ff:ff:ff"
# Addresses that no kernel on the way answers for.
STRANGER_IP = "10.9.1.1"
OTHER_STRANGER_IP = "10.9.2.2"

ETHERTYPE_AT = 12
VERSION_IHL_AT = 14
LENGTH_AT = 16
OFFSET_AT = 20
PROTOCOL_AT = 23
KIND_AT = HEADER_AT + 12
EXTENSION_AT = HEADER_AT + 13
FRAGMENT_AT = HEADER_AT + 14
ROUND_AT = HEADER_AT + 18
CHECKSUM_AT = HEADER_AT + CHECKED_BYTES

# Every header field by name: where it is, and its bytes.
FIELDS = {
    "src_id": (HEADER_AT, 4),
    "dst_id": (HEADER_AT + 4, 4),
    "block_id": (HEADER_AT + 8, 2),
    "count": (HEADER_AT + 10, 2),
    "flags_kind": (KIND_AT, 1),
    "version_level_echo": (EXTENSION_AT, 1),
    "fragment": (FRAGMENT_AT, 2),
    "group": (HEADER_AT + 16, 2),
    "round": (ROUND_AT, 4),
}
BODY_BYTES = {Kind.FEATURE: 128, Kind.SUM: 128, Kind.DONE: 28, Kind.ADVANCE: 28, Kind.WAITING: 44}
PING_MARK = b"that was mine"
# For experiments within a network (IEEE 802).
PING_ETHERTYPE = 0x88B5


def body_bytes(kind: int) -> int:
    return BODY_BYTES.get(kind, 0)


def kind_template(kind: int, *, source: str, target: str, plan: int) -> bytes:
    """A packet of a kind, sound but for its numbers; kinds that do not exist have no body."""
    layers = Ether(src=source, dst=target) / IP(
        src=STRANGER_IP, dst=OTHER_STRANGER_IP, proto=PROTOCOL
    )
    layers = layers / SwitchGNN(Kind=kind)
    if body_bytes(kind) == 128:
        layers = layers / Fragment()
    elif body_bytes(kind) == 28:
        layers = layers / Barrier(plan=plan)
    return bytes(layers)


def ordinary_packets(source: str, target: str) -> list[bytes]:
    """What other programs send: not SwitchGNN's, or not any more."""
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


def write_header(frame: bytearray, **values: int) -> None:
    """Write header fields by name."""
    for name, value in values.items():
        at, size = FIELDS[name]
        frame[at : at + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "big")


def seal(frame: bytearray) -> None:
    """Make the CRC right, if the frame is long enough to have one."""
    if len(frame) < BODY_AT:
        return
    end = BODY_AT + body_bytes(frame[KIND_AT] & 0xF)
    checked = zlib.crc32(frame[HEADER_AT:CHECKSUM_AT])
    frame[CHECKSUM_AT:BODY_AT] = zlib.crc32(frame[BODY_AT:end], checked).to_bytes(4, "big")


def ping(source: str, number: int) -> bytes:
    """An ordinary frame of a station to itself: it comes back when the switch has got so far."""
    mac = bytes.fromhex(source.replace(":", ""))
    return mac + mac + PING_ETHERTYPE.to_bytes(2, "big") + PING_MARK + number.to_bytes(8, "big")
