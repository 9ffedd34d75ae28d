# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn train` over every transport gives what a plain loop of PyG gives."""

import json
import signal
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

from switchgnn.planner.costs.forecast import WAYS  # noqa: E402
from switchgnn.training.data.load import load_dataset  # noqa: E402
from tests.end_to_end.conftest import switchgnn  # noqa: E402
from tests.support.gpu import cuda_missing  # noqa: E402
from tests.support.kept_logs import take_kept_logs  # noqa: E402
from tests.support.listeners import listening, tree_of  # noqa: E402
from tests.support.markers import (  # noqa: E402
    COMBINATION_ON_PYTHON,
    COMBINATIONS,
    some_of,
    words_of,
)
from tests.training.plain_loop import train_plainly  # noqa: E402

EPOCHS = 5
TOLERANCE = 1e-4


def train(combination, *arguments, epochs=EPOCHS, scratch=None):
    where = words_of(combination)
    shape = ("--layers", "2", "--hidden", "8", "--dropout", "0", "--epochs", str(epochs))
    return switchgnn("train", *where, *shape, "--json", *arguments, seconds=300, scratch=scratch)


def finished(result):
    assert result.returncode == 0, result.stderr[-2000:]
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    return [line for line in lines if line["event"] == "finished"]


TRANSPORTS = ("switch", "host", "host-partial", "g3", "strawman", "local")


@pytest.mark.parametrize("asked", [(), ("--transport", "auto")], ids=["default", "asked"])
def test_auto_trains_over_what_it_predicts_to_be_the_fastest(asked):
    result = switchgnn(
        *("train", "--data", "karate", "--workers", "2", "--epochs", "2", "--dropout", "0"),
        *("--fabric", "loopback", *asked, "--json"),
        seconds=300,
    )
    (report,) = finished(result)
    predicted = report["predicted_seconds"]
    assert {"switch", "host", "host-partial"} <= set(predicted) <= set(WAYS)
    best = min(predicted, key=predicted.get)
    assert report["transport"] == ("switch" if best == "mixed" else best)
    assert all(np.isfinite(report["losses"]))


# Wide features, many sources in common: the switch sends the fewest bytes over slow links.
DENSE = ("--data", "digits:80", "--workers", "8", "--hidden", "64", "--bandwidth", "20")
FOR_THE_SWITCH = (*DENSE, "--layers", "3")
# Both layers exchange narrow rows only.
FOR_HOSTS = (*DENSE, "--layers", "2")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (FOR_THE_SWITCH, "auto takes switch: the exchanges of an epoch are predicted to take "),
        (FOR_HOSTS, "auto takes host-partial: the exchanges of an epoch are predicted to take "),
        ((*FOR_HOSTS, "--send", "cover"), "auto takes switch: only the switch uses --send."),
        ((*FOR_HOSTS, "--lanes", "16"), "auto takes switch: only the switch uses --lanes."),
    ],
    ids=["switch", "hosts", "send", "lanes"],
)
def test_the_default_says_what_it_takes_and_why(options, line):
    result = switchgnn(
        *("train", *options, "--epochs", "1", "--dropout", "0"),
        *("--target", "embedded", "--fabric", "loopback"),
        seconds=300,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    assert line in result.stderr
    # The row of the table that compares transports.
    assert f"\n  {line.split()[2].rstrip(':')} " in result.stdout


SETS = [pytest.param(each, id=str(each)) for each in (("karate", "gcn", 4), ("digits", "sage", 2))]


@pytest.fixture(scope="module", params=SETS)
def plain(request):
    data, model, workers = request.param
    trained = train_plainly(
        load_dataset(data), model=model, layers=2, hidden=8, epochs=EPOCHS, seed=0
    )
    return data, model, workers, trained


@pytest.mark.parametrize(
    ("plain", "combination"),
    some_of(lambda data, where: data == 0 or where == 0, SETS, COMBINATIONS),
    indirect=["plain"],
)
def test_every_transport_trains_like_one_process(combination, plain):
    data, model, workers, (losses, _, accuracies) = plain
    # Karate goes through all of them.
    transports = TRANSPORTS if data == "karate" else ("switch", "g3")
    named = ("--data", data, "--model", model, "--workers", str(workers))
    chosen = (word for name in transports for word in ("--transport", name))
    reports = finished(train(combination, *named, *chosen))
    assert [report["transport"] for report in reports] == list(transports)
    for report in reports:
        assert report["losses"] == pytest.approx(losses, abs=TOLERANCE), report["transport"]
        assert report["test_accuracy"] == pytest.approx(accuracies["test"], abs=0.01)
        if report["transport"] != "local":
            assert all(link["up"] and link["down"] for link in report["bytes_per_link"])


@pytest.mark.parametrize(
    ("combination", "transport"),
    some_of(lambda where, transport: where == transport == 0, COMBINATIONS, TRANSPORTS),
)
def test_every_transport_leaves_the_weights_of_one_process(combination, plain, transport, tmp_path):
    data, model, workers, (_, weights, _) = plain
    saved = tmp_path / "saved"
    named = ("--data", data, "--model", model, "--workers", str(workers))
    finished(train(combination, *named, "--transport", transport, "--checkpoint", str(saved)))
    with np.load(saved) as state:
        for name, expected in weights.items():
            found = torch.from_numpy(state[f"model/{name}"])
            assert torch.allclose(found, expected, atol=TOLERANCE), name


@pytest.mark.parametrize("combination", [*COMBINATIONS, COMBINATION_ON_PYTHON])
def test_the_best_strategies_train_like_one_process(combination):
    losses, _, _ = train_plainly(
        load_dataset("karate"), model="gcn", layers=2, hidden=8, epochs=3, seed=0
    )
    named = ("--data", "karate", "--workers", "3", "--strategy", "best", "--slots", "12")
    named = (*named, "--transport", "switch")
    (report,) = finished(train(combination, *named, epochs=3))
    assert report["losses"] == pytest.approx(losses, abs=TOLERANCE)
    assert (report["strategy"], report["send"], report["order"]) == ("best", "cover", "gamr")
    assert report["block_strategy"].endswith("-cover")


@pytest.mark.parametrize("sampled", [False, True])
def test_a_training_goes_on_where_it_stopped(tmp_path, sampled):
    where = ("embedded", "loopback")
    named = ("--data", "karate", "--workers", "2", "--evaluate-every", "2", "--dropout", "0.5")
    over = ("host", "--sampling", "0.3") if sampled else ("switch",)
    named = (*named, "--transport", *over)
    saved = ("--checkpoint", str(tmp_path / "saved"))
    (whole,) = finished(train(where, *named, epochs=4))
    finished(train(where, *named, *saved, epochs=2))
    (rest,) = finished(train(where, *named, *saved, epochs=4))
    assert rest["losses"] == pytest.approx(whole["losses"][2:], abs=1e-6)
    assert {file.name for file in tmp_path.iterdir()} == {"saved", "saved.before"}


def test_another_number_of_workers_goes_on_as_if_never_interrupted(tmp_path):
    where = ("embedded", "loopback")
    named = ("--data", "karate", "--evaluate-every", "2", "--transport", "switch")
    saved = (*named, "--checkpoint", str(tmp_path / "saved"))
    whole, *_ = train_plainly(
        load_dataset("karate"), model="gcn", layers=2, hidden=8, epochs=4, seed=0
    )
    (began,) = finished(train(where, *saved, "--workers", "2", epochs=2))
    (rest,) = finished(train(where, *saved, "--workers", "3", epochs=4))
    assert began["losses"] + rest["losses"] == pytest.approx(whole, abs=2e-5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--data", "nowhere"), "nowhere"),
        (("--data", "cora", "--root", "/nonexistent"), "cora"),
        (("--faults", "loss=2"), "loss"),
        (("--model", "gat"), "there is no model gat"),
        (("--model", "/nonexistent.py:net"), "/nonexistent.py does not exist"),
    ],
)
def test_what_cannot_be_done_is_said(arguments, words):
    result = train(("embedded", "loopback"), *arguments)
    assert result.returncode == 2
    assert words in result.stderr.lower()
    assert "Traceback" not in result.stderr


@pytest.mark.skipif(cuda_missing() is None, reason="there is a GPU")
def test_a_gpu_that_is_not_there():
    result = train(("embedded", "loopback"), "--device", "cuda")
    assert result.returncode == 2
    assert "There is no GPU here that PyTorch can use" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.skipif(cuda_missing() is not None, reason=f"{cuda_missing()}")
@pytest.mark.parametrize("device", ["cuda"])
@pytest.mark.parametrize("model", ["gcn", "sage", "gin"])
def test_on_a_gpu_losses_are_those_of_one_process(device, model, tmp_path):
    losses, *_ = train_plainly(
        load_dataset("karate"), model=model, layers=2, hidden=8, epochs=EPOCHS, seed=0
    )
    named = ("--data", "karate", "--workers", "2", "--model", model, "--device", device)
    named = (*named, "--transport", "switch")
    saved = ("--checkpoint", str(tmp_path / "saved"))
    (began,) = finished(train(("embedded", "loopback"), *named, *saved, epochs=2))
    (rest,) = finished(train(("embedded", "loopback"), *named, *saved))
    assert began["losses"] + rest["losses"] == pytest.approx(losses, abs=1e-3)


def test_a_comparison_as_a_user_sees_it(tmp_path):
    """Tables fit 80 columns; losses are compared with one process; plots and events exist."""
    plots, events = tmp_path / "plots", tmp_path / "events"
    result = switchgnn(
        *("train", "--data", "karate", "--workers", "3", "--epochs", "4", "--dropout", "0"),
        *("--transport", "switch", "--transport", "local"),
        *("--target", "embedded", "--fabric", "loopback"),
        *("--plots", plots, "--tensorboard", events),
    )
    assert result.returncode == 0, result.stderr[-2000:]
    assert "Carried: switch " in result.stdout
    assert "The losses agree with those of one process, to " in result.stdout
    difference = float(result.stdout.split("one process, to ")[1].split()[0].rstrip("."))
    assert difference < TOLERANCE
    assert "--no-precompute" in result.stdout
    sentences = ("Ran", "Drawn", "Sums", "Carried")
    table = [line for line in result.stdout.splitlines() if not line.startswith(sentences)]
    assert all(len(line) <= 80 for line in table)
    assert len(list(plots.iterdir())) == 6
    assert sorted(path.name for path in events.iterdir()) == ["local", "switch"]


def test_bytes_are_those_that_the_plan_predicts():
    """Only requests of waiting workers exceed the prediction."""
    named = ("--data", "random:300:2000:1", "--workers", "4", "--epochs", "3")
    transports = ("switch", "host", "host-partial")
    chosen = (word for name in transports for word in ("--transport", name))
    reports = finished(train(("embedded", "loopback"), *named, *chosen))
    for report, transport in zip(reports, transports, strict=True):
        for link, expected in zip(
            report["bytes_per_link"], report["expected_bytes_per_link"], strict=True
        ):
            for way in ("up", "down"):
                assert expected[way] <= link[way] <= 1.5 * expected[way], transport


@pytest.mark.parametrize(
    ("combination", "mtu"),
    some_of(lambda where, mtu: mtu == 0 or where == 0, COMBINATIONS, ("9000", "fragment", "50")),
)
def test_frames_between_hosts_of_any_mtu(combination, mtu):
    names = ("host", "host-partial", "g3")
    chosen = (word for name in (*names, "local") for word in ("--transport", name))
    named = ("--data", "karate", "--workers", "3", "--mtu", mtu)
    *reports, local = finished(train(combination, *named, *chosen, epochs=2))
    assert [report["transport"] for report in reports] == list(names)
    assert local["mtu"] is None
    for report in reports:
        assert report["mtu"] == (mtu if mtu == "fragment" else int(mtu))
        assert report["losses"] == pytest.approx(local["losses"], abs=TOLERANCE)
        sent, expected = report["bytes_per_link"], report["expected_bytes_per_link"]
        for link, least in zip(sent, expected, strict=True):
            # More are control frames, of 60 bytes, and what was sent again on a busy machine.
            assert link["up"] >= least["up"] > 0
    if combination[1] == "mininet":
        assert all(report["wire_bytes_per_link"] for report in reports)


@pytest.mark.parametrize(
    "combination", [each for each in COMBINATIONS if "loopback" in words_of(each.values[0])]
)
def test_links_over_loopback_are_as_slow_as_they_are_said_to_be(combination):
    over = [word for name in ("switch", "host", "host-partial") for word in ("--transport", name)]
    what = ("--data", "karate", "--workers", "4", "--layers", "3", "--hidden", "256")
    reports = finished(train(combination, *what, "--bandwidth", "0.3", *over))
    assert [report["bandwidth"] for report in reports] == [0.3] * 3
    for report in reports:
        # Over any time a link carries what its rate allows, and one burst.
        busiest = max(report["epochs"][-1]["traffic"][way] for way in ("bytes_up", "bytes_down"))
        needed = (busiest - 15_360) * 8 / 0.3e6
        assert needed > 1
        assert sum(report["seconds"]) > 0.95 * needed, report["transport"]


@pytest.mark.parametrize("mtu", ["49", "9203", "word", ""])
def test_an_mtu_that_cannot_be_is_said(mtu):
    result = train(("embedded", "loopback"), "--transport", "host", "--mtu", mtu)
    assert result.returncode == 2
    assert "MTU" in result.stderr and "fragment" in result.stderr
    assert "Traceback" not in result.stderr


def test_one_checkpoint_is_not_for_several_transports(tmp_path):
    both = ("--transport", "switch", "--transport", "local")
    result = train(("embedded", "loopback"), *both, "--checkpoint", str(tmp_path / "saved"))
    assert result.returncode == 2
    assert "--checkpoint is for one --transport" in result.stderr


OWN_MODEL = """
import torch
from torch_geometric.nn import GATConv, GCNConv

class Net(torch.nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = GCNConv(features, 8), GCNConv(8, classes)

    def forward(self, x, edges):
        return self.second(self.first(x, edges).relu(), edges)

def attention(features, classes):
    return GATConv(features, classes)

def broken(features, classes):
    return 1 / 0
"""


def test_a_model_of_ones_own_trains_like_one_process(tmp_path):
    (tmp_path / "own.py").write_text(OWN_MODEL)
    named = ("--data", "karate", "--workers", "3", "--model", f"{tmp_path}/own.py:Net")
    where = ("embedded", "loopback")
    both = ("--transport", "switch", "--transport", "local")
    ours, local = finished(train(where, *named, *both))
    assert ours["losses"] == pytest.approx(local["losses"], abs=TOLERANCE)
    assert ours["model"] == "Net"


@pytest.mark.parametrize(
    ("name", "words", "traced"),
    [
        ("attention", "GATConv cannot be summed by the switch", False),
        ("broken", "failed, in line 18 (broken): ZeroDivisionError", True),
        ("absent", "AttributeError", False),
    ],
)
def test_a_model_that_cannot_be_trained_is_refused_at_once(tmp_path, name, words, traced):
    (tmp_path / "own.py").write_text(OWN_MODEL)
    result = train(("embedded", "loopback"), "--model", f"{tmp_path}/own.py:{name}")
    assert result.returncode == 2
    assert words in result.stderr
    # Of the user's own lines, where these are to blame.
    assert ("Traceback" in result.stderr) is traced
    assert "switchgnn/" not in result.stderr


FAILING_MODEL = """
import os
import torch_geometric.nn

class Net(torch_geometric.nn.GCN):
    def __init__(self, inputs, classes):
        super().__init__(inputs, 8, 2, classes)
        self.epochs = 0

    def forward(self, x, edges):
        self.epochs += 1
        if os.environ.get("RANK") == "1" and self.epochs > 2:
            self.complain(x)
        return super().forward(x, edges)

    def complain(self, x):
        raise RuntimeError(f"no such rows: {x.shape[1]}")
"""


@pytest.mark.parametrize("transport", ["switch", "host"])
def test_the_worker_whose_model_fails_is_named_with_its_lines(transport, tmp_path):
    """Not the others, which fail because they miss it."""
    (tmp_path / "own.py").write_text(FAILING_MODEL)
    named = ("--data", "karate", "--workers", "3", "--model", f"{tmp_path}/own.py:Net")
    result = train(
        ("embedded", "loopback"), *named, "--transport", transport, scratch=tmp_path, epochs=9
    )
    assert result.returncode == 2
    assert len(result.stdout.splitlines()) == 2
    errors = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert errors == [
        f"Error: Worker 1: The model {tmp_path}/own.py:Net failed, in line 17 (complain): "
        "RuntimeError: no such rows: 34."
    ]
    trace = result.stderr[result.stderr.index("Traceback") : result.stderr.index("Error: Worker")]
    assert 'own.py", line 13, in forward' in trace
    assert 'own.py", line 17, in complain' in trace
    assert "switchgnn/" not in trace


KILLED_MODEL = """
import os, signal, sys
import torch_geometric.nn

class Net(torch_geometric.nn.GCN):
    def __init__(self, inputs, classes):
        super().__init__(inputs, 8, 2, classes)
        if "train-worker" in sys.argv:
            os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("transport", ["host", "local"])
def test_workers_that_are_killed_while_they_build_their_model_leave_no_files(transport, tmp_path):
    """PyG has written code for the layers into files by then."""
    (tmp_path / "own.py").write_text(KILLED_MODEL)
    named = ("--data", "karate", "--workers", "2", "--model", f"{tmp_path}/own.py:Net")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    where = ("embedded", "loopback")
    result = train(where, *named, "--transport", transport, scratch=scratch)
    assert result.returncode == 2
    assert "was killed by signal 9, probably for lack of memory" in result.stderr
    take_kept_logs(scratch)
    assert list(scratch.iterdir()) == []


def test_nothing_listens_beyond_loopback():
    command = (sys.executable, "-m", "switchgnn.commands", "train", "--data", "karate", "--json")
    options = ("--workers", "2", "--epochs", "100000", "--transport", "switch")
    where = ("--target", "embedded", "--fabric", "loopback")
    with subprocess.Popen(
        [*command, *options, *where], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert json.loads(process.stdout.readline())
            found = listening(tree_of(process.pid))
        finally:
            process.send_signal(signal.SIGINT)
    assert found
    assert all(address.is_loopback for address, _ in found), found
