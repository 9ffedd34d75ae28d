"""`switchgnn train` over every transport gives what a plain loop of PyG gives."""

import json
import os
import signal

import numpy as np
import pytest

pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")


from switchgnn.planner.costs.forecast import PREDICTED_TRANSPORTS
from switchgnn.training.data.load import load_dataset
from tests.end_to_end.conftest import BOTH_ENDS, LOOPBACK, for_test_all, succeeded
from tests.support.commands import started, switchgnn
from tests.support.gpu import cuda_missing
from tests.support.kept_logs import take_kept_logs
from tests.support.listeners import listening, tree_of
from tests.support.markers import COMBINATION_ON_PYTHON, COMBINATIONS, full, words_of
from tests.training.plain_loop import train_plainly

EPOCHS = 5
TOLERANCE = 1e-4
EMBEDDED = ("embedded", "loopback")
TRANSPORTS = ("switch", "host", "host-partial", "g3", "strawman", "local", "switch-paper")


def train(combination, *arguments, epochs=EPOCHS, scratch=None):
    shape = ("--layers", "2", "--hidden", "8", "--dropout", "0", "--epochs", epochs, "--json")
    words = ("train", *words_of(combination), *shape, *arguments)
    return switchgnn(*words, seconds=300, scratch=scratch)


def finished(result):
    assert result.returncode == 0, result.stderr[-2000:]
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    return [line for line in lines if line["event"] == "finished"]


def over(*transports):
    return [word for name in transports for word in ("--transport", name)]


def plainly(data="karate", model="gcn", epochs=EPOCHS, seed=0):
    shape = {"model": model, "layers": 2, "hidden": 8, "epochs": epochs}
    return train_plainly(load_dataset(data, seed=seed), seed=seed, **shape)


def test_auto_trains_over_what_it_predicts_to_be_the_fastest():
    (report,) = finished(train(EMBEDDED, "--data", "karate", "--workers", 2, epochs=2))
    predicted = report["predicted_seconds"]
    assert {"switch", "host", "host-partial"} <= set(predicted) <= set(PREDICTED_TRANSPORTS)
    best = min(predicted, key=predicted.get)
    assert report["transport"] == ("switch" if best == "mixed" else best)
    assert all(np.isfinite(report["losses"]))


def test_with_paths_that_change_it_trains_like_one_process():
    losses, _, _ = plainly()
    named = ("--data", "karate", "--workers", 4, "--slots", 8, *over("switch"), "--adapt")
    (report,) = finished(train(EMBEDDED, *named))
    assert report["losses"] == pytest.approx(losses, abs=TOLERANCE)
    epochs = [epoch for run in report["paths"] for epoch in range(run["first"], run["last"] + 1)]
    assert epochs == list(range(1, EPOCHS + 1))
    counts = {sum(blocks for _, blocks in run["forward"]) for run in report["paths"]}
    assert len(counts) == 1
    assert counts.pop() > 1
    # Each change is one of the paths of the epoch from which on it counts.
    firsts = {run["first"] for run in report["paths"][1:]}
    assert {change["epoch"] for change in report["changes"]} >= firsts


@pytest.mark.parametrize("more", [(), pytest.param(("--per-machine", 2), marks=full)])
def test_a_parameter_server_trains_like_one_process(more):
    losses, _, _ = plainly()
    named = ("--data", "karate", "--workers", 4, *over("host"), "--reduce", "parameter-server")
    (report,) = finished(train(EMBEDDED, *named, *more))
    assert report["reduce"] == "parameter-server"
    assert report["losses"] == pytest.approx(losses, abs=TOLERANCE)


@pytest.mark.parametrize("seed", [0, *(pytest.param(each, marks=full) for each in (1, 2))])
@pytest.mark.parametrize("model", ["gcn", pytest.param("sage", marks=full)])
@pytest.mark.parametrize("combination", BOTH_ENDS)
def test_replicas_of_a_vertex_cut_train_like_one_process(combination, model, seed):
    losses, _, accuracies = plainly(model=model, seed=seed)
    named = ("--data", "karate", "--workers", 4, "--model", model, "--seed", seed)
    named = (*named, "--partition", "vertex-cut")
    reports = finished(train(combination, *named, *over("switch", "host", "host-partial")))
    for report in reports:
        assert report["losses"] == pytest.approx(losses, abs=3e-6), report["transport"]
        assert report["test_accuracy"] == pytest.approx(accuracies["test"], abs=0.01)
    assert (reports[0]["send"], reports[0]["block_strategy"]) == ("replicas", "even")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--per-machine", 2), "--workers-per-machine is for rows of vertices"),
        ((*over("host"), "--sampling", 0.5), "--sampling is for rows of vertices"),
        ((*over("switch"), "--rows", 2), "leave these and --rows out"),
        (over("switch-paper"), "leave these and --rows out"),
    ],
)
def test_what_a_vertex_cut_has_not_is_refused(more, words):
    named = ("--data", "karate", "--workers", 4, "--partition", "vertex-cut")
    result = train(EMBEDDED, *named, *more)
    assert result.returncode == 2
    assert words in result.stderr


@pytest.mark.parametrize("combination", BOTH_ENDS)
def test_every_transport_trains_like_one_process(combination):
    transports = TRANSPORTS[:2] if "bmv2" in combination else TRANSPORTS
    losses, _, accuracies = plainly()
    named = ("--data", "karate", "--workers", 4)
    reports = finished(train(combination, *named, *over(*transports)))
    assert [report["transport"] for report in reports] == list(transports)
    for report in reports:
        assert report["losses"] == pytest.approx(losses, abs=TOLERANCE), report["transport"]
        assert report["test_accuracy"] == pytest.approx(accuracies["test"], abs=0.01)
        if report["transport"] != "local":
            assert all(link["up"] and link["down"] for link in report["bytes_per_link"])


@pytest.mark.parametrize(
    "combination", [*map(for_test_all, COMBINATIONS[::2]), COMBINATIONS[1], COMBINATION_ON_PYTHON]
)
def test_the_best_strategies_train_like_one_process(combination):
    losses, _, _ = plainly(epochs=3)
    named = ("--data", "karate", "--workers", "3", "--strategy", "best", "--slots", "12")
    (report,) = finished(train(combination, *named, *over("switch"), epochs=3))
    assert report["losses"] == pytest.approx(losses, abs=TOLERANCE)
    assert (report["strategy"], report["send"], report["order"]) == ("best", "cover", "gamr")
    assert report["block_strategy"].endswith("-cover")


@pytest.mark.parametrize("sampled", [False, pytest.param(True, marks=full)])
def test_a_training_goes_on_where_it_stopped(tmp_path, sampled):
    named = ("--data", "karate", "--workers", "2", "--evaluate-every", "2", "--dropout", "0.5")
    named = (*named, *over("host" if sampled else "switch"))
    named = (*named, *(("--sampling", "0.3") if sampled else ()))
    saved = ("--checkpoint", tmp_path / "saved")
    (whole,) = finished(train(EMBEDDED, *named, epochs=4))
    finished(train(EMBEDDED, *named, *saved, epochs=2))
    (rest,) = finished(train(EMBEDDED, *named, *saved, epochs=4))
    assert rest["losses"] == pytest.approx(whole["losses"][2:], abs=1e-6)
    assert {file.name for file in tmp_path.iterdir()} == {"saved", "saved.before"}


@pytest.mark.skipif(cuda_missing() is not None, reason=f"{cuda_missing()}")
@pytest.mark.parametrize("device", ["cuda"])
@pytest.mark.parametrize("model", ["gcn", "sage", "gin"])
def test_on_a_gpu_losses_are_those_of_one_process(device, model, tmp_path):
    losses, *_ = plainly(model=model)
    named = ("--data", "karate", "--workers", "2", "--model", model, "--device", device)
    saved = (*named, *over("switch"), "--checkpoint", tmp_path / "saved")
    (began,) = finished(train(EMBEDDED, *saved, epochs=2))
    (rest,) = finished(train(EMBEDDED, *saved))
    assert began["losses"] + rest["losses"] == pytest.approx(losses, abs=1e-3)


def test_a_comparison_as_a_user_sees_it(tmp_path):
    """Tables and sentences of them are in tests/commands/test_train.py."""
    plots, events = tmp_path / "plots", tmp_path / "events"
    printed = succeeded(
        *("train", "--data", "karate", "--workers", "3", "--epochs", "4", "--dropout", "0"),
        *(*over("switch", "local"), *LOOPBACK, "--plots", plots, "--tensorboard", events),
    ).stdout
    for sentence in ("Carried: switch ", "The losses agree with", "--no-precompute"):
        assert sentence in printed
    assert len(list(plots.iterdir())) == 6
    assert sorted(path.name for path in events.iterdir()) == ["local", "switch"]


def test_bytes_are_those_that_the_plan_predicts():
    """Only requests of waiting workers exceed the prediction."""
    named = ("--data", "random:300:2000:1", "--workers", "4")
    reports = finished(train(EMBEDDED, *named, *over(*TRANSPORTS[:3]), epochs=3))
    assert len(reports) == 3
    for report in reports:
        pairs = zip(report["bytes_per_link"], report["expected_bytes_per_link"], strict=True)
        for link, expected in pairs:
            for way in ("up", "down"):
                assert 0 < expected[way] <= link[way] <= 1.5 * expected[way], report["transport"]


def test_cached_rows_of_8_bits_train_about_as_well_with_fewer_bytes():
    named = ("--data", "digits", "--workers", 3, "--no-precompute", "--cache", "auto", "--bits", 8)
    reports = finished(train(EMBEDDED, *named, *over(*TRANSPORTS[1:3]), epochs=20))
    losses = plainly("digits", epochs=20)[0]
    for report in reports:
        assert report["losses"][-1] == pytest.approx(losses[-1], abs=0.05)
        expected = sum(sum(link.values()) for link in report["expected_bytes_per_link"])
        assert report["bytes_without"] == expected
        sent = sum(sum(link.values()) for link in report["bytes_per_link"])
        assert sent < 0.7 * report["bytes_without"]
        assert 0 < report["skipped_rows"] < report["rows"]
        assert report["compression"] == "--cache auto --bits 8"
        assert report["epochs"][0]["epsilon"] == 0.1 < report["epsilon"]


OWN_MODEL = """
import torch
from torch_geometric.nn import BatchNorm, GATConv, GCNConv, GraphNorm

class Net(torch.nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = GCNConv(features, 8), GCNConv(8, classes)
        self.norms = torch.nn.Sequential(BatchNorm(8), GraphNorm(8))

    def forward(self, x, edges):
        return self.second(self.norms(self.first(x, edges)).relu(), edges)

def attention(features, classes):
    return GATConv(features, classes)

def broken(features, classes):
    return 1 / 0
"""


def own_model(tmp_path, text, name="Net"):
    (tmp_path / "own.py").write_text(text)
    return ("--data", "karate", "--model", f"{tmp_path}/own.py:{name}")


def test_a_model_of_ones_own_trains_like_one_process(tmp_path):
    named = (*own_model(tmp_path, OWN_MODEL), "--workers", "3")
    ours, local = finished(train(EMBEDDED, *named, *over("switch", "local")))
    assert ours["losses"] == pytest.approx(local["losses"], abs=TOLERANCE)
    assert ours["model"] == "Net"


def weighted_graph(tmp_path):
    rng = np.random.default_rng(0)
    edges, x = rng.integers(0, 30, (2, 90)), rng.normal(size=(30, 4)).astype(np.float32)
    weights = rng.uniform(0.5, 2, 90)
    kept = np.unique(edges.min(axis=0) * 30 + edges.max(axis=0), return_index=True)[1]
    arrays = {"edge_index": edges[:, kept], "edge_weight": weights[kept], "x": x}
    np.savez(tmp_path / "w.npz", **arrays, y=rng.integers(0, 3, 30))
    return ("--data", tmp_path / "w.npz", "--edge-weights", "--workers", 3)


def test_weights_of_edges_train_like_one_process(tmp_path):
    how = over("switch", "host", "local")
    switch, hosts, local = finished(train(EMBEDDED, *weighted_graph(tmp_path), *how))
    for report in (switch, hosts):
        assert report["losses"] == pytest.approx(local["losses"], rel=3e-6)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--model", "sage"), "The model sage does not use edge weights"),
        (("--transport", "g3"), "--transport g3 adds rows up as they are"),
    ],
)
def test_what_has_no_weights_of_edges_is_refused(tmp_path, more, words):
    result = train(EMBEDDED, *weighted_graph(tmp_path), *more)
    assert result.returncode == 2
    assert words in result.stderr


def test_auto_takes_host_where_layers_need_rows(tmp_path):
    named = (*own_model(tmp_path, OWN_MODEL, "attention"), "--workers", "3")
    ours, local = finished(train(EMBEDDED, *named, *over("auto", "local")))
    assert ours["transport"] == "host"
    assert ours["losses"] == pytest.approx(local["losses"], abs=TOLERANCE)


@pytest.mark.parametrize(
    ("name", "words", "traced"),
    [
        ("attention", "as in attention", False),
        ("broken", "failed, in line 19 (broken): ZeroDivisionError", True),
    ],
)
def test_a_model_that_cannot_be_trained_is_refused_at_once(tmp_path, name, words, traced):
    result = train(EMBEDDED, *own_model(tmp_path, OWN_MODEL, name), *over("switch"))
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


@pytest.mark.parametrize("transport", ["host", pytest.param("switch", marks=full)])
def test_the_worker_whose_model_fails_is_named_with_its_lines(transport, tmp_path):
    """Not the others, which fail because they miss it."""
    named = (*own_model(tmp_path, FAILING_MODEL), "--workers", "3", *over(transport))
    result = train(EMBEDDED, *named, scratch=tmp_path, epochs=9)
    assert result.returncode == 2
    assert len(result.stdout.splitlines()) == 2
    assert [line for line in result.stderr.splitlines() if line.startswith("Error: ")] == [
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


@pytest.mark.parametrize("transport", ["host", pytest.param("local", marks=full)])
def test_workers_that_are_killed_while_they_build_their_model_leave_no_files(transport, tmp_path):
    """PyG has written code for the layers into files by then."""
    named = (*own_model(tmp_path, KILLED_MODEL), "--workers", "2", *over(transport))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    result = train(EMBEDDED, *named, scratch=scratch)
    assert result.returncode == 2
    assert "was killed by signal 9, probably for lack of memory" in result.stderr
    take_kept_logs(scratch)
    assert list(scratch.iterdir()) == []


def test_nothing_listens_beyond_loopback(tmp_path):
    words = ("train", "--data", "karate", "--json", "--workers", "2", "--epochs", "100000")
    with started(*words, *over("switch"), *LOOPBACK, log=tmp_path / "log") as child:
        assert json.loads(child.stdout.readline())
        found = listening(tree_of(child.pid))
        os.kill(child.pid, signal.SIGINT)
        child.stdout.read()
    assert found
    assert all(address.is_loopback for address, _ in found), found
