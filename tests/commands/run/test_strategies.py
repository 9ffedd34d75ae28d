# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The strategies of `run` and `train`: which are used, and what is said of wrong names."""

import numpy as np
import pytest
from typer.testing import CliRunner

from switchgnn.commands.application import app
from switchgnn.planner import PlannerError
from switchgnn.planner.chosen import KNOWN, Asked
from switchgnn.planner.plan.files import read_assignment

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

from switchgnn.commands.train import steps as train
from switchgnn.commands.train.job import TrainJob, default_task
from switchgnn.commands.train.plan import prepare_training
from switchgnn.planner.presets import PRESETS
from switchgnn.training import load_dataset
from switchgnn.training.layers.models import ModelOptions
from switchgnn.training.trainer import TrainOptions
from switchgnn.training.worker import Training

NAMES = ("partition", "block_strategy", "send", "order")


@pytest.mark.parametrize("command", ["run", "train"])
@pytest.mark.parametrize("part", ["strategy", *KNOWN])
def test_a_wrong_name_is_answered_with_the_right_ones(command, part):
    known = KNOWN.get(part, PRESETS)
    with pytest.raises(PlannerError, match=f"'worst'; known: {', '.join(sorted(known))}"):
        CliRunner().invoke(app, [command, f"--{part}", "worst"], catch_exceptions=False)


@pytest.fixture
def folder(tmp_path):
    np.savetxt(tmp_path / "workers.txt", np.arange(34) % 3, fmt="%d")
    return tmp_path


def said(transport, asked, folder):
    """What a report says of the strategies, and the plan's assignment."""
    data = load_dataset("karate")
    job = TrainJob(
        task=default_task(
            transport=transport, training=Training(ModelOptions("gcn", 2, 8, 0.0), TrainOptions())
        ),
        workers=3,
        slots=12,
        target="auto",
        fabric="auto",
        bandwidth=None,
        ecn_threshold=0,
        asked=asked,
    )
    report = train._planned(job, prepare_training(job, data, folder, lambda _: None))
    assignment = read_assignment(folder / "plan")
    return [report[name] for name in NAMES], report["why"], assignment


@pytest.mark.parametrize(
    ("transport", "partition", "expected"),
    [
        ("switch", None, ["metis", "destination-cover", "cover", "bfs"]),
        ("switch", "chunk", ["chunk", "destination-cover", "cover", "bfs"]),
        ("strawman", None, ["metis", "strawman", "multicast", "random"]),
        ("strawman", "chunk", ["chunk", "strawman", "multicast", "random"]),
        ("host", None, ["metis", None, None, None]),
        ("host-partial", "chunk", ["chunk", None, None, None]),
        ("g3", None, ["g3", None, None, None]),
        ("g3", "chunk", ["chunk", None, None, None]),
    ],
)
def test_over_other_transports_only_the_partition_counts(transport, partition, expected, folder):
    asked = Asked("best", partition=partition, blocks="destination-cover", order="bfs")
    used, why, _ = said(transport, asked, folder)
    assert used == expected
    assert bool(why) == (transport == "switch")


@pytest.mark.parametrize("transport", ["switch", "strawman", "host", "g3"])
def test_an_assignment_counts_over_every_transport(transport, folder):
    used, _, assignment = said(transport, Asked(assignment=folder / "workers.txt"), folder)
    assert used[0] == "given"
    assert np.array_equal(assignment, np.arange(34) % 3)


def test_without_options_it_is_the_papers_plan(folder):
    used, _, _ = said("switch", Asked(), folder)
    assert used == ["metis", "mlgp", "multicast", "gamr"]
