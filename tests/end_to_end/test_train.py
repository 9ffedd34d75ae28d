# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn train` over every transport gives what a plain loop of PyG gives."""

import json

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

from switchgnn.training.load import load_dataset  # noqa: E402
from tests.end_to_end.conftest import COMBINATIONS, switchgnn  # noqa: E402
from tests.training.plain_loop import train_plainly  # noqa: E402

EPOCHS = 5
TOLERANCE = 1e-4


def train(combination, *arguments, epochs=EPOCHS):
    target, fabric = combination
    where = ("--target", target, "--fabric", fabric)
    shape = ("--layers", "2", "--hidden", "8", "--dropout", "0", "--epochs", str(epochs))
    return switchgnn("train", *where, *shape, "--json", *arguments)


def finished(result):
    assert result.returncode == 0, result.stderr[-2000:]
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    return [line for line in lines if line["event"] == "finished"]


@pytest.mark.parametrize("combination", COMBINATIONS)
@pytest.mark.parametrize(
    ("data", "model", "workers"), [("karate", "gcn", 4), ("digits", "sage", 2)]
)
def test_every_transport_trains_like_one_process(combination, data, model, workers, tmp_path):
    losses, weights, accuracies = train_plainly(
        load_dataset(data), model=model, layers=2, hidden=8, epochs=EPOCHS, seed=0
    )
    transports = ("switch", "host", "host-partial", "g3", "local")
    for transport in transports:
        saved = tmp_path / f"{transport}.pt"
        named = ("--data", data, "--model", model, "--workers", str(workers))
        result = train(combination, *named, "--transport", transport, "--checkpoint", str(saved))
        (report,) = finished(result)
        assert report["losses"] == pytest.approx(losses, abs=TOLERANCE)
        assert report["test_accuracy"] == pytest.approx(accuracies["test"], abs=0.01)
        state = torch.load(tmp_path / f"{transport}.pt.0", weights_only=True)["model"]
        for name, expected in weights.items():
            assert torch.allclose(state[name], expected, atol=TOLERANCE), name
        if transport != "local":
            assert all(link["up"] and link["down"] for link in report["bytes_per_link"])


def test_a_training_goes_on_where_it_stopped(tmp_path):
    where = ("embedded", "loopback")
    named = ("--data", "karate", "--workers", "2", "--evaluate-every", "2")
    saved = ("--checkpoint", str(tmp_path / "saved.pt"))
    (whole,) = finished(train(where, *named, epochs=4))
    finished(train(where, *named, *saved, epochs=2))
    (rest,) = finished(train(where, *named, *saved, epochs=4))
    assert rest["losses"] == pytest.approx(whole["losses"][2:], abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--data", "nowhere"), "nowhere"),
        (("--data", "cora", "--root", "/nonexistent"), "cora"),
        (("--faults", "loss=2"), "loss"),
    ],
)
def test_what_cannot_be_done_is_said(arguments, words):
    result = train(("embedded", "loopback"), *arguments)
    assert result.returncode == 2
    assert words in result.stderr.lower()
    assert "Traceback" not in result.stderr
