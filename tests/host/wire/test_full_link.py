# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A shaped link takes frames more slowly than a worker has them: it waits, and loses none."""

import os
import socket
import subprocess
from contextlib import ExitStack

import pytest

from switchgnn.host.wire.header import ETHERNET_BYTES, ETHERTYPE_IPV4, PROTOCOL
from switchgnn.host.wire.link import InterfaceLink
from tests.support.markers import needs, needs_root, whole
from tests.support.networks import in_network, own_network
from tests.support.speed import seconds_here

FRAMES, FRAME_BYTES = 300, 188
HERE, THERE = f"f{os.getpid() % 0xFFFF:x}h", f"f{os.getpid() % 0xFFFF:x}t"
# Two frames at a time, and then 8 Mbit/s: the frames need 50 ms.
SHAPE = ("tbf", "rate", "8mbit", "burst", "400", "limit", "1mb")


@pytest.fixture
def ends():
    with ExitStack() as stack:
        network = stack.enter_context(own_network())
        network.add_cable(HERE, THERE)
        shape = ["tc", "qdisc", "add", "dev", HERE, "root", *SHAPE]
        subprocess.run(shape, check=True, capture_output=True)
        link = stack.enter_context(InterfaceLink(HERE))
        with in_network(network.path):
            other = stack.enter_context(InterfaceLink(THERE))
        yield link, other


def frame(number):
    data = bytearray(FRAME_BYTES)
    data[:12] = b"\x02" * 12
    data[12:14] = ETHERTYPE_IPV4.to_bytes(2, "big")
    data[ETHERNET_BYTES] = 0x45
    data[ETHERNET_BYTES + 9] = PROTOCOL
    data[-4:] = number.to_bytes(4, "big")
    return bytes(data)


class Waits:
    """Counts how often a link has waited until it could send."""

    def __init__(self, poll):
        self._poll, self.number = poll, 0

    def poll(self, *arguments):
        self.number += 1
        return self._poll.poll(*arguments)


@whole
@needs_root
@needs("tc", "iproute2")
def test_all_frames_arrive_in_order(ends):
    link, other = ends
    link._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    link._writable = waits = Waits(link._writable)
    for number in range(FRAMES):
        link.send(frame(number))
    assert waits.number > FRAMES // 20
    for number in range(FRAMES):
        came = other.receive(seconds_here(5))
        assert came is not None, number
        assert bytes(came) == frame(number)
