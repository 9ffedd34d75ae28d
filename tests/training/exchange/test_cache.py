"""Training with cached and skipped rows: which they are, what is reported, what stays the same."""

import numpy as np
import pytest
import torch
from torch_geometric.nn import GCN

from switchgnn.host.base.compression import Compression
from switchgnn.planner.base.direction import Direction
from switchgnn.training.base.compression import CompressionOptions
from switchgnn.training.base.errors import TrainingError
from switchgnn.training.base.options import TrainingOptions
from switchgnn.training.data.partition import partition_dataset
from switchgnn.training.exchange.cache import LEAST, MOST, FollowingEpsilon, SkippedRows
from switchgnn.training.exchange.sums import RemoteSum
from switchgnn.training.joining import Joined
from switchgnn.training.script import Worker
from tests.training.exchange.test_columns import WORKERS as GRAPH_WORKERS
from tests.training.exchange.test_columns import Graph
from tests.training.gathering import Gathering, in_threads
from tests.training.plain_loop import train_plainly
from tests.training.threads import train_in_threads

WORKERS, LAYERS = 2, 3
AUTO, HALF, TENSOR_ID = CompressionOptions("auto"), CompressionOptions("0", rest=0.5), 5


def test_a_rise_relaxes_epsilon_and_a_fall_tightens_it():
    """The numbers follow from equations 6 and 7 by hand, with their cases swapped."""
    following = FollowingEpsilon(0.01)
    assert following.note(0.5) == 0.01  # and the mean is 0.5
    assert following.note(0.6) == pytest.approx(0.0105)  # the mean is 0.52
    assert following.note(0.53) == pytest.approx(0.0105)  # a rise by less than 0.02: 0.522
    assert following.note(0.5215) == pytest.approx(0.0105)  # a fall by less than 0.001: 0.5219
    assert following.note(0.5) == pytest.approx(0.00945)
    # A step is at most 0.01, up and down: 5 % and 10 % of 0.25 are more.
    following = FollowingEpsilon(0.25)
    assert [following.note(each) for each in (0.5, 0.6, 0.1)] == pytest.approx([0.25, 0.26, 0.25])


def test_epsilon_stays_in_its_range():
    following = FollowingEpsilon()
    assert max(following.note(float(epoch)) for epoch in range(200)) == MOST
    assert min(following.note(-float(epoch)) for epoch in range(200)) == LEAST


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bits": 12}, "32, 16 or 8 bits in exchanges, not 12"),
        ({"cache": "1.0"}, "from 0 to below 1, not 1.0"),
        ({"cache": "on"}, "is auto, off or a number from 0 to below 1, not on"),
        ({"error_feedback": True}, "numbers of 32 bits are not rounded"),
        ({"stochastic_rounding": True}, "numbers of 32 bits are not rounded"),
        ({"rest": 0.25}, "--rest 0.25 needs a cache"),
        ({"rest": float("nan"), "cache": "0.1"}, "not nan"),
    ],
)
def test_what_does_not_go_together_is_a_sentence(options, words):
    with pytest.raises(TrainingError, match=words):
        CompressionOptions(**options).check()


def test_there_is_no_dropout_with_a_cache_unless_it_is_asked_for():
    asked = TrainingOptions(compression=AUTO)
    asked.check_dropout()
    shape = asked.shape()
    assert (shape.dropout, asked.options(shape, 0).input_dropout) == (0, 0)
    for options in ({"dropout": 0.5}, {"input_dropout": 0.1}):
        with pytest.raises(TrainingError, match=r"--cache and --(input-)?dropout 0"):
            TrainingOptions(compression=AUTO, **options).check_dropout()
        TrainingOptions(**options).check_dropout()


def test_each_layer_has_a_site_and_evaluation_uses_the_same(karate):
    ends = []
    train_in_threads(karate, WORKERS, model="gin", epochs=1, ends=ends, precompute=False)
    forward, backward = Direction.FORWARD, Direction.BACKWARD
    widths = (karate.features.shape[1], 8, 8)
    there = [(tensor_id, forward, width) for tensor_id, width in enumerate(widths)]
    back = [(tensor_id, backward, width) for tensor_id, width in enumerate(widths)][:0:-1]
    assert ends[0].tensor_ids == [*there, *back, *there]


def test_epsilon_follows_the_training_accuracy_of_all_workers(karate):
    """The accuracy of a step is that after the step before it, which an evaluation reports."""
    sums = []
    results = train_in_threads(
        karate, WORKERS, model="gcn", compression=AUTO, evaluate_every=1, epochs=30, kept=sums
    )
    reports = results[0][0]
    first = train_plainly(karate, model="gcn", layers=LAYERS, hidden=8, epochs=0, seed=0)[2]
    following = FollowingEpsilon(AUTO.epsilon)
    due = [AUTO.epsilon, following.note(first["train"])]
    due += [following.note(report.accuracy.train) for report in reports[:-2]]
    assert [report.epsilon for report in reports] == due
    assert len(set(due)) > 2
    # No sum besides those of the gradients and of the evaluations.
    assert {each.times for each in sums} == {2 * 30}


def test_reports_have_what_was_left_out(karate):
    ends = []
    (reports, _), *_ = train_in_threads(
        *(karate, WORKERS),
        **{"model": "gcn", "compression": CompressionOptions("0.3"), "ends": ends},
        precompute=False,
    )
    skipped = [report.skipped_rows for report in reports]
    assert skipped == sorted(skipped)
    assert 0 < skipped[-1] == ends[0].savings.skipped < reports[-1].rows == ends[0].savings.rows
    # The transport of these tests expects a byte for each column.
    assert reports[-1].bytes_without == sum(width for _, _, width in ends[0].tensor_ids)
    (reports, _), *_ = train_in_threads(karate, WORKERS, model="gcn", epochs=1)
    nothing = {reports[0].epsilon, reports[0].rows, reports[0].skipped_rows}
    assert nothing | {reports[0].bytes_without} == {None}


@pytest.fixture
def worker(karate):
    """A worker that has joined a job of its own; no exchange compresses."""
    assignment = np.zeros(karate.vertices, dtype=np.int32)
    gathering = Gathering(karate.graph, assignment, compression=Compression(cache=True))
    (part,) = partition_dataset(karate, assignment)
    with RemoteSum(gathering.transports[0]) as remote:
        yield Worker(Joined(None, None, part, remote.transport, 0, 0), remote, seed=5)


def test_a_script_sets_bits_and_epsilon(karate, worker):
    transport = worker.remote.transport
    worker.wrap(GCN(karate.features.shape[1], 4, 1, karate.classes))
    assert transport.compression is None
    worker.wrap(GCN(karate.features.shape[1], 4, 1, karate.classes), bits=8, cache=0.05)
    assert transport.compression == Compression(8, True, True, seed=5)
    assert worker.epsilon == transport.epsilon == 0.05
    worker.note_accuracy(0.5)
    worker.note_accuracy(0.9)
    assert worker.epsilon == 0.05
    worker.epsilon = 0.1
    assert transport.epsilon == 0.1


def test_the_epsilon_of_a_script_follows_its_accuracies(karate, worker):
    worker.wrap(GCN(karate.features.shape[1], 4, 1, karate.classes), cache="auto")
    for share in (0.5, 0.9):
        worker.note_accuracy(share)
    assert worker.epsilon == pytest.approx(AUTO.epsilon * 1.05)
    with pytest.raises(TrainingError, match="not 9"):
        worker.wrap(GCN(karate.features.shape[1], 4, 1, karate.classes), bits=9)


def test_the_least_important_rows_of_each_worker_are_skipped():
    graph = Graph()
    gathering = Gathering(graph.graph, graph.assignment)

    def work(worker):
        mine, told = graph.mine(worker), []
        with RemoteSum(gathering.transports[worker]) as remote:
            remote.skipped = SkippedRows(0.45, lambda *what: told.append(what))
            neighbours = graph.neighbours(worker, remote)
            rows = torch.from_numpy(graph.rows[mine]).requires_grad_()
            (neighbours(rows, TENSOR_ID) * torch.from_numpy(graph.weights[mine])).sum().backward()
            neighbours(rows.detach(), TENSOR_ID)
        return mine, told

    gradients = (graph.local + graph.remote).T @ graph.weights
    importance = abs(gradients * graph.rows).sum(axis=1)
    for mine, told in in_threads(work, GRAPH_WORKERS, gathering.barrier):
        # Forward twice; the exchange of gradients tells nothing.
        assert told[0] == (TENSOR_ID, None)
        tensor_id, resting = told[1]
        assert (len(told), tensor_id, resting.sum()) == (2, TENSOR_ID, int(0.45 * len(mine)))
        assert importance[mine[resting]].max() < importance[mine[~resting]].min()


def test_in_a_training_half_of_the_rows_are_skipped_but_for_every_fourth_epoch(karate):
    ends = []
    train_in_threads(karate, 2, model="gcn", compression=HALF, ends=ends)
    resting = [
        mask if mask is None else mask.sum() for tensor_id, mask in ends[0].told if tensor_id == 1
    ]
    half = karate.vertices // 4
    # The last one is of the evaluation after the eighth epoch.
    assert resting == [None, half, half, None, half, half, half, None, None]


def test_rows_of_few_columns_are_skipped_at_the_site_of_these_columns(karate):
    ends = []
    both = CompressionOptions("0", rest=0.5, keep=0.5, columns_every=2)
    train_in_threads(karate, 2, model="gcn", hidden=40, compression=both, ends=ends)
    forward = [
        tensor_id
        for tensor_id, direction, _ in ends[0].tensor_ids
        if direction is Direction.FORWARD
    ]
    assert [tensor_id for tensor_id, _ in ends[0].told] == forward
    layers = set(range(3))
    assert any(mask is not None for tensor_id, mask in ends[0].told if tensor_id not in layers)
