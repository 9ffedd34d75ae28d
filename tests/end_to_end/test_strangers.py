# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Other users of the machine reach nothing that a run has opened, unless a port is asked for."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from switchgnn.topologies.free_ports import free_tcp_port
from switchgnn.topologies.targets import BMV2_PROGRAM
from tests.end_to_end.conftest import switchgnn
from tests.support.listeners import listening, refused_to_nobody, tree_of
from tests.support.markers import needs_root
from tests.support.networks import in_network
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

KARATE = ("--graph", "karate", "--workers", "2")


@contextmanager
def kept(combination, tmp_path, *options):
    """Yield the process of a run that keeps its switch, and its output."""
    target, fabric = combination
    command = (sys.executable, "-m", "switchgnn.commands", "run", *KARATE, "--keep", *options)
    (tmp_path / "t").mkdir()
    log = tmp_path / "log"
    with (
        log.open("w") as output,
        subprocess.Popen(
            [*command, "--target", target, "--fabric", fabric],
            stdout=subprocess.DEVNULL,
            stderr=output,
            env={**os.environ, "TMPDIR": str(tmp_path / "t")},
        ) as process,
    ):
        try:
            wait_until(
                lambda: "Ctrl-C" in log.read_text(errors="replace") or process.poll() is not None
            )
            yield process, log.read_text()
            process.send_signal(signal.SIGINT)
            process.wait(seconds_here())
        finally:
            process.kill()


def address_in(words):
    return words.rpartition("P4Runtime on ")[2].partition(";")[0]


@needs_root
def test_nobody_else_reaches_a_run(combination, tmp_path):
    target, _ = combination
    with kept(combination, tmp_path) as (process, words):
        assert "Warning" not in words
        tree = tree_of(process.pid)
        assert listening([os.getpid(), *tree]) == listening([os.getpid()])
        if target == "bmv2":
            (switch,) = filter(is_bmv2, tree)
            reached = listening([switch])
            assert reached or "--thrift-port" not in Path(f"/proc/{switch}/cmdline").read_text()
            for _, port in reached:
                with in_network(f"/proc/{switch}/ns/net"):
                    assert not refused_to_nobody(socket.AF_INET, ("127.0.0.1", port))
                for host in ("127.0.0.1", *own_addresses()):
                    assert refused_to_nobody(socket.AF_INET, (host, port))
        address = address_in(words)
        path = Path(address.removeprefix("unix:"))
        assert path.is_socket()
        assert not path.stat().st_mode & 0o077
        for folder in path.parents:
            # The socket itself must refuse connections, not its folders.
            folder.chmod(folder.stat().st_mode | 0o001)
        assert refused_to_nobody(socket.AF_UNIX, str(path))
        shown = switchgnn("controller", "show", "--address", address)
        assert shown.returncode == 0, shown.stderr
    assert not path.exists()


def test_a_port_that_is_asked_for(combination, tmp_path):
    port = free_tcp_port()
    with kept(combination, tmp_path, "--grpc-port", str(port)) as (_, words):
        assert words.count("Warning: every user of this machine") == 1
        assert address_in(words) == f"127.0.0.1:{port}"
        shown = switchgnn("controller", "show", "--address", f"127.0.0.1:{port}")
        assert shown.returncode == 0, shown.stderr
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_a_long_path_for_temporary_files(tmp_path):
    """Socket paths have at most 107 bytes."""
    folder = tmp_path / ("long" * 20)
    folder.mkdir()
    result = switchgnn("run", *KARATE, "--fabric", "loopback", scratch=folder)
    assert result.returncode == 0, result.stderr
    assert list(folder.iterdir()) == []


def is_bmv2(pid):
    return Path(f"/proc/{pid}/exe").resolve().name == BMV2_PROGRAM


def own_addresses():
    shown = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False)
    return [word for word in shown.stdout.split() if ":" not in word]
