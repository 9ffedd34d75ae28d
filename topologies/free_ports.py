# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Ports of the loopback address that nobody listens on."""

import contextlib
import socket

_HOST = "127.0.0.1"


def free_udp_ports(count: int) -> list[int]:
    """Return ``count`` different UDP ports that are free now."""
    with contextlib.ExitStack() as stack:
        sockets = [
            stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            for _ in range(count)
        ]
        for sock in sockets:
            sock.bind((_HOST, 0))
        return [sock.getsockname()[1] for sock in sockets]


def free_tcp_port() -> int:
    """Return a TCP port that is free now."""
    with socket.socket() as sock:
        sock.bind((_HOST, 0))
        port: int = sock.getsockname()[1]
        return port
