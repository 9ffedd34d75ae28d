"""Hosts in Mininet: what they need, shaped links, shells that end or hang, buffers and queues."""

import re
import sys

import pytest

from switchgnn.base.network import star_network
from switchgnn.host import open_link
from switchgnn.host.wire.link import InterfaceLink
from switchgnn.softswitch.native.build import Backend
from switchgnn.topologies import (
    FABRICS,
    FabricKind,
    Target,
    Topology,
    mininet_fabric,
    socket_address,
)
from switchgnn.topologies.mininet_fabric import small_send_buffers
from tests.support.fabrics import in_threads
from tests.support.markers import needs, needs_mininet
from tests.support.processes import is_alive, run_program
from tests.support.waiting import wait_until

# Mininet's first command in a host needs the first one, its first link the second.
RIGHTS = ["sys_admin", "net_admin"]
CHOOSE = """
from switchgnn.topologies import choose
print(choose("embedded", "auto").reason)
choose("embedded", "mininet")
"""


@pytest.mark.whole
@needs_mininet
@needs("setpriv", "util-linux")
@pytest.mark.parametrize("lacking", [RIGHTS, *([right] for right in RIGHTS)], ids="+".join)
def test_root_without_a_capability_runs_over_loopback(lacking):
    bare = ",".join(f"-{right}" for right in lacking)
    done = run_program(
        ["setpriv", "--bounding-set", bare, "--inh-caps", bare, sys.executable, "-c", CHOOSE],
        seconds=30,
    )
    assert re.match("fabric loopback: Mininet .*Operation not permitted", done.stdout)
    assert "CAP_SYS_ADMIN" in done.stdout
    assert done.stderr.splitlines()[-1].endswith("or take --fabric loopback.")


def fabric_of(tmp_path, **options):
    star = Topology(star_network(2).alone, Target.EMBEDDED, (socket_address(tmp_path),), **options)
    return FABRICS[FabricKind.MININET](star, tmp_path)


@pytest.mark.whole
@needs_mininet
@pytest.mark.parametrize(("backend", "by_kernel"), [(Backend.PYTHON, 4), (Backend.NATIVE, 2)])
def test_links_are_shaped_both_ways(tmp_path, backend, by_kernel):
    with fabric_of(tmp_path, bandwidth=123, backend=backend) as fabric:
        ends = [(host, host.defaultIntf()) for host in fabric._hosts]
        ends += [(fabric._room, interface) for interface in fabric._room.intfList()]
        shapes = [
            run_program(
                ["mnexec", "-a", str(node.pid), "tc", "class", "show", "dev", str(interface)],
                check=True,
            ).stdout
            for node, interface in ends
        ]
        (switch,) = fabric._switches
        kind, _, megabits = fabric.worker_link(0).split(":")
    assert ["rate 123Mbit" in shape for shape in shapes] == [n < by_kernel for n in range(4)]
    # A switch that is native code sends at the rate by itself, many frames at a time.
    assert ("--port-bandwidth" in switch._command) == (by_kernel == 2)
    with open_link(f"{kind}:lo:{megabits}") as link:
        assert isinstance(link, InterfaceLink)
        assert link._bucket._rate == 123e6 / 8


def read(node):
    """The shell runs `cat`, which an interrupt ends."""
    node.sendCmd("cat")


def deaf(node):
    node.sendCmd("trap '' INT; cat")


def lost(node):
    """Mininet waits for a command that the terminal dropped before the shell read it."""
    node.waiting = True


@pytest.mark.whole
@needs_mininet
@pytest.mark.parametrize("begin", [read, deaf, lost])
def test_a_network_ends_though_a_command_was_interrupted(begin, tmp_path):
    with fabric_of(tmp_path) as fabric:
        begin(fabric._hosts[0])
        # Each holds a network namespace, and the interfaces in it.
        shells = [host.pid for host in fabric._net.hosts]
    assert len(shells) == 3
    wait_until(lambda: not any(map(is_alive, shells)))


@pytest.fixture
def default(tmp_path, monkeypatch):
    """A file that stands for the kernel's default of send buffers."""
    file = tmp_path / "wmem_default"
    file.write_text("212992\n")
    monkeypatch.setattr(mininet_fabric, "_DEFAULT", file)
    return file


@pytest.mark.parametrize("error", [None, RuntimeError, KeyboardInterrupt])
def test_the_default_comes_back(error, default):
    try:
        with small_send_buffers():
            assert int(default.read_text()) < 212992
            if error is not None:
                raise error
    except (RuntimeError, KeyboardInterrupt) as raised:
        assert type(raised) is error
    assert default.read_text() == "212992\n"


def test_runs_at_the_same_time_take_turns(default):
    def start_switches(_):
        for _ in range(50):
            with small_send_buffers():
                pass

    in_threads(start_switches, 4)
    assert default.read_text() == "212992\n"
