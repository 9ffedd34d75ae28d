# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Rows that matter little are sent less often: which they are, when, and what that saves."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

import torch

from switchgnn.host.direct import copy_schedules
from switchgnn.planner.direction import Direction
from switchgnn.training.asked import AskedFewer
from switchgnn.training.data.load import load_dataset
from switchgnn.training.fewer import fewer_bytes
from switchgnn.training.layers.models import ModelOptions, distribute
from switchgnn.training.rest import Rest
from switchgnn.training.sums import RemoteSum
from switchgnn.training.trainer import TrainOptions
from tests.host.direct.crew import on_hub
from tests.training.gathering import Gathering, in_threads
from tests.training.test_columns import WORKERS, Graph
from tests.training.threads import shared_out, train_in_threads, train_parts

SITE = 5
HALF = fewer_bytes(32, 0.0, rest=0.5)


@pytest.fixture(scope="module")
def karate():
    return load_dataset("karate")


def losses(results):
    return [report.loss for report in results[0][0]]


def test_the_least_important_rows_of_each_worker_rest():
    graph = Graph()
    gathering = Gathering(graph.graph, graph.assignment)

    def work(worker):
        mine, told = graph.mine(worker), []
        with RemoteSum(gathering.transports[worker]) as remote:
            remote.rest = Rest(0.45, lambda *what: told.append(what))
            neighbours = graph.neighbours(worker, remote)
            rows = torch.from_numpy(graph.rows[mine]).requires_grad_()
            sums = neighbours(rows, SITE)
            (sums * torch.from_numpy(graph.weights[mine])).sum().backward()
            neighbours(rows.detach(), SITE)
        return mine, told

    gradients = (graph.local + graph.remote).T @ graph.weights
    importance = abs(gradients * graph.rows).sum(axis=1)
    for mine, told in in_threads(work, WORKERS, gathering.barrier):
        # Forward twice; the exchange of gradients tells nothing.
        assert told[0] == (SITE, None)
        site, resting = told[1]
        assert (len(told), site, resting.sum()) == (2, SITE, int(0.45 * len(mine)))
        assert importance[mine[resting]].max() < importance[mine[~resting]].min()


def test_every_fourth_epoch_none_rests():
    told = []
    rest = Rest(0.5, lambda *what: told.append(what))
    rows = torch.tensor([[1.0], [4.0], [2.0], [3.0], [9.0]])
    for epoch in range(1, 9):
        rest.begin_epoch(epoch)
        # The exchange may have the number of the columns that are sent.
        rest.before(SITE, 7)
        rest.note(SITE, rows, torch.ones_like(rows))
    assert [site for site, _ in told] == [7] * 8
    resting = [None if mask is None else np.flatnonzero(mask).tolist() for _, mask in told]
    assert resting == [None, [0, 2], [0, 2], None, [0, 2], [0, 2], [0, 2], None]


def test_in_a_training_half_of_the_rows_rest_but_for_every_fourth_epoch(karate):
    ends = []
    train_in_threads(karate, 2, model="gcn", fewer=HALF, ends=ends)
    resting = [mask if mask is None else mask.sum() for site, mask in ends[0].told if site == 1]
    half = karate.vertices // 4
    # The last one is of the evaluation after the eighth epoch.
    assert resting == [None, half, half, None, half, half, half, None, None]


def test_rows_of_few_columns_rest_at_the_site_of_these_columns(karate):
    ends = []
    fewer = fewer_bytes(32, 0.0, rest=0.5, keep=0.5, every=2)
    train_in_threads(karate, 2, model="gcn", hidden=40, fewer=fewer, ends=ends)
    forward = [site for site, direction, _ in ends[0].sites if direction is Direction.FORWARD]
    assert [site for site, _ in ends[0].told] == forward
    layers = set(range(3))
    assert any(mask is not None for site, mask in ends[0].told if site not in layers)


def test_no_share_that_rests_changes_nothing(karate):
    how, ends = {"model": "gcn", "precompute": False}, []
    exact = AskedFewer(cache="0", rest=0).fewer(0)
    none = train_in_threads(karate, 2, **how, fewer=exact, ends=ends)
    assert losses(none) == losses(train_in_threads(karate, 2, **how))
    assert not any(end.told for end in ends)
    half = train_in_threads(karate, 2, **how, fewer=HALF)
    assert losses(half)[0] == losses(none)[0]
    assert losses(half)[1:] != losses(none)[1:]


def test_resting_rows_save_bytes_between_hosts(karate):
    sent = {rest: bytes_between_hosts(karate, fewer_bytes(32, 0.0, rest=rest)) for rest in (0, 0.5)}
    assert sent[0.5] < 0.9 * sent[0]


def bytes_between_hosts(data, fewer):
    assignment = shared_out(data.vertices, 2).astype(np.int32)
    transports = on_hub(copy_schedules(data.graph, assignment, 2), compression=fewer.compression)

    def distributed(net, part, transport):
        remote = RemoteSum(transport)
        distribute(net, part, remote, precompute=True)
        return remote

    shape = ModelOptions(model="gcn", layers=3, hidden=32, dropout=0.0)
    options = TrainOptions(epochs=8, evaluate_every=8)
    train_parts(data, assignment, transports, shape, options, distributed, fewer=fewer)
    return sum(each.traffic.bytes_up for each in transports)
