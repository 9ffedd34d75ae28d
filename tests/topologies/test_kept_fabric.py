"""Ports of a kept switch: which are taken, what is refused, and one job of a name at once."""

import os
import threading
from dataclasses import replace

import pytest

from switchgnn.base.network_file import network_text, read_network
from switchgnn.topologies import FabricError, FabricKind, Target
from switchgnn.topologies.choice import KeptFabric, KeptPorts
from tests.network.usual import described_leaf_spine, described_star, with_links
from tests.support.speed import seconds_here


def written(folder, network):
    file = folder / "network.toml"
    file.write_text(network_text(network))
    return file


@pytest.fixture
def file(tmp_path):
    return written(tmp_path, with_links(described_star(5)))


def test_workers_are_at_the_ports_in_their_order(file, tmp_path):
    on = KeptPorts.read(file, [4, 2], "b")
    own = [read_network(file).workers[index] for index in (3, 1)]
    with KeptFabric(on, tmp_path) as fabric:
        assert [fabric.worker_link(worker) for worker in (0, 1)] == [each.link for each in own]
        topology = fabric.topology
        assert [topology.port(worker) for worker in (0, 1)] == [4, 2]
        assert [topology.station(worker) for worker in (0, 1)] == [each.station for each in own]
        shared = tuple(replace(each, processes=3) for each in own)
        described = fabric.describe(3)
    assert (described.job, described.workers) == ("b", shared)
    assert on.choice.fabric is FabricKind.LOOPBACK
    assert on.choice.target is Target.EMBEDDED


def test_the_job_is_that_of_the_file_unless_one_is_given(tmp_path):
    file = written(tmp_path, replace(with_links(described_star(2)), job="a"))
    assert KeptPorts.read(file, [1]).network.job == "a"
    assert KeptPorts.read(file, [1], "b").network.job == "b"


@pytest.mark.parametrize(("links", "bandwidth"), [((), None), ((":2.5", ":2.5"), 2.5)])
def test_the_limit_of_a_link_is_in_the_file(tmp_path, links, bandwidth):
    file = written(tmp_path, with_links(described_star(2), *links))
    assert KeptPorts.read(file, [1]).bandwidth == bandwidth
    file.write_text(file.read_text().replace("udp:127.0.0.1:2000:127.0.0.1:2001", "eth:w0"))
    assert KeptPorts.read(file, [1]).bandwidth == bandwidth


@pytest.mark.parametrize(
    ("ports", "sentence"),
    [([1, 6], "has no port 6: choose --ports of 1, 2, 3, 4, 5"), ([2, 1, 2], "names port 2 twice")],
)
def test_ports_that_nobody_can_have(file, ports, sentence):
    with pytest.raises(FabricError, match=sentence):
        KeptPorts.read(file, ports)


def test_networks_whose_workers_are_elsewhere(tmp_path):
    with pytest.raises(FabricError, match="leads to another machine"):
        KeptPorts.read(written(tmp_path, described_star(2)), [1])
    with pytest.raises(FabricError, match="leaves and spines"):
        KeptPorts.read(written(tmp_path, described_leaf_spine((0, 1), 1)), [1])


def test_a_job_runs_once_at_a_time(file):
    on = KeptPorts.read(file, [1], "b")
    with on.claimed():
        with pytest.raises(FabricError, match=r"Job b of .* is running"), on.claimed():
            pytest.fail("it ran twice")
        with KeptPorts.read(file, [2], "c").claimed():
            pass
    with on.claimed():
        pass


def test_jobs_take_turns_at_the_switch(file):
    one, other = (KeptPorts.read(file, [port], f"job{port}") for port in (1, 2))
    came = []

    def wait():
        with other.turn():
            came.append("other")

    waiting = threading.Thread(target=wait)
    with one.turn():
        waiting.start()
        waiting.join(0.1)
        came.append("one")
    waiting.join(seconds_here())
    assert came == ["one", "other"]


def test_a_switch_that_has_ended_meanwhile(file):
    on = KeptPorts.read(file, [1])
    file.unlink()
    with pytest.raises(FabricError, match="has ended"), on.turn():
        pytest.fail("it had a turn")


def test_the_bytes_of_a_host_are_those_of_its_own_end(file, tmp_path):
    """The loopback interface of this process stands for a host's: it receives what it sends."""
    namespace = f"/proc/{os.getpid()}/ns/net"
    on = KeptPorts.read(file, [1])
    here = replace(on.network.workers[0], link="eth:lo:2.5", namespace=namespace)
    fabric = KeptFabric(replace(on, network=replace(on.network, workers=(here,))), tmp_path)
    assert fabric.workers_have_hosts
    assert str(fabric.worker_namespace(0)) == namespace
    (wire,) = fabric.wire_bytes()
    assert wire.up == wire.down
