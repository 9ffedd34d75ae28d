# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The network interfaces of this machine."""

import fcntl
import socket
import struct
from dataclasses import dataclass

from switchgnn.network.errors import NetworkError

# <net/if_arp.h>, <net/if.h> and <bits/ioctls.h>; /sys would show those of another namespace.
_ETHERNET, _UP, _LOOPBACK = 1, 0x1, 0x8
_GET_FLAGS, _GET_ADDRESS, _GET_MTU, _GET_MAC = 0x8913, 0x8915, 0x8921, 0x8927
_NAME_BYTES, _REQUEST_BYTES = 16, 40


@dataclass(frozen=True)
class Interface:
    """A network interface.

    Attributes:
        name: as `ip link` calls it.
        mac: its Ethernet address.
        ip: its first IPv4 address, or empty.
        mtu: the largest packet, in bytes.
        up: whether it is switched on.
    """

    name: str
    mac: str
    ip: str
    mtu: int
    up: bool


def interfaces() -> tuple[Interface, ...]:
    """Return all Ethernet interfaces of this machine, but loopback, by name."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        names = sorted(name for _, name in socket.if_nameindex())
        found = [_read(sock.fileno(), name) for name in names]
    return tuple(interface for interface in found if interface is not None)


def interface_named(name: str) -> Interface:
    """Return an interface.

    Raises:
        NetworkError: there is none of that name; those that are there are listed.
    """
    known = interfaces()
    for interface in known:
        if interface.name == name:
            return interface
    names = ", ".join(interface.name for interface in known) or "none"
    raise NetworkError(f"This machine has no Ethernet interface {name!r}; it has: {names}.")


def _read(sock: int, name: str) -> Interface | None:
    try:
        (flags,) = struct.unpack_from("H", _ask(sock, _GET_FLAGS, name))
        kind, mac = struct.unpack_from("H6s", _ask(sock, _GET_MAC, name))
        (mtu,) = struct.unpack_from("i", _ask(sock, _GET_MTU, name))
    except OSError:  # one that goes away meanwhile
        return None
    if kind != _ETHERNET or flags & _LOOPBACK:
        return None
    return Interface(name, mac.hex(":"), _ip_of(sock, name), mtu, bool(flags & _UP))


def _ip_of(sock: int, name: str) -> str:
    try:
        return socket.inet_ntoa(_ask(sock, _GET_ADDRESS, name)[4:8])
    except OSError:
        return ""


def _ask(sock: int, what: int, name: str) -> bytes:
    """Return what the kernel says of an interface, behind its name."""
    asked = name.encode().ljust(_NAME_BYTES, b"\0").ljust(_REQUEST_BYTES, b"\0")
    return fcntl.ioctl(sock, what, asked)[_NAME_BYTES:]
