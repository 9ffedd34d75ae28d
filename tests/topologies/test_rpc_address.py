# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Where switches serve P4Runtime, and the way there from a TCP address."""

import socket
import threading
from contextlib import contextmanager

import pytest

from switchgnn.topologies import FabricError, folder_for_sockets, socket_address
from switchgnn.topologies.free_ports import free_tcp_port
from switchgnn.topologies.rpc_address import answers, require_free
from switchgnn.topologies.tcp_door import TcpDoor
from tests.support.speed import seconds_here

MUCH = bytes(range(256)) * 40_000  # more than the buffers of sockets hold


@contextmanager
def echoing(path):
    """A socket that sends back what comes, until that ends."""

    def serve():
        while True:
            try:
                peer, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(peer,), daemon=True).start()

    def answer(peer):
        with peer:
            while data := peer.recv(1 << 16):
                peer.sendall(data)

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        threading.Thread(target=serve, daemon=True).start()
        yield
        server.shutdown(socket.SHUT_RDWR)


def test_a_socket_is_in_the_folder(tmp_path):
    assert socket_address(tmp_path, "leaf-0") == f"unix:{tmp_path}/leaf-0.sock"


def test_a_path_that_no_socket_can_have_is_refused(tmp_path):
    with pytest.raises(FabricError, match=r"107 bytes.*TMPDIR"):
        socket_address(tmp_path / ("x" * 100))


def test_a_run_with_a_long_path_has_another_folder_for_sockets(tmp_path):
    with folder_for_sockets(tmp_path) as usual:
        assert usual == tmp_path
    with folder_for_sockets(tmp_path / ("x" * 100)) as other:
        assert other.stat().st_mode & 0o077 == 0
        socket_address(other, "spine-999")
    assert not other.exists()


def test_a_socket_in_use_is_refused(tmp_path):
    address = socket_address(tmp_path)
    require_free(address)
    with echoing(tmp_path / "switch.sock"):
        assert answers(address)
        with pytest.raises(FabricError, match="already"):
            require_free(address)


def test_a_door_carries_both_ways_and_ends(tmp_path):
    path, port = tmp_path / "switch.sock", free_tcp_port()
    with echoing(path), TcpDoor(f"127.0.0.1:{port}", path):
        stays = socket.create_connection(("127.0.0.1", port), seconds_here())
        with socket.create_connection(("127.0.0.1", port), seconds_here()) as client:
            threading.Thread(target=send_all, args=(client,), daemon=True).start()
            got = bytearray()
            while data := client.recv(1 << 16):
                got += data
        assert got == MUCH
        assert answers(f"127.0.0.1:{port}")
    with stays:
        assert stays.recv(1) == b""
    assert not answers(f"127.0.0.1:{port}")


def send_all(client):
    client.sendall(MUCH)
    client.shutdown(socket.SHUT_WR)


def test_a_door_to_nothing_ends_connections(tmp_path):
    port = free_tcp_port()
    with (
        TcpDoor(f"127.0.0.1:{port}", tmp_path / "nothing"),
        socket.create_connection(("127.0.0.1", port), seconds_here()) as client,
    ):
        assert client.recv(1) == b""


def test_a_door_where_somebody_else_is(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(FabricError, match=f"Port {port} on 127.0.0.1 is taken"):
            TcpDoor(f"127.0.0.1:{port}", tmp_path / "switch.sock").__enter__()
