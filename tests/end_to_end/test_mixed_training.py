# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn train` with plans that leave some destinations to the hosts."""

import numpy as np
import pytest

pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

from switchgnn.commands.train import plan as train_module
from switchgnn.commands.train.plan import TrainJob, default_task
from switchgnn.commands.train.steps import run_training
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.load import load_graph
from switchgnn.training.data.load import load_dataset
from switchgnn.training.layers.models import ModelOptions
from switchgnn.training.trainer import TrainOptions
from switchgnn.training.worker import Training
from tests.host.mixed.leaving import leaving
from tests.support.commands import nursery

FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD
TOLERANCE = 1e-4


@pytest.mark.parametrize("kind", ["some", "forward", "everything"])
def test_a_training_has_the_losses_of_one_process(kind):
    graph = load_graph("karate")
    chosen = np.diff(graph.indptr) <= 3
    left = {
        "some": {FORWARD: chosen, BACKWARD: np.arange(graph.vertices) % 3 == 0},
        "forward": {FORWARD: np.ones(graph.vertices, dtype=bool)},
        "everything": np.ones(graph.vertices, dtype=bool),
    }[kind]
    mixed, alone = (trained(transport, left) for transport in ("switch", "local"))
    assert mixed["losses"] == pytest.approx(alone["losses"], abs=TOLERANCE)
    for link, least in zip(mixed["bytes_per_link"], mixed["expected_bytes_per_link"], strict=True):
        for way in ("up", "down"):
            assert 0 < least[way] <= link[way] <= 1.5 * least[way]
    assert (mixed["barriers_per_epoch"] == 0) == (kind == "everything")


def trained(transport, left):
    training = Training(ModelOptions("gcn", 2, 8, 0.0), TrainOptions(epochs=4))
    job = TrainJob(
        task=default_task(transport=transport, training=training),
        workers=3,
        slots=8,
        target="embedded",
        fabric="loopback",
        bandwidth=None,
        ecn_threshold=64,
    )
    with leaving(train_module, left):
        return run_training(
            job, load_dataset("karate"), lambda *_: None, lambda _: None, nursery=nursery()
        ).to_dict()
