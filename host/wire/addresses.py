"""Addresses of a worker and of the switch, and the frame around a packet."""

import ipaddress
import struct
from dataclasses import dataclass
from functools import lru_cache

from switchgnn.base.network import Station
from switchgnn.host.wire import header as wire

_IPV4 = struct.Struct(">BBHHHBBH4s4s")
_TIME_TO_LIVE = 64
# Features may be marked instead of dropped (RFC 3168).
ECN_CAPABLE = 2
# As in p4src/headers.p4: of packets without numbers, and of parts of an all-reduce.
DSCP_CONTROL, DSCP_EARLY, DSCP_LATE = 48, 8, 1
# The byte of a frame with DSCP and ECN.
TOS_AT = 15


@dataclass(frozen=True)
class Addresses:
    """Where a worker's packets come from and go to."""

    worker: Station
    switch: Station

    def envelope(self, packet_bytes: int) -> bytes:
        """Return the Ethernet and IPv4 header (34 bytes) for a packet of this size."""
        return ipv4_envelope(self.worker, self.switch, packet_bytes)

    def frame(self, packet: bytes, *, late: bool = False) -> bytes:
        """Return the whole Ethernet frame around a SwitchGNN packet; `late`: see ``dscp_of``."""
        dscp = dscp_of(packet[wire.KIND_AT - wire.HEADER_AT] & wire.KIND_MASK, late=late)
        return ipv4_envelope(self.worker, self.switch, len(packet), dscp=dscp) + packet


def dscp_of(kind: int, *, late: bool = False) -> int:
    """Return the DSCP of a kind of packet; `late`: if a part of an all-reduce, it goes last."""
    if kind in (wire.Kind.REDUCE, wire.Kind.REDUCED):
        return DSCP_LATE if late else DSCP_EARLY
    return 0 if kind in wire.LANE_KINDS else DSCP_CONTROL


# Each control packet needs one, and a worker has few kinds of them and of receivers.
@lru_cache(maxsize=1024)
def ipv4_envelope(
    sender: Station,
    receiver: Station,
    packet_bytes: int,
    *,
    protocol: int = wire.PROTOCOL,
    ecn: int = ECN_CAPABLE,
    dscp: int = 0,
) -> bytes:
    """Return the Ethernet and IPv4 header (34 bytes) for a packet of this size."""
    ethernet = (
        _mac_bytes(receiver.mac) + _mac_bytes(sender.mac) + wire.ETHERTYPE_IPV4.to_bytes(2, "big")
    )
    fields = (
        *(0x45, dscp << 2 | ecn, _IPV4.size + packet_bytes, 0, 0, _TIME_TO_LIVE, protocol, 0),
        ipaddress.IPv4Address(sender.ip).packed,
        ipaddress.IPv4Address(receiver.ip).packed,
    )
    header = bytearray(_IPV4.pack(*fields))
    header[10:12] = internet_checksum(header).to_bytes(2, "big")
    return ethernet + bytes(header)


def internet_checksum(data: bytes | bytearray) -> int:
    """Return the Internet checksum (RFC 1071) of an even number of bytes."""
    # 2^16 is 1 modulo 2^16 - 1, so the remainder is the end-around-carry sum.
    total = int.from_bytes(data, "big")
    return 0xFFFF ^ ((total % 0xFFFF) or (0xFFFF if total else 0))


def _mac_bytes(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))
