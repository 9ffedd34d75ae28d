# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`--live`: the page of a run and of a training, read as a program and as a browser."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from contextlib import contextmanager

import pytest

from tests.end_to_end.conftest import switchgnn
from tests.live.browser import browser, complaints, drawn
from tests.support.levels import browser_missing
from tests.support.markers import needs_bmv2, needs_mininet, some_of, words_of
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
LOOPBACK = ("--target", "embedded", "--fabric", "loopback")
RUN = ("run", "--graph", "karate", "--workers", 4, "--json")
# So many that a page, which is told twice a second, sees some of them.
EPOCHS = 200
TRAIN = ("train", "--data", "karate", "--workers", 2, "--epochs", EPOCHS, "--dropout", 0, "--json")
ROUNDS = 15
FAULT = ("--faults", "w1.loss=0.1,seed=3")
LEAF_SPINE = ("--topology", "leaf-spine")
needs_training = pytest.mark.skipif(
    importlib.util.find_spec("torch_geometric") is None, reason="PyTorch Geometric is not installed"
)
needs_browser = pytest.mark.skipif(bool(browser_missing()), reason=browser_missing() or "")
# Switch and fabric, and the topology; on BMv2 one of them for test-all.
NETWORKS = some_of(
    lambda switch, topology: switch == 0 or topology == 1,
    [
        pytest.param(("embedded", "loopback"), id="embedded-loopback"),
        pytest.param(("bmv2", "mininet"), id="bmv2-mininet", marks=[needs_mininet, needs_bmv2]),
    ],
    [pytest.param((), id="star"), pytest.param(LEAF_SPINE, id="leaf-spine")],
)


class Live:
    """A command with --live, and all snapshots of it."""

    def __init__(self, process, folder):
        self.process = process
        self.log = folder / "stderr"
        found = wait_until(
            lambda: re.search(r"^Live: (http://127\.0\.0\.1:\d+/)$", self.log.read_text(), re.M),
            "the address of the page",
        )
        self.address = found[1]
        self.snapshots = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        with urllib.request.urlopen(f"{self.address}events", timeout=seconds_here(60)) as answer:  # noqa: S310
            for line in answer:
                if line.startswith(b"data: "):
                    snapshot = json.loads(line.removeprefix(b"data: "))
                    self.snapshots[snapshot["number"]] = snapshot

    def finish(self, code=0):
        output, _ = self.process.communicate(timeout=seconds_here(100))
        assert self.process.returncode == code, self.log.read_text()[-2000:]
        self._reader.join(seconds_here(20))
        assert not self._reader.is_alive()
        return output, self.snapshots[max(self.snapshots)]


def live(folder, *words):
    return showing(folder, *words, "--live")


@contextmanager
def showing(folder, *words):
    with (folder / "stderr").open("w") as error:
        process = subprocess.Popen(
            [sys.executable, "-m", "switchgnn.commands", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=error,
            text=True,
            env={**os.environ, "TMPDIR": str(folder)},
        )
    try:
        yield Live(process, folder)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=seconds_here(60))
        process.stdout.close()


def network_of(snapshot):
    return snapshot["picture"], snapshot["workers"], snapshot["switches"], snapshot["cables"]


@pytest.mark.parametrize(("combination", "topology"), NETWORKS)
def test_the_last_numbers_are_those_of_the_report(combination, topology, tmp_path):
    with live(
        tmp_path, *RUN, "--rounds", ROUNDS, *words_of(combination), *topology, *FAULT
    ) as running:
        output, last = running.finish()
    report = json.loads(output)
    picture, workers, switches, cables = network_of(last)
    assert last["ended"] == {"outcome": "done", "words": "Every sum equals the reference."}
    assert {worker["state"] for worker in workers} == {"finished"}
    assert [worker["rounds"] for worker in workers] == [ROUNDS] * 4
    assert [worker["blocks"] for worker in workers] == [picture["steps"]] * 4
    for worker, told in zip(workers, report["per_worker"], strict=True):
        if report["wires"] == "sockets":
            assert worker["link"]["bytes_up"] == told["bytes_up"]
            assert worker["link"]["bytes_down"] == told["bytes_down"]
        assert worker["link"]["bytes_up"] > 0
    for name in ("recalls", "fetches"):
        assert sum(worker[name] for worker in workers) == report["repairs"].get(name, 0)
    lost = sum(worker["link"]["lost"] for worker in workers)
    assert lost == report["faults_injected"]["lost"] > 0
    assert sum(switch["contributions"] for switch in switches) == report["contributions"]
    assert all(switch["up"] for switch in switches)
    # Values that BMv2 does not count, or that have no counter.
    on_bmv2 = combination[0] == "bmv2"
    assert [switch["slots_used"] is None for switch in switches] == [on_bmv2] * len(switches)
    assert len(switches) == (3 if topology else 1)
    assert len(cables) == (2 if topology else 0)
    assert all((cable["bytes_up"] is not None) == on_bmv2 for cable in cables)
    # The page also showed it while it ran.
    exchanging = [each for each in running.snapshots.values() if each["step"] == "exchanging"]
    assert len(exchanging) >= 2
    assert len(last["points"]) >= 2


@needs_training
@pytest.mark.parametrize("transports", [("switch", "host", "local")], ids="-".join)
def test_a_training_and_its_losses(transports, tmp_path):
    words = [word for name in transports for word in ("--transport", name)]
    with live(tmp_path, *TRAIN, *LOOPBACK, *words) as running:
        output, last = running.finish()
    reports = [json.loads(line) for line in output.splitlines()]
    reports = [each for each in reports if each["event"] == "finished"]
    assert last["ended"] == {"outcome": "done", "words": f"All {EPOCHS} epochs are done."}
    assert last["epochs_asked"] == EPOCHS
    some = [each for each in running.snapshots.values() if 0 < len(each["epochs"]) < EPOCHS]
    assert some
    for each in some:
        assert each["step"] == f"training: {len(each['epochs'])} of {EPOCHS} epochs done"
    # One after the other: the last picture is that of the last transport.
    for name, report in zip(transports, reports, strict=True):
        final = [
            each
            for each in running.snapshots.values()
            if each["picture"] and each["picture"]["transport"] == name
        ][-1]
        assert [each["loss"] for each in final["epochs"]] == report["losses"]
        # One process has no link.
        traffic = report["traffic"] if name != "local" else []
        for worker, told in zip(final["workers"], traffic, strict=True):
            assert worker["link"]["bytes_up"] == told["bytes_up"]
            assert (worker["blocks"] is None) == (name != "switch")
    assert last["workers"] == []


def test_ctrl_c_is_told_and_ends_as_without(tmp_path):
    with live(tmp_path, *RUN, "--rounds", 100_000, *LOOPBACK) as running:
        wait_until(
            lambda: any(each["step"] == "exchanging" for each in list(running.snapshots.values())),
            "an exchange",
        )
        running.process.send_signal(signal.SIGINT)
        _, last = running.finish(130)
    assert last["ended"] == {"outcome": "interrupted", "words": "Interrupted."}


def test_a_run_that_fails_is_told(tmp_path):
    options = (
        "--faults",
        "w1.up.loss=0.9999999",
        "--patience",
        0.5,
        "--log-dir",
        tmp_path / "logs",
    )
    with live(tmp_path, *RUN, "--rounds", 2, *LOOPBACK, *options) as running:
        _, last = running.finish(2)
    assert last["ended"]["outcome"] == "failed"
    assert last["ended"]["words"].startswith("Worker ")
    assert last["ended"]["words"] in running.log.read_text().replace("\n", " ")


def test_a_port_without_a_page_is_one_sentence():
    done = switchgnn(*RUN, *LOOPBACK, "--live-port", 0)
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["Error: --live-port is the port of a page: add --live."]


@needs_browser
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("--graph", "digits", "--rounds", 48, *FAULT), id="browser-star-fault"),
        pytest.param(("--rounds", 300, *LEAF_SPINE), id="browser-leaf-spine"),
    ],
)
def test_a_browser_draws_what_is_told(words, tmp_path):
    with browser(tmp_path) as driver, live(tmp_path, *RUN, *LOOPBACK, *words) as running:
        driver.get(running.address)
        seen = []
        wait_until(
            lambda: seen.append(drawn(driver)) or seen[-1]["ended"],
            "the end of the run",
            seconds=60,
        )
        output, last = running.finish()
        final = drawn(driver)
        assert complaints(driver) == []
    # The picture matches one of the snapshots.
    known = [each for each in seen if each["number"] in running.snapshots]
    assert len({each["number"] for each in known}) >= 3
    for each in known:
        told = running.snapshots[each["number"]]
        passed = [worker["link"]["bytes_up"] for worker in told["workers"]]
        assert [link["up"] for link in each["links"]] == [
            "" if each is None else str(each) for each in passed
        ]
        for worker, drawing, row in zip(
            told["workers"], each["workers"], each["rowClasses"], strict=True
        ):
            assert drawing["state"] == worker["state"]
            assert drawing["marked"]
            assert drawing["repairing"] == worker["repairing"] == ("repairing" in row)
    if "--faults" in words:
        assert any(link["losing"] for each in known for link in each["links"])
        assert any(worker["repairing"] for each in known for worker in each["workers"])
        waited_for = [each["workers"] for each in known]
        assert any(worker["state"] == "waiting" for each in waited_for for worker in each)
    assert final["number"] == last["number"]
    assert final["ended"] == "done"
    assert not final["lost"]
    report = json.loads(output)
    assert [int(link["up"]) for link in final["links"]] == [
        worker["bytes_up"] for worker in report["per_worker"]
    ]
    assert len(final["switches"]) == len(last["switches"]) == (3 if LEAF_SPINE[0] in words else 1)
    assert len(final["cables"]) == len(last["cables"])
    assert final["blocks"] == [worker["blocks"] for worker in last["workers"]]
