# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Tasks of worker processes as one line of JSON, from and to frozen dataclasses."""

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TypeVar, get_args, get_origin, get_type_hints

import msgspec

from switchgnn.errors import SwitchGNNError

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
        values = msgspec.json.decode(text)
        _refuse_unknown(kind, values, "$")
        return msgspec.convert(values, kind, dec_hook=_decode_path)
    except msgspec.MsgspecError as error:
        raise TaskError(
            f"The worker's task cannot be read: {error}. A worker is started by `switchgnn run` or "
            "`switchgnn train`, which write its task as one line of JSON."
        ) from error


def _refuse_unknown(kind: object, values: object, at: str) -> None:
    """Raise an error where an object has a field that its dataclass lacks."""
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(values, dict):
        hints = get_type_hints(kind)
        known = {each.name for each in fields(kind)}
        for name, value in values.items():
            if name not in known:
                raise msgspec.ValidationError(
                    f"`{kind.__name__}` has no field `{name}` - at `{at}.{name}`"
                )
            _refuse_unknown(hints[name], value, f"{at}.{name}")
    elif get_origin(kind) is tuple and isinstance(values, list):
        for place, value in enumerate(values):
            _refuse_unknown(get_args(kind)[0], value, f"{at}[{place}]")


def _decode_path(kind: type, value: object) -> Path:
    if kind is not Path or not isinstance(value, str):
        raise ValueError(f"Expected `{kind.__name__}`, got `{type(value).__name__}`")
    return Path(value)
