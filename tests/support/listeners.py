"""Where the processes of a command listen, and who can reach it."""

import ipaddress
import secrets
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from tests.support.processes import descendants
from tests.support.speed import seconds_here

_LISTEN = "0A"
_PORTS = (20_000, 32_000)
# It becomes nobody only when it has read what it needs: nobody may not read this installation.
_NOBODY = """
import ast, os, socket, sys
family, address = map(ast.literal_eval, sys.argv[1:])
sock = socket.socket(family)
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
try:
    sock.connect(address)
except OSError as error:
    print(type(error).__name__)
"""


def free_ports(number):
    """Return the first of `number` consecutive unused ports below the ephemeral ones."""
    while True:
        first = secrets.SystemRandom().randrange(*_PORTS)
        with ExitStack() as stack:
            try:
                for port in range(first, first + number):
                    stack.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
        return first


def tree_of(pid):
    return [pid, *descendants(pid)]


def listening(pids):
    """(address, port) of these processes' TCP listeners, in the namespace of the first."""
    inodes = {_inode(file) for pid in pids for file in Path(f"/proc/{pid}/fd").glob("*")}
    return {
        address
        for table in ("tcp", "tcp6")
        for address, state, inode in _rows(Path(f"/proc/{pids[0]}/net/{table}"))
        if state == _LISTEN and inode in inodes
    }


def refused_to_nobody(family, address):
    """Whether an unprivileged user of this machine cannot connect; needs root."""
    command = [sys.executable, "-I", "-S", "-c", _NOBODY, str(int(family)), repr(address)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=seconds_here(20), check=True
    ).stdout.strip() in ("PermissionError", "ConnectionRefusedError")


def _inode(file):
    try:
        return str(file.readlink()).removeprefix("socket:[").removesuffix("]")
    except OSError:
        return None


def _rows(table):
    for line in table.read_text().splitlines()[1:]:
        words = line.split()
        address, _, port = words[1].partition(":")
        yield (_address(address), int(port, 16)), words[3], words[9]


def _address(text):
    """The kernel prints each 32-bit word in native byte order."""
    data = b"".join(bytes.fromhex(text[at : at + 8])[::-1] for at in range(0, len(text), 8))
    family = socket.AF_INET if len(data) == 4 else socket.AF_INET6
    address = ipaddress.ip_address(socket.inet_ntop(family, data))
    return getattr(address, "ipv4_mapped", None) or address
