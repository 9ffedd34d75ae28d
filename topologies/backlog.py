# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Bytes that have come to a socket and wait there for its program, as the kernel counts them."""

import socket
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class Backlog(NamedTuple):
    """What waits at the two ends of a link; None where nobody can tell.

    Attributes:
        up: bytes at the upper end, a port of a switch.
        down: bytes at the lower end, a worker or a port of a leaf.
    """

    up: int | None
    down: int | None


def udp_backlog() -> dict[str, int]:
    """Return the bytes that wait at each UDP socket of this network namespace.

    Returns:
        By ``HOST:PORT``.
    """
    waiting = {}
    # https://www.kernel.org/doc/html/latest/networking/proc_net_tcp.html; UDP's has these, too.
    for line in Path("/proc/net/udp").read_text().splitlines()[1:]:
        fields = line.split()
        host, port = fields[1].split(":")
        # The address is a number in the machine's own order.
        name = socket.inet_ntoa(struct.pack("=I", int(host, 16)))
        waiting[f"{name}:{int(port, 16)}"] = int(fields[4].partition(":")[2], 16)
    return waiting


def packet_backlog(process: int) -> Mapping[str, int]:
    """Return the bytes that wait at the packet sockets of another network namespace.

    Args:
        process: one that is in it.

    Returns:
        By the name of the interface.
    """
    folder = Path(f"/proc/{process}/net")
    names = {}
    for line in (folder / "igmp").read_text().splitlines()[1:]:
        # The groups of an interface are below it, indented.
        if line[:1].isdigit():
            index, name, *_ = line.split()
            names[index] = name
    waiting: dict[str, int] = {}
    for line in (folder / "packet").read_text().splitlines()[1:]:
        _, _, _, _, index, _, taken, *_ = line.split()
        if index in names:
            waiting[names[index]] = waiting.get(names[index], 0) + int(taken)
    return waiting
