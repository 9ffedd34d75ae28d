"""UDP sockets on loopback that receive from their peer only, and receive buffers.

Any user of the machine can send to a port. A connected socket drops other senders, but keeps what
arrived between bind and connect; a filter drops that.
"""

import ctypes
import errno
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress

_SO_ATTACH_FILTER, _SO_DETACH_FILTER, _SO_RCVBUFFORCE = 26, 27, 33
# An instruction of classic BPF: return 0, no byte of any packet.
TAKE_NOTHING = (0x06, 0, 0, 0)
_LOOPBACK = ("127.", "localhost")
_UNREACHABLE = (errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def attach_filter(sock: socket.socket, *program: Sequence[int]) -> None:
    """Let a socket receive only what a program of classic BPF takes."""
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code)
    header = struct.pack("HL", len(program), ctypes.addressof(buffer))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, header)


def connected_udp(local: tuple[str, int], peer: tuple[str, int]) -> socket.socket:
    """Return a socket between two addresses that has received nothing from others."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        attach_filter(sock, TAKE_NOTHING)
        sock.bind(local)
        sock.connect(peer)
        sock.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)
    except BaseException:
        sock.close()
        raise
    return sock


def enlarge_receive_buffer(sock: socket.socket, size: int) -> None:
    """Give a socket a buffer of that many bytes, or as many as the system lets this user have."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
    with suppress(PermissionError):
        sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, size)


def why_not_bound(error: Exception, host: str, other: str = "choose another port") -> str:
    """Return why a socket cannot have an address of a host, and what to do; no full stop.

    `other` says how to choose another one.
    """
    if not isinstance(error, OSError):
        return f"no such name; {other}"
    reason = error.strerror or str(error)
    if error.errno not in _UNREACHABLE:
        return f"{reason}; free it or {other}"
    if not host.startswith(_LOOPBACK):
        return f"{reason}; choose an address of this machine"
    return (
        f"{reason}; the loopback interface is down or has no IPv4 address: ip link set lo up; "
        "ip address add 127.0.0.1/8 dev lo"
    )
