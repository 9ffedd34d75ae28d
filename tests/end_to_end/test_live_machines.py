# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn live`: the page of a job whose switch and workers nobody has started for it."""

import re
import shlex
import signal
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")
pytest.importorskip("h11")
pytest.importorskip("prometheus_client")
pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

import switchgnn.torch as sg
from switchgnn.base.described import network_text, read_network
from switchgnn.base.metrics import ask_metrics
from switchgnn.controller.metrics import SwitchMetrics
from switchgnn.controller.target import client_of
from switchgnn.host.metrics import told_values
from switchgnn.training import load_dataset
from tests.end_to_end.conftest import switchgnn
from tests.end_to_end.test_live import showing
from tests.end_to_end.test_metrics import free_ports
from tests.network.usual import described_star
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until
from tests.torch.machines import one_machine

WORKERS = 2
PAGE = (Path(__file__).parents[2] / "docs/live.md").read_text()
[COMMAND] = re.findall(r"^```bash\n(switchgnn live .*)\n```$", PAGE, re.MULTILINE)
# It keeps running at the end, so that its metrics stay.
SCRIPT = """
import os
import sys
from torch_geometric.nn import GCN
import switchgnn.torch as sg

with sg.join("job", network="network.toml", faults="w1.loss=0.05,seed=3") as worker:
    model = worker.wrap(GCN(worker.data.num_features, 8, 2, worker.classes))
    for _ in range(3):
        model(worker.data.x, worker.data.edge_index).sum().backward()
    # In one write, as all of them write here.
    os.write(1, b"through\\n")
    sys.stdin.read()
"""


@pytest.mark.parametrize(
    "leaves", [pytest.param(0, id="star"), pytest.param(2, id="leaf-spine", marks=pytest.mark.full)]
)
def test_the_page_shows_what_workers_and_switches_say(leaves, tmp_path):
    data = load_dataset("karate")
    sg.write_job(data, WORKERS, tmp_path / "job", slots=16, leaves=leaves)
    (tmp_path / "script.py").write_text(SCRIPT)
    file = tmp_path / "network.toml"
    with one_machine(WORKERS, tmp_path, leaves=leaves) as machine:
        described, first = read_network(file), free_ports(WORKERS)
        workers = tuple(
            replace(worker, metrics=f"127.0.0.1:{first + number}")
            for number, worker in enumerate(described.workers)
        )
        file.write_text(network_text(replace(described, workers=workers)))
        # The command of the document, where its files are.
        named = {name: tmp_path / name for name in ("network.toml", "job/plan")}
        words = [named.get(word, word) for word in shlex.split(COMMAND)[1:]]
        assert set(named.values()) < set(words)
        with (
            showing(tmp_path, *words) as page,
            machine.child(machine.torchrun_words("script.py")) as script,
        ):
            for _ in range(WORKERS):
                assert script.stdout.readline() == "through\n", script.log.read_text()[-4000:]
            told = [
                told_values(ask_metrics(*worker.metrics_place, seconds=seconds_here(10)), number)
                for number, worker in enumerate(workers)
            ]
            readings = read_all(described)
            shown = wait_until(lambda: equal(page, told, readings), "a page that has heard all")
            assert shown["step"] == "session 1"
            assert shown["picture"]["target"] == "the embedded switch"
            for worker, values in zip(shown["workers"], told, strict=True):
                assert worker["blocks"] == values["blocks_total"] > 0
                assert worker["recalls"] == values["recalls_total"]
                assert worker["link"]["bytes_down"] == values["link_bytes_total/down"] > 0
            lost = [f"injected_faults_total/{way}/lost" for way in ("up", "down")]
            assert shown["workers"][1]["link"]["lost"] == sum(told[1][name] for name in lost)
            assert shown["workers"][0]["link"]["lost"] in (0, None)
            assert len(readings) == len(shown["switches"]) == (leaves + 1 if leaves else 1)
            assert len(shown["cables"]) == leaves
            for drawn, reading in zip(shown["switches"], readings, strict=True):
                assert drawn["up"] is True
                assert drawn["session"] == reading.session.session == 1
                assert drawn["contributions"] == reading.counters.passes.contributions > 0
                assert 0 < drawn["slots"] <= 16
            script.stdin.close()
            assert script.wait(seconds_here(100)) == 0
            # The workers have ended, and the page keeps the last values.
            silent = wait_until(
                lambda: all_silent(newest(page)) and newest(page), "workers that are gone"
            )
            assert [worker["blocks"] for worker in silent["workers"]] == [
                worker["blocks"] for worker in shown["workers"]
            ]
            page.process.send_signal(signal.SIGINT)
            output, last = page.finish(0)
    assert output == ""
    assert last["ended"]["outcome"] == "interrupted"
    assert page.log.read_text().count("\n") == 1


def read_all(described):
    """The counters of the switches, read by another client."""
    seconds = seconds_here(10)
    clients = [client_of(each, primary=False, deadline=seconds) for each in described.in_order]
    metrics = SwitchMetrics(clients)
    try:
        return metrics.readings()
    finally:
        metrics.close()


def newest(page):
    known = dict(page.snapshots)
    return known[max(known)] if known else None


def equal(page, told, readings):
    """The newest event, when workers and switches have reported everything."""
    shown = newest(page)
    if shown is None:
        return None
    passed = [worker["link"]["bytes_up"] for worker in shown["workers"]]
    frames = [switch["frames"] for switch in shown["switches"]]
    return (
        passed == [values["link_bytes_total/up"] for values in told]
        and frames == [sum(each.counters.outcomes.values()) for each in readings]
        and shown
    )


def all_silent(shown):
    return {worker["state"] for worker in shown["workers"]} == {"silent"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_begins_before_there_is_anybody(tmp_path, number):
    file = tmp_path / "network.toml"
    file.write_text(network_text(described_star(1, grpc=f"unix:{tmp_path}/nobody")))
    with showing(tmp_path, "live", "--network", file) as page:
        wait_until(lambda: (seen := newest(page)) and seen["step"] == "no answer from s0", "it")
        seen = newest(page)
        assert [worker["state"] for worker in seen["workers"]] == ["untold"]
        assert seen["switches"][0]["up"] is False
        page.process.send_signal(number)
        _, last = page.finish(0)
    assert last["ended"]["words"] == "The page is closed; the job continues."


def test_what_cannot_be_is_one_sentence(tmp_path):
    file = tmp_path / "network.toml"
    done = switchgnn("live", "--network", file)
    assert done.returncode == 2
    assert done.stderr.startswith(f"Error: Cannot read the network {file}: ")
    file.write_text(network_text(described_star(1)))
    done = switchgnn("live", "--network", file, "--plan", tmp_path)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith("Error: ")
    assert str(tmp_path) in line
