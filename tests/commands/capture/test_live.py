# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Listening at an interface: what passes is shown at once, until Ctrl-C or until it is gone."""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager

import pytest

from switchgnn.host.wire.header import Kind
from switchgnn.host.wire.link import InterfaceLink
from tests.capture.drawn import control, feature
from tests.support.markers import needs, needs_root, whole
from tests.support.networks import in_network, own_network
from tests.support.speed import seconds_here

pytestmark = [whole, needs_root, needs("ip", "iproute2")]
HERE, THERE = f"c{os.getpid() % 0xFFFF:x}h", f"c{os.getpid() % 0xFFFF:x}t"


@pytest.fixture
def ends():
    with ExitStack() as stack:
        network = stack.enter_context(own_network())
        network.add_cable(HERE, THERE)
        link = stack.enter_context(InterfaceLink(HERE))
        with in_network(network.path):
            other = stack.enter_context(InterfaceLink(THERE))
        yield link, other


@contextmanager
def listening(*words):
    command = [sys.executable, "-m", "switchgnn.commands", "capture", "--interface", HERE, *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr.readline() == f"Listening at {HERE}; Ctrl-C ends it.\n"
            yield process
        finally:
            process.kill()


def test_both_ways_at_once_and_ctrl_c(ends):
    link, other = ends
    with listening() as process:
        link.send(feature(0, src_id=5, block_id=1))
        assert " w0 > switch feature session 1 " in process.stdout.readline()
        other.send(control(Kind.ADVANCE, 0, down=True, block_id=1))
        assert " switch > w0 advance session 1 " in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest, counts = process.communicate(timeout=seconds_here(20))
        assert (process.returncode, rest) == (0, "")
        assert counts == "2 packets: 1 feature, 1 advance.\n"


def test_a_limit_ends_it(ends):
    link, _ = ends
    with listening("--limit", "1", "--kind", "done") as process:
        link.send(feature(0))
        link.send(control(Kind.DONE, 0))
        shown, counts = process.communicate(timeout=seconds_here(20))
        assert process.returncode == 0
        assert " done " in shown
        assert "1 packets: 1 done; 1 of others than those asked for" in counts


def test_an_interface_that_goes_away(ends):
    link, _ = ends
    with listening() as process:
        link.send(feature(0))
        assert " feature " in process.stdout.readline()
        subprocess.run(["ip", "link", "del", HERE], check=True)
        _, said = process.communicate(timeout=seconds_here(20))
        assert process.returncode == 2
        assert "Traceback" not in said
        assert f"{HERE} is gone" in said
        assert "1 packets: 1 feature." in said
