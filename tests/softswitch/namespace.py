# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Wires in a network namespace."""

import contextlib
import ctypes
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from tests.support.speed import seconds_here

_CLONE_NEWNET = 0x40000000
_SO_RCVBUFFORCE = 33
_LIBC = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def network_namespace():
    """Enter a new namespace with this thread; yields False without the right to."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    entered = False
    try:
        entered = os.geteuid() == 0 and _LIBC.unshare(_CLONE_NEWNET) == 0
        if entered:
            # Without IPv6 the kernel sends no frames.
            setting = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")
            if setting.exists():
                setting.write_text("1")
        yield entered
    finally:
        assert not entered or _LIBC.setns(before, _CLONE_NEWNET) == 0
        os.close(before)


def make_wire(one, other):
    """Make two connected interfaces; return whether that worked."""
    made = subprocess.run(
        ["ip", "link", "add", one, "type", "veth", "peer", "name", other],
        capture_output=True,
        check=False,
    )
    if made.returncode == 0:
        for name in (one, other):
            subprocess.run(["ip", "link", "set", name, "up"], check=True)
    return made.returncode == 0


def shape(interface, rate):
    """Limit the rate of an interface; return whether that worked."""
    command = ["tc", "qdisc", "replace", "dev", interface, "root", "tbf"]
    settings = ["rate", rate, "burst", "2kb", "limit", "4mb"]
    return subprocess.run([*command, *settings], capture_output=True, check=False).returncode == 0


@contextlib.contextmanager
def wires(*names):
    """Wires in a namespace, from NAME0 to sockets at NAME1."""
    with contextlib.ExitStack() as stack:
        assert stack.enter_context(network_namespace())
        ends = []
        for name in names:
            assert make_wire(f"{name}0", f"{name}1")
            sock = stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
            sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 8 << 20)
            sock.bind((f"{name}1", 3))
            sock.settimeout(seconds_here(5))
            ends.append(sock)
        yield ends


def _may(*tests):
    if shutil.which("ip") is None or shutil.which("tc") is None:
        return False
    with network_namespace() as entered:
        return entered and make_wire("one", "other") and all(test() for test in tests)


needs_wires = pytest.mark.skipif(not _may(), reason="needs the right to make network interfaces")
needs_shaping = pytest.mark.skipif(
    not _may(lambda: shape("one", "1mbit")),
    reason="needs the right to make and shape network interfaces",
)
