"""Gradients added up in buckets: which, when, in which class, and the same sums as at once."""

import pytest

pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

from torch_geometric.nn.models import GCN, GraphSAGE

from switchgnn.training.buckets import split_in_buckets
from switchgnn.training.layers import models
from tests.training import threads
from tests.training.helpers import said_by_the_first_of_two
from tests.training.threads import TOLERANCE, ThreadSums, distance, train_in_threads

# Its first layer has 82 kB, the second 1.4 MB.
WIDE = 600


@pytest.mark.parametrize(
    ("layers", "sizes", "found"),
    [
        ("210", (100, 100, 100), [[0], [1], [2]]),
        pytest.param("210", (1, 100, 100), [[0, 1], [2]], id="a small one joins the next"),
        pytest.param("210", (100, 100, 1), [[0], [1], [2]], id="the front one stays alone"),
        pytest.param("2110", (100, 80, 80, 80), [[0], [1, 2], [3]], id="layers stay whole"),
        pytest.param("10", (9, 9), [[0, 1]], id="all are small"),
    ],
)
def test_layers_become_buckets(layers, sizes, found):
    names = [f"convs.{layer}.lin.weight" for layer in layers]
    assert split_in_buckets(names, sizes, least=60) == found


class Watched(ThreadSums):
    """Notes at worker 0 when sums begin and when they are awaited."""

    events = None  # a list

    def start(self, values, what, *, late=False, **options):
        name, started = what.partition(" (")[0], super().start(values, what, **options)
        self.note(f"begin {name}{' late' * late}")

        def wait():
            self.note(f"await {name}")
            return started()

        return wait

    def note(self, event):
        if self.own:
            self.events.append(event)


class Own(GCN):
    """Someone's model, which may read weights before it calls their layer."""

    def forward(self, *arguments):
        return super().forward(*arguments)


@pytest.mark.parametrize("model", [GCN, GraphSAGE, Own])
def test_buckets_change_no_sum_and_wait_for_the_layer_that_needs_them(karate, model, monkeypatch):
    events, name = [], "sage" if model is GraphSAGE else "gcn"

    def distribute(net, part, remote, **options):
        wrap(net, part, remote, **options)
        for number, conv in enumerate(net.convs):
            called = f"layer {number}"
            if part.worker == 0:
                conv.register_forward_hook(lambda *_, called=called: events.append(called))

    wrap = threads.distribute
    monkeypatch.setattr(threads, "distribute", distribute)
    monkeypatch.setattr(Watched, "events", events)
    monkeypatch.setattr(threads, "ThreadSums", Watched)
    monkeypatch.setitem(models._BUILT, name, model)
    results = train_in_threads(karate, 2, model=name, hidden=WIDE)
    monkeypatch.undo()
    assert distance(karate, results, model=name, hidden=WIDE)[0] < TOLERANCE
    layers = [f"layer {number}" for number in range(3)]
    begin = ["begin the losses", "begin the gradients of bucket 1 late"]
    begin += ["begin the gradients of bucket 0", "await the losses"]
    wait = [f"await the gradients of bucket {number}" for number in range(2)]
    again = [wait[0], layers[0], wait[1], *layers[1:]] if model is not Own else [*wait, *layers]
    # The first epoch has one all-reduce of all; after the last one, all is awaited to evaluate.
    assert events == [*layers, *layers, *begin, *6 * [*again, *begin], *wait, *layers]


SCRIPT = r"""
import os, socket, sys, threading
from pathlib import Path
import numpy as np
import torch
from switchgnn.base.errors import SwitchGNNError
from switchgnn.host.base.pace import Pace
from switchgnn.host.registry import LocalTransport
from switchgnn.training import load_dataset, partition_dataset
from switchgnn.training.base.options import ModelOptions, TrainOptions
from switchgnn.training.buckets import Overlap
from switchgnn.training.exchange.gradients import together_in_file
from switchgnn.training.trainer import Training, train_as_worker

overlap, file, rank, words = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]

def tos():
    for each in Path("/proc/self/fd").iterdir():
        try:
            with socket.fromfd(int(each.name), socket.AF_INET, socket.SOCK_STREAM) as found:
                found.getpeername()
                yield found.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) >> 2
        except OSError:
            pass

class Failing(LocalTransport):
    rounds = 0
    def aggregate(self, *arguments):
        self.rounds += 1
        if "fail" in words and rank and self.rounds == 12:
            raise SwitchGNNError("The link is down.")
        return super().aggregate(*arguments)

data = load_dataset("karate")
parts = [*partition_dataset(data, np.arange(data.vertices, dtype=np.int32) % 2)]
training = Training(ModelOptions(layers=3, hidden=600), TrainOptions(4), overlap=Overlap(overlap))
losses = []
try:
    with together_in_file(file, rank, 2, Pace(timeout=100)):
        def note(report):
            losses.append(report.loss)
            marks = sorted({*tos()})
            print(f"epoch {report.epoch}: {marks}")
        link = Failing(len(parts[rank].vertices))
        train_as_worker(parts[rank], link, training, note, server="server" in words)
except SwitchGNNError as error:
    print(f"{type(error).__name__}: {error}")
print(losses)
"""


def run_two(folder, overlap, *words):
    return said_by_the_first_of_two(SCRIPT, overlap, folder / f"meeting-{overlap}", after=words)


@pytest.mark.whole
@pytest.mark.parametrize("words", [(), ("server",)])
def test_buckets_over_gloo_have_their_classes_and_the_same_losses(tmp_path, words):
    *epochs, losses = run_two(tmp_path, "classes", *words)
    assert epochs == [f"epoch {number}: [0, 1, 8]" for number in range(1, 5)]
    *plain, same = run_two(tmp_path, "none")
    assert plain == [f"epoch {number}: [0]" for number in range(1, 5)]
    assert [*map(float, losses[1:-1].split(","))] == pytest.approx(
        [*map(float, same[1:-1].split(","))], rel=1e-5
    )


@pytest.mark.whole
@pytest.mark.parametrize("words", [("fail",), ("fail", "server")])
def test_a_worker_that_fails_beside_an_all_reduce_is_named_at_once(tmp_path, words):
    *_, sentence, _ = run_two(tmp_path, "classes", *words)
    assert sentence == "LostWorkerError: Worker 1 has failed: The link is down."
