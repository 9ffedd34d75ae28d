# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The ends of a link over loopback hear each other, and no other user of the machine."""

import socket

import pytest

from switchgnn.host.wire.link import open_link
from switchgnn.softswitch.ports import open_ports, parse_port

ONE, OTHER = ("127.77.1.2", 40001), ("127.77.1.2", 40002)


def switch_port():
    spec = parse_port("1=udp:{}:{}:{}:{}".format(*ONE, *OTHER))
    port = open_ports([spec])[1]
    return port, lambda: port.receive(2000)


def worker_link():
    link = open_link("udp:{}:{}:{}:{}".format(*ONE, *OTHER))

    def receive():
        frame = link.receive(0)
        if frame is None:
            raise BlockingIOError
        return bytes(frame)

    return link, receive


@pytest.fixture
def hurried(monkeypatch):
    """A stranger, who sends when a port is bound and not yet connected, and its socket."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:

        class Watched(socket.socket):
            def connect(self, address):
                stranger.sendto(b"a frame of a stranger", self.getsockname())
                super().connect(address)

        monkeypatch.setattr(socket, "socket", Watched)
        yield stranger


@pytest.mark.parametrize("opened", [switch_port, worker_link])
def test_nobody_else_is_heard(hurried, opened):
    end, receive = opened()
    try:
        with pytest.raises(BlockingIOError):
            receive()
        hurried.sendto(b"a later frame", ONE)
        with pytest.raises(BlockingIOError):
            receive()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
            peer.bind(OTHER)
            peer.sendto(b"a frame of the other end", ONE)
            assert receive() == b"a frame of the other end"
    finally:
        end.close()
