"""What shows a job while it runs: the page of `--live` and of `switchgnn live`, and metrics."""

import json
import os
import re
import shlex
import signal
import threading
import urllib.request
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

from switchgnn.base.network_file import network_text, read_network
from tests.end_to_end.conftest import LEAF_SPINE, LOOPBACK, needs_training, said
from tests.support.commands import started
from tests.support.listeners import free_ports
from tests.support.markers import needs_bmv2, needs_mininet, some_of, words_of
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

RUN = ("run", "--graph", "karate", "--workers", 4, "--json")
# So many that a page, which polls twice a second, sees some of them.
EPOCHS = 120
TRAIN = ("train", "--data", "karate", "--workers", 2, "--epochs", EPOCHS, "--dropout", 0, "--json")
ROUNDS = 15
FAULT = ("--faults", "w1.loss=0.1,seed=3")
NETWORKS = some_of(
    lambda switch, topology: topology == 1,
    [
        pytest.param(("embedded", "loopback"), id="embedded-loopback"),
        pytest.param(("bmv2", "mininet"), id="bmv2-mininet", marks=[needs_mininet, needs_bmv2]),
    ],
    [pytest.param((), id="star"), pytest.param(LEAF_SPINE, id="leaf-spine")],
)


class Live:
    """A command with a page, and all documents that a page has polled."""

    def __init__(self, child):
        self.child = child
        pattern = r"^Live: (http://127\.0\.0\.1:\d+/)$"
        found = wait_until(lambda: re.search(pattern, said(child), re.M), "the address of the page")
        self.address = found[1]
        self.documents = []
        self.gone = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        url = f"{self.address}metrics.json?page=test"
        while not self.gone.wait(0.05):
            with urllib.request.urlopen(url, timeout=seconds_here(60)) as answer:  # noqa: S310
                self.documents.append(json.load(answer))
            if self.documents[-1]["outcome"]:
                return

    def newest(self):
        return self.documents[-1] if self.documents else None

    def finish(self, code=0):
        output = self.child.stdout.read()
        assert self.child.wait(seconds_here(100)) == code, said(self.child)[-2000:]
        self._reader.join(seconds_here(20))
        assert not self._reader.is_alive()
        last = self.newest()
        return output, last, (last["outcome"], last["words"])


@contextmanager
def showing(folder, *words):
    with started(*words, log=folder / "stderr", scratch=folder) as child:
        live = Live(child)
        try:
            yield live
        finally:
            live.gone.set()


@pytest.mark.parametrize(("combination", "topology"), NETWORKS)
def test_the_last_numbers_are_those_of_the_report(combination, topology, tmp_path):
    words = (*RUN, "--rounds", ROUNDS, *words_of(combination), *topology, *FAULT)
    with showing(tmp_path, *words, "--live") as running:
        output, last, ended = running.finish()
    report = json.loads(output)
    assert ended == ("done", "Every sum equals the reference.")
    assert last["finished"]
    workers, switches = (
        [each["values"] for each in last[name]] for name in ("workers", "switches")
    )
    for worker, told in zip(workers, report["per_worker"], strict=True):
        assert worker["rounds_total"] == ROUNDS
        if report["wires"] == "sockets":
            assert worker["link_bytes_total/up"] == told["bytes_up"]
            assert worker["link_bytes_total/down"] == told["bytes_down"]
        assert worker["link_bytes_total/up"] > 0
    for name in ("recalls", "fetches"):
        told = report["repairs"].get(name, 0)
        assert sum(worker[f"{name}_total"] for worker in workers) == told
    names = [f"injected_faults_total/{way}/lost" for way in ("up", "down")]
    lost = sum(worker.get(name, 0) for worker in workers for name in names)
    assert lost == report["faults_injected"]["lost"] > 0
    assert sum(switch["contributions_total"] for switch in switches) == report["contributions"]
    assert all(switch["switch_up"] for switch in switches)
    # BMv2 does not report slots.
    assert ["slots" in switch for switch in switches] == [combination[0] != "bmv2"] * len(switches)
    assert len(switches) == (3 if topology else 1)
    # The page also showed it while it ran.
    exchanging = [each for each in running.documents if each["step"] == "exchanging"]
    assert len({each["workers"][0]["at"] for each in exchanging}) >= 2


@needs_training
def test_a_training_and_its_losses(tmp_path):
    transports = ("switch", "host", "local")
    words = [word for name in transports for word in ("--transport", name)]
    with showing(tmp_path, *TRAIN, *LOOPBACK, *words, "--live") as running:
        output, last, ended = running.finish()
    reports = [json.loads(line) for line in output.splitlines()]
    reports = [each for each in reports if each["event"] == "finished"]
    assert ended == ("done", f"All {EPOCHS} epochs are done.")
    assert last["epochs"] == EPOCHS
    some = [each for each in running.documents if 0 < len(each["losses"]) < EPOCHS]
    assert some
    for each in some:
        assert each["step"] == f"training: {len(each['losses'])} of {EPOCHS} epochs done"
    # One after the other: the last network is that of the last transport.
    for network, (name, report) in enumerate(zip(transports, reports, strict=True), 1):
        final = [each for each in running.documents if each["network"] == network][-1]
        assert final["where"].startswith(f"transport {name}, ")
        assert [loss for _, loss in final["losses"]] == report["losses"]
        # One process has no link.
        traffic = report["traffic"] if name != "local" else []
        for worker, told in zip(final["workers"], traffic, strict=True):
            assert worker["values"]["link_bytes_total/up"] == told["bytes_up"]
            assert ("blocks_total" in worker["values"]) == (name == "switch")
    assert last["workers"] == []


WORKERS = 2
PAGE = (Path(__file__).parents[2] / "docs/live.md").read_text()
[COMMAND] = re.findall(r"^```bash\n(switchgnn live .*)\n```$", PAGE, re.MULTILINE)
# It keeps running at the end, so that its metrics stay.
SCRIPT = """
import os
import sys
from torch_geometric.nn import GCN
import switchgnn.torch as sg

with sg.join("job", network="network.toml") as worker:
    model = worker.wrap(GCN(worker.data.num_features, 8, 2, worker.classes))
    for _ in range(3):
        model(worker.data.x, worker.data.edge_index).sum().backward()
    # In one write, as all of them write here.
    os.write(1, b"through\\n")
    sys.stdin.read()
"""


@needs_training
def test_the_documented_page_of_several_machines(tmp_path):
    import switchgnn.torch as sg  # noqa: PLC0415
    from switchgnn.training import load_dataset  # noqa: PLC0415
    from tests.torch.machines import one_machine  # noqa: PLC0415

    sg.write_job(load_dataset("karate"), WORKERS, tmp_path / "job", slots=16)
    (tmp_path / "script.py").write_text(SCRIPT)
    file = tmp_path / "network.toml"
    with one_machine(WORKERS, tmp_path) as machine:
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
            wait_until(lambda: heard(page.newest()), "a page that has heard all")
            script.stdin.close()
            assert script.wait(seconds_here(100)) == 0
            os.kill(page.child.pid, signal.SIGINT)
            output, last, ended = page.finish(0)
            assert said(page.child).count("\n") == 1
    assert output == ""
    assert ended == ("interrupted", "The page is closed; the job continues.")
    # The workers have ended, and the page keeps the last values.
    assert heard(last)
    assert last["where"] == "the embedded switch, several machines"
    assert 0 < last["switches"][0]["values"]["slots"] <= 16


def heard(shown):
    """Whether a document has what all workers and the switch have counted."""
    if shown is None or shown["step"] != "session 1":
        return False
    workers, switches = ([each["values"] for each in shown[of]] for of in ("workers", "switches"))
    return all(values.get("blocks_total") for values in workers) and all(
        values.get("contributions_total") for values in switches
    )
