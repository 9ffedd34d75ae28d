# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Wires in a network namespace of the test's own, which end with it."""

import contextlib
import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import pytest

_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def network_namespace():
    """Moves this thread, and what it starts, into a new namespace; False where it may not."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    entered = False
    try:
        entered = os.geteuid() == 0 and _LIBC.unshare(_CLONE_NEWNET) == 0
        if entered:
            # No frames of the kernel's own.
            setting = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")
            if setting.exists():
                setting.write_text("1")
        yield entered
    finally:
        # Without the right to leave a namespace there is none to return, either.
        assert not entered or _LIBC.setns(before, _CLONE_NEWNET) == 0
        os.close(before)


def make_wire(one, other):
    """Two connected interfaces, both up; whether they could be made."""
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
    """Slows what an interface sends; whether the kernel can."""
    command = ["tc", "qdisc", "replace", "dev", interface, "root", "tbf"]
    settings = ["rate", rate, "burst", "2kb", "limit", "4mb"]
    return subprocess.run([*command, *settings], capture_output=True, check=False).returncode == 0


def _may_shape():
    if shutil.which("ip") is None or shutil.which("tc") is None:
        return False
    with network_namespace() as entered:
        return entered and make_wire("one", "other") and shape("one", "1mbit")


needs_shaping = pytest.mark.skipif(
    not _may_shape(), reason="needs the right to make and shape network interfaces"
)
