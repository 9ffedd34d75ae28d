# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What the kernel says of a network interface."""

import ctypes
import fcntl
import socket
import struct
from dataclasses import dataclass

_HEADER = struct.Struct("=IHHII")  # struct nlmsghdr: length, type, flags, sequence, port
_LINK = struct.Struct("=BxHiII")  # struct ifinfomsg: family, type, index, flags, change
_ATTRIBUTE = struct.Struct("=HH")  # struct nlattr: length, type
_REQUEST = 1
_GET_LINK, _NEW_LINK = 18, 16
_MTU, _QDISC = 4, 6
_UP = 1  # IFF_UP
_TYPE_BITS = 0x3FFF
_ANSWER_BYTES = 1 << 16
_SIOCETHTOOL = 0x8946
# struct ethtool_channels of linux/ethtool.h: the command, four maxima, then what there is.
_CHANNELS = struct.Struct("=9I")
_GET_CHANNELS = 0x3C


@dataclass(frozen=True)
class Interface:
    """A network interface.

    Attributes:
        index: its number in the network namespace.
        up: whether somebody has switched it on; a cable it may lack nevertheless.
        mtu: the bytes of the longest packet.
        qdisc: the name of its queueing discipline; ``noqueue`` where frames never wait.
        receive_queues: how many queues it receives in.
    """

    index: int
    up: bool
    mtu: int
    qdisc: str
    receive_queues: int

    @property
    def queues(self) -> bool:
        """Whether frames that are sent may wait in it."""
        return self.qdisc != "noqueue"


def find_interface(name: str) -> Interface:
    """Ask the kernel for an interface; https://man7.org/linux/man-pages/man7/rtnetlink.7.html.

    Raises:
        OSError: there is none of that name.
    """
    index = socket.if_nametoindex(name)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
        length = _HEADER.size + _LINK.size
        request = _HEADER.pack(length, _GET_LINK, _REQUEST, 1, 0)
        sock.sendall(request + _LINK.pack(0, 0, index, 0, 0))
        answer = sock.recv(_ANSWER_BYTES)
    length, kind, *_ = _HEADER.unpack_from(answer)
    flags = _LINK.unpack_from(answer, _HEADER.size)[3]
    if kind != _NEW_LINK:
        raise OSError(f"the kernel says nothing of '{name}'")
    found = _attributes(answer[_HEADER.size + _LINK.size : length])
    return Interface(
        index=index,
        up=bool(flags & _UP),
        mtu=_number(found, _MTU),
        qdisc=found.get(_QDISC, b"").rstrip(b"\0").decode(),
        receive_queues=_receive_queues(name),
    )


def _receive_queues(name: str) -> int:
    """Return how many queues are in use, 1 where the driver says nothing of them."""
    channels = ctypes.create_string_buffer(_CHANNELS.pack(_GET_CHANNELS, *(0,) * 8))
    request = struct.pack("16sP", name.encode(), ctypes.addressof(channels))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            fcntl.ioctl(sock.fileno(), _SIOCETHTOOL, request)
        except OSError:
            return 1
    _, _, _, _, _, receiving, _, _, combined = _CHANNELS.unpack_from(channels.raw)
    return int(receiving + combined)


def _attributes(data: bytes) -> dict[int, bytes]:
    found = {}
    place = 0
    while place + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, place)
        if length < _ATTRIBUTE.size:
            break
        found[kind & _TYPE_BITS] = data[place + _ATTRIBUTE.size : place + length]
        place += (length + 3) // 4 * 4
    return found


def _number(found: dict[int, bytes], kind: int) -> int:
    return int(struct.unpack("=I", found[kind])[0]) if kind in found else 0
