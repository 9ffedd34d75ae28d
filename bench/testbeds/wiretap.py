"""Reads every frame that crosses an interface, in both directions, and counts them by kind."""

import socket
from collections import Counter
from collections.abc import Iterable

from switchgnn.host.wire.header import unpack_header

_ETH_P_ALL = 3
_SO_RCVBUFFORCE = 33
_BUFFER = 512 << 20
_LARGEST_FRAME = 9216
FOREIGN = "foreign"


class Wiretap:
    """Listens on some interfaces. Use it as a context manager.

    The kernel keeps the frames until they are counted, so listening takes no time from
    what is measured at the same time.
    """

    def __init__(self, interfaces: Iterable[str]) -> None:
        self._interfaces = list(interfaces)
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> "Wiretap":
        for name in self._interfaces:
            sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
            self._sockets.append(sock)
            sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
            sock.bind((name, _ETH_P_ALL))
            sock.setblocking(False)
        return self

    def __exit__(self, *_: object) -> None:
        for sock in self._sockets:
            sock.close()

    def bytes_by_kind(self) -> Counter[str]:
        """Return the bytes of all frames since the last call, by the name of their kind."""
        total: Counter[str] = Counter()
        for sock in self._sockets:
            while True:
                try:
                    frame = sock.recv(_LARGEST_FRAME)
                except BlockingIOError:
                    break
                header = unpack_header(memoryview(frame))
                total[header.kind.name if header else FOREIGN] += len(frame)
        return total
