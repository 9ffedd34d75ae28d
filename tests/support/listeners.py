# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Where the processes of a command listen, read from /proc."""

import ipaddress
import socket
from pathlib import Path

_LISTEN = "0A"


def tree_of(pid):
    """The process and all its descendants."""
    found = [pid]
    for each in found:
        for task in Path(f"/proc/{each}/task").glob("*/children"):
            found += map(int, task.read_text().split())
    return found


def listening(pids):
    """The addresses at which these processes accept TCP, in the namespace of the first one."""
    inodes = {_inode(file) for pid in pids for file in Path(f"/proc/{pid}/fd").glob("*")}
    return {
        address
        for table in ("tcp", "tcp6")
        for address, state, inode in _rows(Path(f"/proc/{pids[0]}/net/{table}"))
        if state == _LISTEN and inode in inodes
    }


def _inode(file):
    try:
        return str(file.readlink()).removeprefix("socket:[").removesuffix("]")
    except OSError:
        return None


def _rows(table):
    for line in table.read_text().splitlines()[1:]:
        words = line.split()
        yield _address(words[1].split(":")[0]), words[3], words[9]


def _address(text):
    """The kernel writes each word of 32 bits in the order of the machine."""
    data = b"".join(bytes.fromhex(text[at : at + 8])[::-1] for at in range(0, len(text), 8))
    family = socket.AF_INET if len(data) == 4 else socket.AF_INET6
    address = ipaddress.ip_address(socket.inet_ntop(family, data))
    return getattr(address, "ipv4_mapped", None) or address
