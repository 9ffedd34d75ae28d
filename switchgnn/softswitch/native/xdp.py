# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Ports over AF_XDP sockets: their rings are native code, whichever code the program is."""

import os
import socket
from collections.abc import Callable
from ctypes import (
    CDLL,
    POINTER,
    byref,
    c_char_p,
    c_int,
    c_int64,
    c_uint32,
    c_uint64,
    c_void_p,
    create_string_buffer,
)
from typing import Any

from switchgnn.base.native import CompilerError, LibrarySource, compiled_library, find_compiler
from switchgnn.softswitch.errors import PortError
from switchgnn.softswitch.native.build import RUNTIME
from switchgnn.softswitch.ports import (
    ETHERNET_OVERHEAD_BYTES,
    Interface,
    XdpSpec,
    find_interface,
    packet_socket,
    promiscuous,
)

_FAMILY = 44
# The kernel keeps so much free in front of a frame: XDP_PACKET_HEADROOM of linux/bpf.h.
_HEADROOM = 256
_LONGEST = 4096 - _HEADROOM
_SOURCE = LibrarySource(
    part="softswitch",
    name="xdp",
    who="The code of AF_XDP ports",
    unit='#include "xdp_open.h"\n',
    folder=RUNTIME,
    files=("wide.h", "xdp.h", "xdp_open.h"),
)
_WHY_BYTES = 200
_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "xdp_open": (
        c_void_p,
        (c_uint32, c_uint64, c_uint64, c_char_p, c_uint64, POINTER(c_int)),
    ),
    "xdp_close": (None, (c_void_p,)),
    "xdp_descriptor": (c_int, (c_void_p,)),
    "xdp_receive": (c_int64, (c_void_p, c_char_p, c_uint64)),
    "xdp_send": (c_int, (c_void_p, c_char_p, c_uint64)),
}


def xdp_missing() -> str | None:
    """Return why there are no AF_XDP sockets here, or None."""
    try:
        socket.socket(_FAMILY, socket.SOCK_RAW, 0).close()
    except PermissionError:
        return "needs root, or CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF"
    except OSError:
        return "the kernel has no AF_XDP sockets (CONFIG_XDP_SOCKETS)"
    return None if find_compiler() else "needs a C++ compiler: apt-get install g++"


class XdpPort:
    """A port over an AF_XDP socket.

    Args:
        library: the native code, as :func:`_library` returns it.
        address: where the port is in native memory.
        frame_bytes: the length of the longest frame.
        listening: keeps the interface promiscuous.
    """

    # Frames never wait in the interface: one in which they do is refused.
    may_refuse = False

    def __init__(
        self, library: CDLL, address: int, frame_bytes: int, listening: socket.socket
    ) -> None:
        self.address = address
        self.frame_bytes = frame_bytes
        self.receive: Callable[[int], bytes] = self._receive
        self._library = library
        self._listening = listening
        self._room = create_string_buffer(frame_bytes)

    def fileno(self) -> int:
        """Return the file descriptor to wait on."""
        return int(self._library.xdp_descriptor(self.address))

    def _receive(self, size: int) -> bytes:
        length = self._library.xdp_receive(self.address, self._room, len(self._room))
        if length < 0:
            raise BlockingIOError
        return self._room.raw[: min(length, size)]

    def send(self, frame: bytes) -> bool:
        """Send a frame and return whether the kernel took it.

        Raises:
            BlockingIOError: the port cannot take a frame now.
        """
        taken = self._library.xdp_send(self.address, frame, len(frame))
        if taken < 0:
            raise BlockingIOError
        return bool(taken)

    def close(self) -> None:
        """Detach the port."""
        self._library.xdp_close(self.address)
        self._listening.close()


def open_xdp(number: int, spec: XdpSpec) -> XdpPort:
    """Attach a port to an interface.

    Raises:
        PortError: the kernel, the interface or the rights are not there, or frames would be lost
            or overtake others that wait in the interface.
    """
    missing = xdp_missing()
    if missing is not None:
        raise _refused(number, spec, missing)
    try:
        interface = find_interface(spec.interface)
    except OSError as error:
        raise _refused(number, spec, f"{error.strerror or error}") from None
    frame_bytes = interface.mtu + ETHERNET_OVERHEAD_BYTES
    _check(number, spec, interface, frame_bytes)
    library = _library()
    listening = packet_socket(number)
    try:
        promiscuous(listening, interface)
        address = _open(library, interface)
    except OSError as error:
        listening.close()
        raise _refused(number, spec, str(error.strerror or error)) from None
    return XdpPort(library, address, frame_bytes, listening)


def _check(number: int, spec: XdpSpec, interface: Interface, frame_bytes: int) -> None:
    if not interface.up:
        raise _refused(number, spec, f"it is down, ip link set {spec.interface} up")
    if interface.queues:
        raise _refused(
            number,
            spec,
            f"its frames would overtake those in its queue ({interface.qdisc}), and a limit on "
            "its speed would not hold",
        )
    if interface.receive_queues > 1:
        raise _refused(
            number,
            spec,
            f"it receives in {interface.receive_queues} queues, and an AF_XDP socket takes one",
        )
    if frame_bytes > _LONGEST:
        raise _refused(
            number,
            spec,
            f"with an MTU of {interface.mtu} a frame may be longer than its place, which has "
            f"{_LONGEST} bytes",
        )


def _open(library: CDLL, interface: Interface) -> int:
    why, code = create_string_buffer(_WHY_BYTES), c_int()
    address = library.xdp_open(
        interface.index, interface.mtu, _HEADROOM, why, _WHY_BYTES, byref(code)
    )
    if not address:
        refused = f"the kernel refuses {why.value.decode()}: {os.strerror(code.value)}"
        raise OSError(code.value, refused)
    return int(address)


def _refused(number: int, spec: XdpSpec, why: str) -> PortError:
    return PortError(
        f"Port {number} cannot use interface '{spec.interface}' with AF_XDP: {why}; "
        f"or take {number}=eth:{spec.interface}."
    )


def _library() -> CDLL:
    """Return the native code of these ports, compiled if need be."""
    try:
        library = CDLL(str(compiled_library(_SOURCE)))
    except CompilerError as error:
        raise PortError(f"{error}.") from error
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
