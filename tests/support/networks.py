"""Network namespaces: to be in one for a while, or to have one where a switch is alone."""

import ctypes
import os
import socket
import subprocess
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from switchgnn.host.wire.link import InterfaceLink
from tests.support.waiting import wait_until

_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)


@contextmanager
def in_network(path):
    """Move this thread to a namespace; open sockets stay in theirs."""
    with _opened("/proc/thread-self/ns/net") as here, _opened(path) as there:
        assert _LIBC.setns(there, _CLONE_NEWNET) == 0
        try:
            yield
        finally:
            assert _LIBC.setns(here, _CLONE_NEWNET) == 0


class OwnNetwork(NamedTuple):
    """A namespace, held by a process, and the names of interfaces outside that end with it."""

    pid: int
    cables: set[str]

    @property
    def path(self):
        return Path(f"/proc/{self.pid}/ns/net")

    def add_cable(self, here, there, mtu=1500):
        """Connect an interface in this thread's namespace to one in another."""
        self.cables.add(here)
        ends = ["type", "veth", "peer", "name", there, "mtu", str(mtu)]
        pair = ["ip", "link", "add", here, "mtu", str(mtu), *ends]
        subprocess.run([*pair, "netns", str(self.pid)], check=True, capture_output=True)
        _bring_up(here)
        with in_network(self.path):
            _bring_up(there)


@contextmanager
def own_network():
    holder = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", "echo made; exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        try:
            if holder.stdout.readline() != "made\n":
                pytest.skip("needs the right to make network namespaces")
            made = OwnNetwork(holder.pid, set())
            with in_network(made.path):
                subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            yield made
        finally:
            holder.kill()
    # The kernel takes them down a moment later, and the next ones may have the same names.
    wait_until(lambda: made.cables.isdisjoint(name for _, name in socket.if_nameindex()))


@contextmanager
def linked_ends(here, there, *protocols):
    """Yield links at both ends of a cable, the second of which is in a namespace of its own."""
    with own_network() as network:
        network.add_cable(here, there)
        with InterfaceLink(here, *protocols) as link, ExitStack() as stack:
            with in_network(network.path):
                other = stack.enter_context(InterfaceLink(there))
            yield link, other


def _bring_up(interface):
    # Before it is up, so that the kernel sends nothing of its own.
    setting = Path(f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6")
    if setting.exists():
        setting.write_text("1")
    subprocess.run(["ip", "link", "set", interface, "up"], check=True)


@contextmanager
def _opened(path):
    opened = os.open(path, os.O_RDONLY)
    try:
        yield opened
    finally:
        os.close(opened)
