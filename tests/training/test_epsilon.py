# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Training with cached rows: when epsilon changes, what is reported, and what stays the same."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

from torch_geometric.nn import GCN

from switchgnn.host.compression import Compression
from switchgnn.planner.direction import Direction
from switchgnn.training.asked import AskedFewer, AskedTraining
from switchgnn.training.data.load import load_dataset
from switchgnn.training.epsilon import (
    LEAST,
    MOST,
    FollowingEpsilon,
)
from switchgnn.training.errors import TrainingError
from switchgnn.training.fewer import fewer_bytes
from switchgnn.training.join import Worker
from switchgnn.training.partition import partition_dataset
from switchgnn.training.sums import RemoteSum
from tests.training.gathering import Gathering
from tests.training.plain_loop import train_plainly
from tests.training.threads import EPOCHS, train_in_threads

# Two workers: the sum of two numbers does not depend on their order.
WORKERS, LAYERS = 2, 3
AUTO = fewer_bytes(32, "auto")


@pytest.fixture(scope="module")
def karate():
    return load_dataset("karate")


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
        ({"cache": 1.0}, "from 0 to below 1, not 1.0"),
        ({"cache": -0.1}, "from 0 to below 1, not -0.1"),
        ({"cache": "on"}, "is auto, or a number from 0 to below 1, not on"),
        ({"feedback": True}, "numbers of 32 bits are not rounded"),
        ({"stochastic": True}, "numbers of 32 bits are not rounded"),
        ({"rest": 0.25}, "--rest 0.25 needs a cache"),
        ({"rest": 1.0, "cache": 0.1}, "share of --rest is from 0 to below 1, not 1"),
        ({"rest": float("nan"), "cache": 0.1}, "not nan"),
    ],
)
def test_what_does_not_go_together_is_a_sentence(options, words):
    with pytest.raises(TrainingError, match=words):
        fewer_bytes(**{"bits": 32, "cache": None} | options)


@pytest.mark.parametrize(
    ("asked", "compression", "epsilon"),
    [
        (AskedFewer(), Compression(seed=7), 0.0),
        (AskedFewer(cache="0"), Compression(cache=True, seed=7), 0.0),
        (AskedFewer(cache="0.2", bits=8), Compression(8, True, True, seed=7), 0.2),
        (AskedFewer(cache="0", rest=0.5), Compression(cache=True, seed=7), 0.0),
        (AskedFewer(bits=16, error_feedback=False), Compression(16, seed=7), 0.0),
        (AskedFewer(bits=8, stochastic_rounding=True), Compression(8, False, True, True, 7), 0.0),
    ],
)
def test_options_are_what_transports_are_told(asked, compression, epsilon):
    made = asked.fewer(7)
    assert (made.compression, made.epsilon, made.follows) == (compression, epsilon, False)
    assert made.active == bool(asked.named)


def test_auto_begins_with_a_small_epsilon_that_follows():
    made = AskedFewer(cache="auto").fewer(0)
    assert (made.compression.cache, made.epsilon, made.follows) == (True, 0.1, True)


def test_there_is_no_dropout_with_a_cache_unless_it_is_asked_for():
    cached = AskedFewer(cache="auto")
    asked = AskedTraining(less=cached)
    asked.check_dropout()
    shape = asked.shape()
    assert (shape.dropout, asked.options(shape, 0).input_dropout) == (0, 0)
    for options in ({"dropout": 0.5}, {"input_dropout": 0.1}):
        with pytest.raises(TrainingError, match=r"--cache and --(input-)?dropout 0"):
            AskedTraining(less=cached, **options).check_dropout()
        AskedTraining(**options).check_dropout()


def losses(results):
    return [report.loss for report in results[0][0]]


def test_without_any_change_allowed_the_losses_are_the_same(karate):
    plain = train_in_threads(karate, WORKERS, model="gcn")
    cached = train_in_threads(karate, WORKERS, model="gcn", fewer=fewer_bytes(32, 0.0))
    assert losses(cached) == losses(plain)
    coarse = train_in_threads(karate, WORKERS, model="gcn", fewer=fewer_bytes(32, 0.5))
    assert losses(coarse) != losses(plain)


def test_each_layer_has_a_site_and_evaluation_uses_the_same(karate):
    ends = []
    train_in_threads(karate, WORKERS, model="gin", epochs=1, ends=ends, precompute=False)
    forward, backward = Direction.FORWARD, Direction.BACKWARD
    widths = (karate.features.shape[1], 8, 8)
    there = [(site, forward, width) for site, width in enumerate(widths)]
    back = [(site, backward, width) for site, width in enumerate(widths)][:0:-1]
    assert ends[0].sites == [*there, *back, *there]


def test_epsilon_follows_the_training_accuracy_of_all_workers(karate):
    """The accuracy of a step is that after the step before it, which an evaluation reports."""
    sums = []
    results = train_in_threads(
        karate, WORKERS, model="gcn", fewer=AUTO, evaluate_every=1, epochs=30, kept=sums
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
        karate, WORKERS, model="gcn", fewer=fewer_bytes(32, 0.3), ends=ends, precompute=False
    )
    skipped = [report.skipped_rows for report in reports]
    assert skipped == sorted(skipped)
    assert 0 < skipped[-1] == ends[0].savings.skipped < reports[-1].rows == ends[0].savings.rows
    # The transport of these tests expects a byte for each column.
    assert reports[-1].bytes_without == sum(width for _, _, width in ends[0].sites)
    (reports, _), *_ = train_in_threads(karate, WORKERS, model="gcn", epochs=1)
    nothing = {reports[0].epsilon, reports[0].rows, reports[0].skipped_rows}
    assert nothing | {reports[0].bytes_without} == {None}


def test_a_resumed_training_begins_with_empty_caches(karate, tmp_path):
    how = {"model": "gcn", "fewer": fewer_bytes(32, 0.0), "precompute": False}
    whole = train_in_threads(karate, WORKERS, epochs=EPOCHS, **how)
    file = tmp_path / "saved"
    train_in_threads(karate, WORKERS, epochs=EPOCHS // 2, checkpoint=file, **how)
    rest = train_in_threads(karate, WORKERS, epochs=EPOCHS, checkpoint=file, **how)
    assert losses(rest) == losses(whole)[EPOCHS // 2 :]


@pytest.fixture
def worker(karate):
    """A worker that has joined a job of its own; no exchange compresses."""
    assignment = np.zeros(karate.vertices, dtype=np.int32)
    gathering = Gathering(karate.graph, assignment, compression=Compression(cache=True))
    (part,) = partition_dataset(karate, assignment)
    with RemoteSum(gathering.transports[0]) as remote:
        yield Worker(None, None, part, remote, first=0, session=0, seed=5)


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
