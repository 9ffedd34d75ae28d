"""Frames captured from a network interface."""

import socket
import struct
import time
from collections.abc import Iterator

from switchgnn.base.udp_socket import attach_filter, enlarge_receive_buffer
from switchgnn.capture.packet import LONGEST_FRAME, Captured, CaptureError
from switchgnn.host.direct.frames import PROTOCOL as DIRECT_PROTOCOL
from switchgnn.host.wire.header import PROTOCOL

_ALL_PROTOCOLS = 0x0003
_RECEIVE_BUFFER = 32 << 20
_BILLION = 1_000_000_000
# Linux constants that the module `socket` lacks.
_SO_TIMESTAMPNS = 35
_SOL_PACKET, _PACKET_STATISTICS = 263, 6
_TIME = struct.Struct("qq")
_STATISTICS = struct.Struct("II")
# Classic BPF: accept IPv4 whose protocol is one of ours, also in UDP as over loopback.
_OURS = (
    (0x28, 0, 0, 12),
    (0x15, 0, 10, 0x0800),
    (0x30, 0, 0, 23),
    (0x15, 7, 0, PROTOCOL),
    (0x15, 6, 0, DIRECT_PROTOCOL),
    (0x15, 0, 6, socket.IPPROTO_UDP),
    (0x28, 0, 0, 42 + 12),
    (0x15, 0, 4, 0x0800),
    (0x30, 0, 0, 42 + 23),
    (0x15, 1, 0, PROTOCOL),
    (0x15, 0, 1, DIRECT_PROTOCOL),
    (0x06, 0, 0, LONGEST_FRAME),
    (0x06, 0, 0, 0),
)
_LOOPBACK = 772  # ARPHRD_LOOPBACK


class ListeningInterface:
    """Captures SwitchGNN packets of an interface in both directions. A context manager.

    Raises CaptureError if the interface does not exist or the user may not listen.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        try:
            # Protocol 0 receives nothing until bind, rather than frames of all interfaces.
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        except PermissionError as error:
            raise CaptureError(
                f"Listening at {name} needs root (CAP_NET_RAW): run as root, or read a file that "
                "`tcpdump -w` or `switchgnn run --pcap` has written."
            ) from error
        try:
            attach_filter(self._socket, *_OURS)
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            enlarge_receive_buffer(self._socket, _RECEIVE_BUFFER)
            self._socket.bind((self.name, _ALL_PROTOCOLS))
        except OSError as error:
            self._socket.close()
            raise CaptureError(f"Cannot listen at {name}: {error.strerror or error}.") from error

    def __enter__(self) -> "ListeningInterface":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def __iter__(self) -> Iterator[Captured]:
        """Yield frames until the interface goes away (CaptureError)."""
        while True:
            try:
                frame, notes, _, address = self._socket.recvmsg(LONGEST_FRAME, 64)
            except OSError as error:
                raise CaptureError(f"{self.name} is gone or down: {error.strerror}.") from error
            # Frames over loopback are seen as they leave, and again as they arrive.
            if address[2:4] != (socket.PACKET_OUTGOING, _LOOPBACK):
                yield Captured(_time_in(notes), self.name, frame, len(frame))

    def dropped(self) -> int:
        """Return the number of frames lost since the last call, which were not read fast enough."""
        counts = self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, _STATISTICS.size)
        return int(_STATISTICS.unpack(counts)[1])


def interfaces() -> list[str]:
    """Return the names of this machine's interfaces."""
    return sorted(name for _, name in socket.if_nameindex())


def _time_in(notes: list[tuple[int, int, bytes]]) -> int:
    for level, kind, value in notes:
        if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
            seconds, part = _TIME.unpack_from(value)
            return int(seconds * _BILLION + part)
    return time.time_ns()
