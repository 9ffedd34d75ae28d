# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Hosts in Mininet: what they need, how their links are shaped, and shells that end or hang."""

import builtins
import os
import re
import signal
import subprocess
import sys

import pytest

from switchgnn.base.network import star_network
from switchgnn.topologies import FabricError, FabricKind, Star, Target, build_fabric, socket_address
from switchgnn.topologies.mininet_fabric import mininet_missing
from tests.support.markers import needs, needs_mininet
from tests.support.processes import is_alive
from tests.support.speed import seconds_here
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
    done = subprocess.run(
        ["setpriv", "--bounding-set", bare, "--inh-caps", bare, sys.executable, "-c", CHOOSE],
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds_here(30),
    )
    assert re.match("fabric loopback: Mininet .*Operation not permitted", done.stdout)
    assert "CAP_SYS_ADMIN" in done.stdout
    assert done.stderr.splitlines()[-1].endswith("or take --fabric loopback.")


def test_the_extra_that_brings_the_package_is_named(monkeypatch):
    def without_mininet(name, *args):
        if name.startswith("mininet"):
            raise ImportError(name)
        return real(name, *args)

    real = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", without_mininet)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    reason = mininet_missing()
    assert "[mininet]" in reason
    assert "pip install" in reason


def fabric_of(tmp_path, **options):
    star = Star(star_network(2), Target.EMBEDDED, socket_address(tmp_path), **options)
    return build_fabric(FabricKind.MININET, star, tmp_path)


def shells_of(fabric):
    return [host.pid for host in fabric._net.hosts]


@needs_mininet
def test_links_are_shaped_both_ways(tmp_path):
    with fabric_of(tmp_path, bandwidth=123) as fabric:
        ends = [(host, host.defaultIntf()) for host in fabric._hosts]
        ends += [(fabric._room, interface) for interface in fabric._room.intfList()]
        shapes = [
            subprocess.run(
                ["mnexec", "-a", str(node.pid), "tc", "class", "show", "dev", str(interface)],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for node, interface in ends
        ]
    assert len(shapes) == 4
    assert all("rate 123Mbit" in shape for shape in shapes)


@needs_mininet
@pytest.mark.parametrize("place", [0, -1])
def test_a_shell_that_died_is_named_and_hinders_no_end(tmp_path, place):
    with fabric_of(tmp_path) as fabric:
        shells = shells_of(fabric)
        node = fabric._net.hosts[place]
        os.kill(node.pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(node.pid))
        with pytest.raises(FabricError, match=f"host {node.name} has ended"):
            node.cmd("true")
        with pytest.raises(FabricError, match=f"host {node.name} has ended"):
            fabric.wire_bytes()
    wait_until(lambda: not any(map(is_alive, shells)))


@needs_mininet
def test_a_shell_that_does_not_answer_is_named(tmp_path, monkeypatch):
    with fabric_of(tmp_path) as fabric:
        shells = shells_of(fabric)
        monkeypatch.setattr("switchgnn.topologies.mininet_fabric._ANSWER_SECONDS", 0.1)
        with pytest.raises(FabricError, match=f"host {fabric._hosts[0].name} has not answered"):
            fabric._hosts[0].cmd("cat")
    wait_until(lambda: not any(map(is_alive, shells)))
