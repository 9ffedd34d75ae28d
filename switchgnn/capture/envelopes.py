"""What captures have around a frame: Linux cooked headers, 802.1Q tags, and UDP over loopback."""

from collections.abc import Iterator
from typing import NamedTuple

from switchgnn.capture.packet import IPV4, PROTOCOL_AT, Captured, is_ours
from switchgnn.host.wire.header import ETHERNET_BYTES


class _LinkHeader(NamedTuple):
    """A header with a protocol, as EtherType, and the address of the sender."""

    size: int
    protocol_at: int
    sender_at: int


# By link type; those of cooked captures: https://www.tcpdump.org/linktypes/LINKTYPE_LINUX_SLL2.html
_ETHERNET = 1
_COOKED = {113: _LinkHeader(16, 14, 6), 276: _LinkHeader(20, 0, 12)}
# An address that is not in a cooked header.
_UNKNOWN = bytes(6)
LINK_TYPES = frozenset({_ETHERNET, *_COOKED})


def as_ethernet(captured: Captured, link_type: int) -> Captured:
    """Return a frame of a link type with the header of Ethernet; empty for an unknown type.

    Cooked headers lack the receiver's address, which becomes 0.
    """
    if link_type == _ETHERNET:
        return captured
    header, frame = _COOKED.get(link_type), captured.frame
    if header is None or len(frame) < header.size:
        return captured._replace(frame=b"")
    sender = frame[header.sender_at :][:6]
    ethernet = _UNKNOWN + sender + frame[header.protocol_at :][:2]
    size = captured.size - header.size + ETHERNET_BYTES
    return captured._replace(frame=ethernet + frame[header.size :], size=size)


_TAGS = (b"\x81\x00", b"\x88\xa8")
_TAG_BYTES = 4
_UDP = 17
_UDP_BYTES = 8


def frames_in(captured: Captured) -> Iterator[Captured]:
    """Yield the frames of SwitchGNN in a captured one; the frame without tags if it has none.

    The loopback fabric sends frames in UDP, several in one datagram if the kernel segments it.
    """
    while captured.frame[12:14] in _TAGS:
        frame = captured.frame[:12] + captured.frame[12 + _TAG_BYTES :]
        captured = captured._replace(frame=frame, size=captured.size - _TAG_BYTES)
    inner = _after_udp(captured)
    if not is_ours(inner.frame):
        yield captured
    while is_ours(inner.frame):
        length = ETHERNET_BYTES + int.from_bytes(inner.frame[16:18], "big")
        yield inner._replace(frame=inner.frame[:length], size=min(length, inner.size))
        inner = inner._replace(frame=inner.frame[length:], size=inner.size - length)


def _after_udp(captured: Captured) -> Captured:
    frame = captured.frame
    is_udp = frame[12:14] == IPV4 and frame[PROTOCOL_AT : PROTOCOL_AT + 1] == bytes([_UDP])
    begin = ETHERNET_BYTES + 4 * (frame[14] & 0xF) + _UDP_BYTES if is_udp else len(frame)
    return captured._replace(frame=frame[begin:], size=captured.size - begin)
