# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A task reaches its worker unchanged, and options of a training have their meaning."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

from switchgnn.base.network import Station
from switchgnn.base.tasks import TaskError
from switchgnn.host.pace import Pace
from switchgnn.host.registry import G3
from switchgnn.host.wire.addresses import Addresses
from switchgnn.training.asked import AskedTraining
from switchgnn.training.bins import BinOptions
from switchgnn.training.device import DeviceName
from switchgnn.training.layers.models import ModelOptions
from switchgnn.training.trainer import TrainOptions
from switchgnn.training.worker import Training, TrainTask

WORKER = Station("02:00:00:00:00:01", "10.0.0.1")
TASK = TrainTask(
    worker=2,
    partitions=Path("parts"),
    transport=G3.name,
    training=Training(
        ModelOptions("gin", 3, 5, 0.25),
        TrainOptions(checkpoint=Path("saved")),
        BinOptions(4000, intra=True, inter=False),
        DeviceName.CUDA,
    ),
    pace=Pace(window=5),
    link="udp:127.0.0.1:1:127.0.0.1:2",
    addresses=Addresses(WORKER, Station("02:00:00:00:ff:fe", "10.0.0.9")),
    schedule=Path("schedule"),
    stations=(WORKER,),
)


def test_a_task_in_json_is_the_task():
    assert TrainTask.from_json(TASK.to_json()) == TASK


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"transport": 4}, "transport: expected str, got int"),
        ({"stations": [{"mac": "a", "ip": "b", "port": 1}]}, r"stations\[0\]: unknown field port"),
        ({"colour": "red"}, "unknown field colour; known: "),
        ({"training": None}, "training: expected object, got null"),
    ],
)
def test_what_is_wrong_in_a_task_is_named(change, words):
    with pytest.raises(TaskError, match=words):
        TrainTask.from_json(json.dumps(json.loads(TASK.to_json()) | change))


@pytest.mark.parametrize(
    ("options", "own", "share"),
    [({}, False, 0.5), ({}, True, 0.0), ({"input_dropout": 0.25}, True, 0.25)],
)
def test_a_model_of_ones_own_gets_no_dropout_of_inputs_unless_it_is_asked_for(
    tmp_path, options, own, share
):
    (tmp_path / "net.py").write_text("")
    model = f"{tmp_path / 'net.py'}:Net" if own else "gcn"
    asked = AskedTraining(model=model, **options)
    assert asked.options(asked.shape(), 0).input_dropout == share
