"""Free loopback addresses.

A free port may be taken before the program that is to listen has started. All of 127.0.0.0/8 is
loopback on Linux, so each caller gets an address of its own, which no other program uses.
"""

import contextlib
import random
import socket

from switchgnn.base.udp_socket import why_not_bound
from switchgnn.topologies.errors import FabricError

_COMMON_HOST = "127.0.0.1"


def free_udp_addresses(count: int) -> list[str]:
    """Return ``count`` different ``HOST:PORT`` for UDP, on a loopback address of their own."""
    # Not seeded: two processes with one seed must not choose the same.
    chosen = random.SystemRandom()
    host = f"127.{chosen.randint(1, 254)}.{chosen.randint(0, 255)}.{chosen.randint(1, 254)}"
    with contextlib.ExitStack() as stack:
        sockets = [
            stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            for _ in range(count)
        ]
        for sock in sockets:
            _bind(sock, host)
        return [f"{host}:{sock.getsockname()[1]}" for sock in sockets]


def free_tcp_port() -> int:
    """Return a TCP port that is free now on 127.0.0.1, for programs that take no other address."""
    with socket.socket() as sock:
        _bind(sock, _COMMON_HOST)
        port: int = sock.getsockname()[1]
        return port


def _bind(sock: socket.socket, host: str) -> None:
    try:
        sock.bind((host, 0))
    except OSError as error:
        raise FabricError(f"{host} cannot be used: {why_not_bound(error, host)}.") from error
