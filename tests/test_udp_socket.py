# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The ends of a loopback link receive from each other only."""

import socket

import pytest

from switchgnn.host.wire.link import open_link
from switchgnn.softswitch.ports import open_ports, parse_port
from switchgnn.topologies.free_ports import free_udp_addresses


def address(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


def switch_port(one, other):
    spec = parse_port(f"1=udp:{one}:{other}")
    port = open_ports([spec])[1]
    return port, lambda: port.receive(2000)


def worker_link(one, other):
    link = open_link(f"udp:{one}:{other}")

    def receive():
        frame = link.receive(0)
        if frame is None:
            raise BlockingIOError
        return bytes(frame)

    return link, receive


@pytest.fixture
def hurried(monkeypatch):
    """The socket of a stranger that sends between bind and connect."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:

        class Watched(socket.socket):
            def connect(self, address):
                stranger.sendto(b"a frame of a stranger", self.getsockname())
                super().connect(address)

        monkeypatch.setattr(socket, "socket", Watched)
        yield stranger


@pytest.mark.parametrize("opened", [switch_port, worker_link])
def test_nobody_else_is_heard(hurried, opened):
    one, other = free_udp_addresses(2)
    end, receive = opened(one, other)
    try:
        with pytest.raises(BlockingIOError):
            receive()
        hurried.sendto(b"a later frame", address(one))
        with pytest.raises(BlockingIOError):
            receive()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
            peer.bind(address(other))
            peer.sendto(b"a frame of the other end", address(one))
            assert receive() == b"a frame of the other end"
    finally:
        end.close()
