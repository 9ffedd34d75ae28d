"""The loopback fabric: its description, its sockets, and where its switches serve P4Runtime."""

import socket
import socketserver
import threading
from contextlib import contextmanager

import pytest

from switchgnn.base.network import leaf_spine_networks, star_network
from switchgnn.base.network_file import network_text, networks_of, read_network
from switchgnn.host.wire.link import UdpLink, open_link
from switchgnn.softswitch.base.ports import open_ports, parse_port
from switchgnn.topologies import FabricError, Target, Topology, folder_for_sockets, socket_address
from switchgnn.topologies.choice import BackgroundTraffic
from switchgnn.topologies.loopback_fabric import LoopbackFabric
from switchgnn.topologies.rpc_address import (
    TcpDoor,
    answers,
    free_tcp_port,
    free_udp_addresses,
    require_free,
)
from switchgnn.topologies.targets import switch_command
from tests.support.speed import seconds_here


def star():
    network = star_network(3)
    return Topology(network.alone, Target.EMBEDDED, ("unix:/nowhere/switch.sock",)), (network,)


def leaf_spine():
    networks = leaf_spine_networks((0, 0, 1), 2)
    addresses = tuple(f"unix:/nowhere/switch-{number}.sock" for number in range(4))
    return Topology(networks, Target.EMBEDDED, addresses), networks.switches


@pytest.mark.parametrize("made", [star, leaf_spine])
def test_the_file_of_a_site_has_its_switches_workers_and_cables(made, tmp_path):
    topology, networks = made()
    fabric = LoopbackFabric(topology, tmp_path)
    fabric._links()  # what `start` chooses; nothing needs to run
    path = tmp_path / "network.toml"
    path.write_text(network_text(fabric.describe()))
    read = read_network(path)
    for found, network in zip(networks_of(read), networks, strict=True):
        assert found.switch == network.switch
        assert found.neighbours == network.neighbours
        assert {each.station for each in found.beyond} == {
            each.station for each in network.beyond
        }  # fmt: skip
    assert [each.grpc for each in read.in_order] == [
        each.grpc_address for each in topology.switches
    ]
    assert [each.opens for each in read.workers] == [fabric.worker_link(w) for w in range(3)]


def test_background_traffic_needs_hosts_of_their_own(tmp_path):
    fabric = LoopbackFabric(star()[0], tmp_path)
    with pytest.raises(FabricError, match="take --fabric mininet"), BackgroundTraffic(fabric, 1):
        pytest.fail("it began")


def test_both_ends_of_a_link_have_its_bandwidth(tmp_path):
    topology = Topology(
        star_network(2).alone, Target.EMBEDDED, ("unix:/nowhere/switch.sock",), bandwidth=2.5
    )
    fabric = LoopbackFabric(topology, tmp_path)
    fabric._links()
    with open_link(fabric.worker_link(1)) as link:
        assert isinstance(link, UdpLink)
        assert link._bucket._rate == 2.5e6 / 8
    words = switch_command(
        topology.target, ports={}, grpc_address=topology.grpc_addresses[0], bandwidth=2.5
    )
    assert words[words.index("--port-bandwidth") + 1] == "2.5"


def address(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


def switch_port(one, other):
    port = open_ports([parse_port(f"1=udp:{one}:{other}")])[1]
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


MUCH = bytes(range(256)) * 40_000  # more than the buffers of sockets hold


class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(1 << 16):
            self.request.sendall(data)


@contextmanager
def echoing(path):
    """A socket that sends back what comes, until that ends."""
    with socketserver.ThreadingUnixStreamServer(str(path), Echo) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield
        server.shutdown()


def test_a_socket_is_in_the_folder(tmp_path):
    assert socket_address(tmp_path, "leaf-0") == f"unix:{tmp_path}/leaf-0.sock"
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


def test_a_door_where_somebody_else_is(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(FabricError, match=f"Port {port} on 127.0.0.1 cannot be used"):
            TcpDoor(f"127.0.0.1:{port}", tmp_path / "switch.sock").__enter__()
