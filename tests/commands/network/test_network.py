# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A network file, as its commands write it: first at the switch, then at each worker."""

import pytest
from typer.testing import CliRunner

from switchgnn.base.described import Interface, read_network
from switchgnn.base.network import NetworkError
from switchgnn.commands import network as command

HERE = {
    name: Interface(name, f"52:54:00:00:00:0{number}", ip, 1500, up)
    for number, (name, ip, up) in enumerate(
        [("enp1s0", "192.0.2.1", True), ("enp2s0", "", True), ("enp3s0", "", False)]
    )
}


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """A machine with three interfaces."""

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
    told = run("init", "--out", file, "--grpc", "192.0.2.9:9559", "--target", "bmv2")
    assert "2 workers around switch s0, P4Runtime at 192.0.2.9:9559" in told.output
    assert read_network(file).switches[0].ports == {"1": "eth:enp1s0", "2": "eth:enp2s0"}
    told = run("worker", 0, "--interface", "enp1s0", "--gloo", "enp3s0", "--network", file)
    assert told.output == "Worker 0 is 52:54:00:00:00:00, 192.0.2.1, on enp1s0.\n"
    assert "2 workers around switch s0" in run("check", "--network", file).output
    worker = read_network(file).workers[0]
    assert (worker.interface, worker.ip, worker.gloo) == ("enp1s0", "192.0.2.1", "enp3s0")


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (("--metrics", "9561"), "127.0.0.1:9561"),
        (("--gloo", "enp1s0", "--metrics", "9561"), "192.0.2.1:9561"),
        (("--metrics", "lan-2:9561"), "lan-2:9561"),
    ],
)
def test_where_a_worker_serves_metrics(words, place, tmp_path):
    file = tmp_path / "network.toml"
    run("init", "--out", file)
    told = run("worker", 0, "--interface", "enp1s0", *words, "--network", file)
    assert told.output.endswith(f", on enp1s0; its metrics are on {place}.\n")
    assert read_network(file).workers[0].metrics == place
    # It stays when the worker is placed again.
    run("worker", 0, "--interface", "enp1s0", "--network", file)
    assert read_network(file).workers[0].metrics == place


@pytest.mark.parametrize("wrong", ["http", ":9561", "lan-2:0", "lan-2:65536", "a b:1", "-1"])
def test_where_no_metrics_can_be(wrong, tmp_path):
    file = tmp_path / "network.toml"
    run("init", "--out", file)
    with pytest.raises(NetworkError, match="Metrics cannot be served"):
        run("worker", 0, "--interface", "enp1s0", f"--metrics={wrong}", "--network", file)
    with pytest.raises(NetworkError, match="no IPv4 address"):
        run(
            *("worker", 0, "--interface", "enp1s0", "--gloo", "enp2s0", "--metrics", 1),
            *("--network", file),
        )
    assert read_network(file).workers[0].metrics == ""


def test_an_interface_for_each_worker(tmp_path):
    file = tmp_path / "network.toml"
    run("init", "--interface", "enp3s0", "--out", file)
    assert len(read_network(file).workers) == 1


def test_what_cannot_be(tmp_path):
    file = tmp_path / "network.toml"
    file.touch()
    with pytest.raises(NetworkError, match="exists already"):
        run("init", "--out", file)
    file.unlink()
    with pytest.raises(NetworkError, match="no enp9s0"):
        run("init", "--interface", "enp9s0", "--out", file)
    with pytest.raises(NetworkError, match="Cannot write"):
        run("init", "--out", tmp_path / "none" / "network.toml")
    run("init", "--out", file)
    with pytest.raises(NetworkError, match="no worker 7"):
        run("worker", 7, "--interface", "enp1s0", "--network", file)
    assert not file.with_name("none").exists()
