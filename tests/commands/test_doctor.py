"""`switchgnn doctor`: what it looks at, and what it says that fixes."""

import importlib.metadata
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from switchgnn.base.network import NetworkError
from switchgnn.base.network_file import Interface, interface_named, read_network
from switchgnn.commands import network as command
from switchgnn.commands.doctor import Finding, examine, examine_network
from switchgnn.controller import P4RuntimeClient, program_cookie
from switchgnn.p4src import load_strawman
from switchgnn.topologies import Target
from tests.network.usual import described_star
from tests.support.fabrics import bed
from tests.support.markers import needs_root
from tests.support.networks import own_network


@pytest.fixture
def install(monkeypatch):
    """Say where the checkout of an editable installation is; None: a wheel is installed."""
    return lambda folder: monkeypatch.setattr("switchgnn.base.machine.checkout", lambda: folder)


@pytest.fixture
def nothing_here(monkeypatch):

    def version(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setattr("shutil.which", lambda _name: None)


EDITABLE = Path("/src/switch gnn")


@pytest.mark.parametrize(
    ("folder", "torch", "numpy"),
    [
        (None, "'switchgnn[training]'", "switchgnn"),
        (EDITABLE, "-e '/src/switch gnn[training]'", "-e '/src/switch gnn'"),
    ],
)
def test_what_is_to_be_installed(folder, torch, numpy, install, nothing_here):
    install(folder)
    fixes = {finding.name: finding.fix for finding in examine()}
    assert fixes["torch"] == f"pip install {torch}"
    assert fixes["numpy"] == f"pip install {numpy}"
    assert any("-e" in fix.split() for fix in fixes.values()) == (folder is not None)


def test_every_extra_that_it_names_is_one(install, nothing_here):
    install(None)
    extras = set(importlib.metadata.metadata("switchgnn").get_all("Provides-Extra"))
    fixes = [finding.fix for finding in examine() if "[" in finding.fix]
    named = {fix.partition("[")[2].partition("]")[0] for fix in fixes}
    assert named >= {"test", "training", "plots", "hypergraph", "mininet"}
    assert named <= extras


def by_name(network):
    return {finding.name: finding for finding in examine_network(network)}


@pytest.mark.whole
def test_a_switch_says_what_it_serves(tmp_path):
    with bed(Target.EMBEDDED, 2, tmp_path) as made:
        network = described_star(2, grpc=made.address)
        assert by_name(network)["switch s0"].found == "no program yet; installing brings it"
        with P4RuntimeClient(made.address) as client:
            program = load_strawman()
            client.set_pipeline(program, program_cookie(program))
        assert "another program" in by_name(network)["switch s0"].found
        report = made.install()
        found = by_name(network)["switch s0"].found
        plan = made.plan.manifest.digest[:8]
        assert found == f"default (plan {plan}, 2 workers, session {report.session})"


@pytest.mark.whole
def test_a_switch_that_is_not_there(tmp_path):
    found = by_name(described_star(2, grpc=f"unix:{tmp_path}/nobody"))["switch s0"]
    assert found.found is None
    assert found.required
    assert found.fix.startswith("start it: switchgnn switch")


@pytest.fixture
def no_switch(monkeypatch):
    """Not to wait for switches that are not there."""
    absent = Finding("switch", "P4Runtime", True, None, "start it")
    monkeypatch.setattr("switchgnn.commands.doctor._switch", lambda _: absent)


@needs_root
def test_the_machine_of_a_worker(tmp_path, no_switch):
    with own_network() as other:
        other.add_cable("sgdoc0", "sgdoc1")
        here = interface_named("sgdoc0")
        star = described_star(2, grpc=f"unix:{tmp_path}/nobody")
        mine = replace(star.workers[1], interface="sgdoc0", mac=here.mac, gloo="sgnone")
        network = replace(star, workers=(star.workers[0], mine))
        found = by_name(network)
        assert not any(name.startswith("worker 0") for name in found)
        assert found["worker 1: sgdoc0"].found == "MTU 1500"
        assert found["worker 1: sgnone"].found is None
        assert found["packet sockets"].found == "yes"
        for address, there in (("127.0.0.1:9561", "there"), ("192.0.2.77:9561", None)):
            told = replace(network, workers=(star.workers[0], replace(mine, metrics=address)))
            assert by_name(told)[f"worker 1: {address}"].found == there
        offloads = found["worker 1: sgdoc0, offloads"]
        if offloads.fix.startswith("ethtool"):
            assert offloads.found is None
            # What it says fixes it.
            subprocess.run(offloads.fix.split(), check=True, capture_output=True)
            assert by_name(network)["worker 1: sgdoc0, offloads"].found == "off"
        subprocess.run(["ip", "link", "set", "sgdoc0", "mtu", "100"], check=True)
        small = by_name(network)["worker 1: sgdoc0, MTU"]
        assert small.found is None
        subprocess.run(small.fix.split(), check=True)
        assert "worker 1: sgdoc0, MTU" not in by_name(network)
        subprocess.run(["ip", "link", "set", "sgdoc0", "down"], check=True)
        down = by_name(network)["worker 1: sgdoc0"]
        assert (down.found, down.fix) == (None, "ip link set sgdoc0 up")


HERE = {
    name: Interface(name, f"52:54:00:00:00:0{number}", ip, 1500, up)
    for number, (name, ip, up) in enumerate(
        [("enp1s0", "192.0.2.1", True), ("enp2s0", "", True), ("enp3s0", "", False)]
    )
}


@pytest.fixture(autouse=True)
def machine(monkeypatch):

    def named(name):
        if name not in HERE:
            raise NetworkError(f"no {name}")
        return HERE[name]

    monkeypatch.setattr(command, "interfaces", lambda: tuple(HERE.values()))
    monkeypatch.setattr(command, "interface_named", named)


def run(*words):
    return CliRunner().invoke(command.app, list(map(str, words)), catch_exceptions=False)


def test_from_draft_to_network(tmp_path):
    file = tmp_path / "network.toml"
    job = ("--job", "training-b")
    told = run("init", "--out", file, "--grpc", "192.0.2.9:9559", "--target", "bmv2", *job)
    assert "2 workers around switch s0, P4Runtime at 192.0.2.9:9559" in told.output
    assert read_network(file).switches[0].ports == {"1": "eth:enp1s0", "2": "eth:enp2s0"}
    told = run("worker", 0, "--interface", "enp1s0", "--gloo", "enp3s0", "--network", file)
    assert told.output == "Worker 0 is 52:54:00:00:00:00, 192.0.2.1, on enp1s0.\n"
    assert "2 workers around switch s0" in run("check", "--network", file).output
    worker = read_network(file).workers[0]
    assert (worker.interface, worker.ip, worker.gloo) == ("enp1s0", "192.0.2.1", "enp3s0")
    assert read_network(file).job == "training-b"


@pytest.mark.parametrize(
    ("words", "address"),
    [
        (("--metrics", "9561"), "127.0.0.1:9561"),
        (("--gloo", "enp1s0", "--metrics", "9561"), "192.0.2.1:9561"),
        (("--metrics", "lan-2:9561"), "lan-2:9561"),
    ],
)
def test_where_a_worker_serves_metrics(words, address, tmp_path):
    file = tmp_path / "network.toml"
    run("init", "--out", file)
    told = run("worker", 0, "--interface", "enp1s0", *words, "--network", file)
    assert told.output.endswith(f", on enp1s0; its metrics are on {address}.\n")
    assert read_network(file).workers[0].metrics == address
    # It stays when the worker is placed again.
    run("worker", 0, "--interface", "enp1s0", "--network", file)
    assert read_network(file).workers[0].metrics == address


@pytest.mark.parametrize("wrong", ["http", ":9561", "lan-2:0", "lan-2:65536", "a b:1", "-1"])
def test_where_no_metrics_can_be(wrong, tmp_path):
    file = tmp_path / "network.toml"
    run("init", "--out", file)
    with pytest.raises(NetworkError, match="Metrics cannot be served"):
        run("worker", 0, "--interface", "enp1s0", f"--metrics={wrong}", "--network", file)
    with pytest.raises(NetworkError, match="no IPv4 address"):
        words = ("--interface", "enp1s0", "--gloo", "enp2s0", "--metrics", 1)
        run("worker", 0, *words, "--network", file)
    assert read_network(file).workers[0].metrics == ""


def test_what_cannot_be(tmp_path):
    file = tmp_path / "network.toml"
    file.touch()
    with pytest.raises(NetworkError, match="exists already"):
        run("init", "--out", file)
    file.unlink()
    with pytest.raises(NetworkError, match="Cannot write"):
        run("init", "--out", tmp_path / "none" / "network.toml")
    assert not file.with_name("none").exists()
