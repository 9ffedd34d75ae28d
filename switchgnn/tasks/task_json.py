# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Tasks of worker processes as one line of JSON, from and to frozen dataclasses."""

from typing import TypeVar

import msgspec

from switchgnn.errors import SwitchGNNError
from switchgnn.records import RecordError, make_record, parse_json

Task = TypeVar("Task")


class TaskError(SwitchGNNError):
    """A worker process was given something that is not its task."""


def task_to_json(task: object) -> str:
    """Return a dataclass as one line of JSON; paths become text."""
    return msgspec.json.encode(task, enc_hook=str).decode()


def task_from_json(kind: type[Task], text: str) -> Task:
    """Read what ``task_to_json`` wrote.

    Args:
        kind: the dataclass; its fields may be dataclasses, tuples of them, and paths.
        text: one line of JSON.

    Returns:
        The task.

    Raises:
        TaskError: no JSON; or a field is missing, unknown, or of another type.
    """
    try:
        return make_record(kind, parse_json(text.encode()))
    except RecordError as error:
        raise TaskError(
            f"The worker's task cannot be read: {error}. A worker is started by `switchgnn run` or "
            "`switchgnn train`, which write its task as one line of JSON."
        ) from error
