"""Workers that train: their tasks, their share of the cores, and how they report failures."""

import gc
import socket
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

import torch

from switchgnn.base.errors import SwitchGNNError
from switchgnn.host.registry import LocalTransport
from switchgnn.training import load_dataset, partition_dataset
from switchgnn.training.base.errors import ModelError
from switchgnn.training.base.options import TrainingOptions, TrainOptions
from switchgnn.training.exchange import gradients as meeting
from switchgnn.training.exchange.sums import RemoteSum
from switchgnn.training.layers.models import ModelOptions, build_model, distribute
from switchgnn.training.layers.pyg_layers import own_code
from switchgnn.training.torchrun import main
from switchgnn.training.trainer import Trainer
from tests.support.gpu import cuda_missing
from tests.training.helpers import said_by_the_first_of_two


@pytest.fixture
def eight_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(meeting.os, "sched_getaffinity", lambda _: set(range(8)))
    before = torch.get_num_threads()
    torch.set_num_threads(8)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(
    ("before", "variable", "processes", "threads"),
    [
        *((8, None, 1, 8), (8, None, 3, 2), (8, None, 8, 1), (8, None, 20, 1)),
        pytest.param(3, None, 2, 3, id="a smaller number is kept"),
        pytest.param(8, "8", 4, 8, id="the user has the last word"),
    ],
)
def test_each_process_takes_its_share_of_the_cores(
    monkeypatch, before, variable, processes, threads
):
    torch.set_num_threads(before)
    if variable is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", variable)
    meeting.share_cores(processes)
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize(
    ("rate", "link", "sharing"),
    [(956_406, "udp:a:1:b:2:8", 1), (318_802, "udp:a:1:b:2:8", 3), (2**64 - 1, "udp:a:1:b:2", 3)],
)
def test_tcp_sends_as_fast_as_a_limited_link(link, sharing, rate):
    """1,448 bytes of 1,514 at 8 Mbit/s; other files stay as they are."""
    (one, other), ours, theirs = socket.socketpair(), socket.create_server(("", 0)), socket.socket()
    with one, other, ours, theirs:
        theirs.connect(ours.getsockname())
        meeting.pace_gloo(link, sharing)
        found = theirs.getsockopt(socket.SOL_SOCKET, 47, 8)  # SO_MAX_PACING_RATE
        assert int.from_bytes(found, sys.byteorder) == rate
        assert one.send(b"still here") == len(other.recv(20))


# The first argument selects how worker 1 ends while worker 0 waits for its values.
SCRIPT = r"""
import os, sys
from pathlib import Path
import torch
from switchgnn.base.errors import SwitchGNNError
from switchgnn.host.base.pace import Pace
from switchgnn.training.exchange.gradients import GradientSums
from switchgnn.training.exchange.gradients import together_in_file

how, file, rank = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
try:
    with together_in_file(file, rank, 2, Pace(timeout=100)):
        GradientSums().add(torch.ones(1))
        if rank == 1 and how == "error":
            raise SwitchGNNError("The link is\x1b[2J down.")
        if rank == 1 and how == "killed":
            os.kill(os.getpid(), 9)
        GradientSums().add(torch.ones(1))
except SwitchGNNError as error:
    print(f"{type(error).__name__}: {error}")
"""


@pytest.mark.whole
@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("error", "Worker 1 has failed: The link is\\x1b[2J down."),
        ("killed", "Another worker has ended, cannot be reached, or computes for longer than "),
    ],
)
def test_a_worker_that_ends_is_named_to_the_others(how, sentence, tmp_path):
    lines = said_by_the_first_of_two(SCRIPT, how, tmp_path / "meeting")
    (line,) = [line for line in lines if "Error: " in line]
    assert line.startswith(f"LostWorkerError: {sentence}")


@pytest.mark.parametrize(
    ("options", "own", "share"),
    [({}, False, 0.5), ({}, True, 0.0), ({"input_dropout": 0.25}, True, 0.25)],
)
def test_a_model_of_ones_own_gets_no_dropout_of_inputs_unless_it_is_asked_for(
    tmp_path, options, own, share
):
    (tmp_path / "net.py").write_text("")
    asked = TrainingOptions(model=f"{tmp_path / 'net.py'}:Net" if own else "gcn", **options)
    assert asked.options(asked.shape(), 0).input_dropout == share


MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self, features, classes):
        super().__init__()

    def forward(self, called):
        return called()

def broken(features, classes):
    {}["absent"]
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(MODEL)
    return path


def forward(file, called):
    model = build_model(ModelOptions(f"{file}:Net"), 1, 1)
    with own_code(f"{file}:Net"):
        model(called)


def fails():
    raise ValueError("of a library.\nand more")


def test_a_library_that_the_model_has_called(file):
    with pytest.raises(ModelError) as raised:
        forward(file, fails)
    assert str(raised.value) == (
        f"The model {file}:Net failed, in line 9 (forward): ValueError: of a library."
    )
    trace = raised.value.details
    assert trace.startswith("Traceback (most recent call last):")
    assert "in forward" in trace.splitlines()[1]
    assert "in fails" in trace


def test_errors_of_ours_and_of_others_stay_what_they_are(file):
    def ours():
        raise SwitchGNNError("the switch is gone")

    with pytest.raises(SwitchGNNError, match=r"^the switch is gone$"):
        forward(file, ours)
    for model in (f"{file}:Net", "gcn"):
        with pytest.raises(ValueError, match="of a library"), own_code(model):
            fails()


def build(file, name):
    with pytest.raises(ModelError) as raised:
        build_model(ModelOptions(f"{file}:{name}"), 3, 2)
    return raised.value


def test_a_model_that_cannot_be_made(file):
    error = build(file, "broken")
    assert str(error).endswith("failed, in line 12 (broken): KeyError: 'absent'.")
    assert 'own.py", line 12, in broken' in error.details


@pytest.mark.parametrize(
    ("text", "name", "kind", "details"),
    [("class Net(:\n", "Net", "SyntaxError", "own.py"), (MODEL, "absent", "AttributeError", "")],
)
def test_a_file_or_name_that_cannot_be_loaded(file, text, name, kind, details):
    file.write_text(text)
    error = build(file, name)
    assert kind in str(error)
    assert details in error.details
    assert bool(details) == bool(error.details)


@pytest.mark.skipif(cuda_missing() is None, reason="there is a GPU")
def test_a_gpu_that_is_not_there(monkeypatch, capsys, tmp_path):
    for name in ("read_job", "read_network"):
        found = SimpleNamespace(classes=2)
        monkeypatch.setattr(f"switchgnn.training.torchrun.{name}", lambda _, found=found: found)
    monkeypatch.setattr(sys, "argv", ["train", str(tmp_path), "--device", "cuda"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert capsys.readouterr().err.startswith("Error: There is no GPU here that PyTorch can use")


class LateSum(RemoteSum):
    """Its results are noticed a second after they came, as where a thread starts late."""

    def result(self, *what):
        self.clock.waiting += 1.0
        return super().result(*what)


@contextmanager
def training(kind, epochs):
    """Yield the sums of one of two workers on karate, and its reports."""
    data = load_dataset("karate")
    part, _ = partition_dataset(data, np.arange(data.vertices, dtype=np.int32) % 2)
    model = build_model(ModelOptions(), part.features.shape[1], part.classes)
    with kind(LocalTransport(len(part.vertices))) as remote:
        distribute(model, part, remote)
        yield remote, Trainer(model, part, remote, TrainOptions(epochs=epochs)).run()


def test_a_worker_waits_no_longer_than_exchanges_take():
    with training(LateSum, 1) as (_, reports):
        (report,) = reports
    assert report.exchange >= report.waiting >= 1.0


class LitteringSum(RemoteSum):
    """It allocates enough for many collections of garbage in each exchange, and counts them."""

    collections = 0

    def result(self, *what):
        gc.callbacks.append(self._count)
        litter = [[number] for number in range(100_000)]
        gc.callbacks.remove(self._count)
        assert len(litter) == 100_000
        return super().result(*what)

    def _count(self, phase, _info):
        self.collections += phase == "start"


def test_garbage_is_collected_between_epochs_only():
    begun, count = [], lambda phase, _info: begun.append(phase)
    with training(LitteringSum, 3) as (remote, reports):
        next(reports)
        gc.callbacks.append(count)
        assert len(list(reports)) == 2
        gc.callbacks.remove(count)
    assert remote.collections == 0
    assert begun == ["start", "stop"] * 2
    assert gc.isenabled()
