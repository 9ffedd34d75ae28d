# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's task goes through JSON and back; whatever is wrong in it is named."""

import json
from pathlib import Path

import pytest

from switchgnn.base.tasks import TaskError
from switchgnn.host.pace import Pace
from switchgnn.host.worker import WorkerTask
from tests.host.addresses import ADDRESSES


@pytest.fixture
def task():
    return WorkerTask(
        plan=Path("plan"),
        worker=2,
        session=3,
        link="udp:127.0.0.1:1:127.0.0.1:2",
        addresses=ADDRESSES,
        features=Path("features.npy"),
        rounds=3,
        output=Path("sums.npz"),
        rounds_per_file=2,
        pace=Pace(window=5, patience=7),
        faults="loss=0.1",
    )


def refused(fields, words):
    with pytest.raises(TaskError, match=words):
        WorkerTask.from_json(json.dumps(fields))


def test_a_task_in_json_is_the_task(task):
    text = task.to_json()
    assert "\n" not in text
    assert WorkerTask.from_json(text) == task


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("worker",), "2", "worker: expected int, got str"),
        (("plan",), 5, "plan: expected Path, got int"),
        (("pace", "window"), None, r"pace\.window: expected int, got null"),
        (("addresses", "switch", "mac"), 1, r"addresses\.switch\.mac: expected str, got int"),
    ],
)
def test_a_wrong_type_is_refused(task, path, value, words):
    fields = json.loads(task.to_json())
    inner = fields
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    refused(fields, words)


def test_an_unknown_field_is_refused(task):
    fields = json.loads(task.to_json())
    refused(fields | {"colour": "red"}, "unknown field colour; known: ")
    fields["pace"]["haste"] = 1
    refused(fields, "pace: unknown field haste; known: ")


def test_a_missing_field_is_refused(task):
    fields = json.loads(task.to_json())
    refused(
        {name: each for name, each in fields.items() if name != "rounds"},
        "missing required field rounds",
    )
    del fields["addresses"]["worker"]
    refused(fields, "addresses: .*missing required field worker")


@pytest.mark.parametrize("text", ["", "{", "[]", "nothing"])
def test_what_is_no_task_is_refused(text):
    with pytest.raises(TaskError, match="task cannot be read"):
        WorkerTask.from_json(text)
