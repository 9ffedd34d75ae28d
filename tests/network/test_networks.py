"""Network files: what is written is read, what cannot be is refused, and drafts from interfaces."""

from dataclasses import replace
from pathlib import Path

import pytest

from switchgnn.base import network_file
from switchgnn.base.network import NetworkError, leaf_spine_networks, star_network
from switchgnn.commands.network import attach_worker, draft_star
from tests.network.usual import described_leaf_spine, described_star
from tests.support.markers import needs_root
from tests.support.networks import in_network, own_network


def read(folder: Path, text: str):
    file = folder / "network.toml"
    file.write_text(text, encoding="utf-8")
    return network_file.read_network(file)


@pytest.mark.parametrize(
    "network",
    [
        described_star(),
        described_star(2, device_id=3, ports={"1": "eth:enp1s0", "2": "eth:enp2s0"}),
        described_leaf_spine((0, 0, 1, 2), 2),
        replace(described_star(), job="training-b"),
    ],
)
def test_what_is_written_is_read(tmp_path, network):
    assert read(tmp_path, network_file.network_text(network)) == network


def test_where_metrics_are(tmp_path):
    network = described_star(3)
    pairs = zip(network.workers, ("192.0.2.11:9561", "[2001:db8::1]:9561", ""), strict=True)
    network = replace(network, workers=tuple(replace(each, metrics=to) for each, to in pairs))
    found = read(tmp_path, network_file.network_text(network))
    assert found == network
    assert [each.metrics_address for each in found.workers] == [
        *(("192.0.2.11", 9561), ("2001:db8::1", 9561), None)
    ]
    same = tuple(replace(each, metrics="192.0.2.11:9561") for each in network.workers)
    with pytest.raises(NetworkError, match=r"two workers serve metrics on 192\.0\.2\.11:9561"):
        read(tmp_path, network_file.network_text(replace(network, workers=same)))


def test_certificates_are_beside_the_file(tmp_path):
    tls = network_file.TlsFiles(Path("ca.pem"), Path("/etc/own.pem"), Path("own.key"))
    network = read(tmp_path, network_file.network_text(described_star(1, tls=tls)))
    (switch,) = network.switches
    assert switch.tls == network_file.TlsFiles(
        tmp_path / "ca.pem", Path("/etc/own.pem"), tmp_path / "own.key"
    )


LINKS = "eth:INTERFACE or udp:HOST:PORT:SWITCH_HOST:SWITCH_PORT"
SWITCHES = "HOST:PORT or unix:PATH"


def star(**changes):
    network = described_star(2)
    first = replace(network.workers[0], **changes)
    return network_file.network_text(replace(network, workers=(first, network.workers[1])))


def leaf_spine(cables):
    network = described_leaf_spine((0, 1), 1)
    return network_file.network_text(replace(network, cables=cables(network.cables)))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("workers = 4", "is not a network file: workers: expected array, got int"),
        ("[[switch]]\nname = 's0'", "switches"),
        ("[[switches]", "is not TOML"),
        ("switches = []\nworkers = []", "it has no switch"),
        (star(switch="s1"), "worker 0 is attached to 's1', which is not its switch"),
        (star(port=2), "port 2 of switch s0 leads to two neighbours"),
        (star(port=511), "workers[0].port: expected int <= 510"),
        (star(port=-1), "workers[0].port: expected int >= 1"),
        (star(mac="02:00:00:00:00:02"), "worker 0 and worker 1 have the same MAC"),
        (star(mac="02:00:00:00:FF:FE"), "switch s0 and worker 0 have the same MAC"),
        (star(mac="03:00:00:00:00:01"), "is not the Ethernet address of a station"),
        (star(mac="zz:00:00:00:00:01"), "is not the Ethernet address of a station"),
        (star(ip="10.0.0.2"), "worker 0 and worker 1 have the same IP, 10.0.0.2"),
        (star(ip="10.0.0"), "the IP of worker 0, '10.0.0', is not the IPv4 address"),
        (star(ip="224.0.0.1"), "the IP of worker 0"),
        (star(metrics="9561"), "worker 0 has the metrics '9561', which is not HOST:PORT"),
        (star(metrics="192.0.2.1:99999"), "worker 0 has the metrics"),
        (star(metrics="a/b:1"), "worker 0 has the metrics"),
        *(
            (star(interface="", link=link), f"worker 0 has the link {link!r}, which is not {LINKS}")
            for link in ("x", "eth:", "udp:1", "udp:a:1:b", "udp:a:0:b:2", "udp:a:1:b:c")
        ),
        (star(interface="two words"), "worker 0 has the interface 'two words', which is not the"),
        (star(gloo="a/b"), "worker 0 has the gloo 'a/b', which is not the name of an interface"),
        (star() + 'gloo = ""', "worker 1 has the gloo '', not the name of an interface"),
        *(
            (
                network_file.network_text(described_star(grpc=grpc)),
                f"switch s0 has the grpc {grpc!r}, which is not {SWITCHES}",
            )
            for grpc in ("", "unix:", "192.0.2.1", "192.0.2.1:0", ":9559")
        ),
        *(
            (
                network_file.network_text(described_star(2, ports=ports)),
                "which is not NUMBER=eth:INTERFACE or",
            )
            for ports in ({"1": "x"}, {"a": "eth:b"}, {"1": "udp:a:1:b:2:9"})
        ),
        (star(interface=""), "worker 0 needs either an interface or a link"),
        (star(link="udp:a:1:b:2"), "worker 0 needs either an interface or a link"),
        (star() + "speed = 3", "unknown field speed"),
        *((f"job = {job!r}\n{star()}", f"{job!r} names no job") for job in ("", "a b", "a" * 17)),
        (star(namespace="/run/x"), "worker 0 has the namespace '/run/x', which is not the /proc/"),
        (leaf_spine(lambda cables: ()), "it has 3 switches and no cable"),
        (leaf_spine(lambda cables: cables[:1]), "0 cables join leaf leaf1 and spine spine0"),
        (
            leaf_spine(lambda cables: (*cables, network_file.Cable("spine0", 7, "leaf0", 7))),
            "a cable has the leaf 'spine0', which is not a switch with workers",
        ),
    ],
)
def test_invalid_networks_are_refused(tmp_path, text, sentence):
    with pytest.raises(NetworkError) as refused:
        read(tmp_path, text)
    assert sentence in str(refused.value)
    assert str(tmp_path / "network.toml") in str(refused.value)


def test_a_file_that_is_missing_or_none(tmp_path):
    for path in (tmp_path / "none.toml", tmp_path, Path("/dev/zero")):
        with pytest.raises(NetworkError, match="Cannot read the network"):
            network_file.read_network(path)
    large = tmp_path / "large.toml"
    large.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(NetworkError, match="larger than 1,024 kB"):
        network_file.read_network(large)


PORTS = [
    network_file.Interface(f"enp{number}s0", f"52:54:00:00:00:0{number}", "", 1500, True)
    for number in (1, 2)
]
HERE = network_file.Interface("eth1", "52:54:00:00:01:00", "192.0.2.7", 1500, True)


def draft():
    return draft_star(PORTS, grpc="192.0.2.1:9559", target=network_file.Target.BMV2)


def test_a_worker_has_the_addresses_of_its_interface():
    network = attach_worker(draft(), 1, HERE, gloo="eth0")
    placed = network.workers[1]
    assert (placed.interface, placed.mac, placed.ip) == ("eth1", HERE.mac, HERE.ip)
    assert (placed.switch, placed.port, placed.gloo) == ("s0", 2, "eth0")
    assert network.workers[0] == draft().workers[0]
    assert attach_worker(draft(), 1, replace(HERE, ip="")).workers[1].ip == draft().workers[1].ip


def test_no_such_worker_or_interface():
    with pytest.raises(NetworkError, match="no worker 2: the network has the workers 0 to 1"):
        attach_worker(draft(), 2, HERE)
    with pytest.raises(NetworkError, match="no Ethernet interface that is up"):
        draft_star([], grpc="x:1", target=network_file.Target.BMV2)
    with pytest.raises(NetworkError, match="no Ethernet interface 'nobody'"):
        network_file.interface_named("nobody")


def test_loopback_is_no_interface_to_a_worker():
    assert "lo" not in {interface.name for interface in network_file.interfaces()}


@needs_root
def test_interfaces_are_those_of_the_namespace(tmp_path):
    with own_network() as network:
        network.add_cable("sgdraft0", "sgdraft1")
        here = network_file.interface_named("sgdraft0")
        with in_network(network.path):
            there = network_file.interfaces()
    assert [interface.name for interface in there] == ["sgdraft1"]
    assert there[0].up
    assert there[0].mtu == here.mtu == 1500
    assert there[0].mac != here.mac


@pytest.mark.parametrize("workers", [1, 4, 128])
def test_a_star_with_the_usual_addresses_is_the_usual_star(workers):
    assert network_file.networks_of(described_star(workers)) == (star_network(workers),)


@pytest.mark.parametrize(
    ("leaf_of_worker", "spines"), [((0, 0, 1), 1), ((0, 1, 1, 2), 2), ((0,) * 3 + (1,) * 3, 3)]
)
def test_a_leaf_spine_with_the_usual_addresses_is_the_usual_one(leaf_of_worker, spines):
    network = described_leaf_spine(leaf_of_worker, spines)
    assert network.leaf_of_worker == leaf_of_worker
    assert network_file.networks_of(network) == leaf_spine_networks(leaf_of_worker, spines).switches


def test_switches_may_come_in_any_order():
    network = described_leaf_spine((0, 0, 1), 2)
    turned = replace(network, switches=(*network.switches[2:], *network.switches[1::-1]))
    assert network_file.networks_of(turned) == leaf_spine_networks((0, 0, 1), 2).switches
