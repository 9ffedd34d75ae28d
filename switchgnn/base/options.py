# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Groups of options that commands share, as dataclasses, and sizes in bytes."""

import dataclasses
import functools
import inspect
import re
import typing
from collections.abc import Callable
from typing import Any

from switchgnn.base.errors import SwitchGNNError


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each dataclass parameter of a Typer command by options, one for each field.

    Fields are annotated with `typer.Option`. TypeError: two options have the same name.
    """
    hints = typing.get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if _is_group(hint)}
    shown: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        own = parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
        for each in _fields(groups[name]) if name in groups else [own]:
            if each.name in shown:
                raise TypeError(f"{command.__name__} has two options named {each.name}")
            shown[each.name] = each

    def run(**values: Any) -> None:  # noqa: ANN401
        for name, group in groups.items():
            fields = [field.name for field in dataclasses.fields(group)]
            values[name] = group(**{field: values.pop(field) for field in fields})
        command(**values)

    # Not functools.wraps: its __wrapped__ would show Typer the groups.
    for attribute in functools.WRAPPER_ASSIGNMENTS:
        if hasattr(command, attribute):
            setattr(run, attribute, getattr(command, attribute))
    run.__annotations__ = {name: each.annotation for name, each in shown.items()}
    run.__signature__ = inspect.Signature(list(shown.values()))  # type: ignore[attr-defined]
    return run


def _is_group(hint: object) -> bool:
    return isinstance(hint, type) and dataclasses.is_dataclass(hint)


def _fields(group: Any) -> list[inspect.Parameter]:  # noqa: ANN401
    hints = typing.get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty
            if field.default is dataclasses.MISSING
            else field.default,
            annotation=hints[field.name],
        )
        for field in dataclasses.fields(group)
    ]


DATA = "Data"
MODEL = "Model"
TRAINING = "Training"
EXCHANGE = "Exchange"
PLAN = "Plan"
NETWORK = "Network"
CONGESTION = "Congestion"
FAULTS = "Faults"
VIRTUAL_TIME = "Virtual time"
PACKETS = "Which packets"
OUTPUT = "Output"


_UNITS = {
    "": 1,
    "k": 10**3,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "ki": 2**10,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
}
# An exact float, and more than any machine has.
_MOST = 1 << 60
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kKMG]i?|)B?")


def parse_bytes(option: str, text: str) -> int:
    """Return a size such as 10MB or 8MiB in bytes; errors name `option`."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise SwitchGNNError(f"cannot read {option} {text}: write it as 10MB or 8MiB")
    size = float(found[1]) * _UNITS[found[2]]
    if size > _MOST:
        raise SwitchGNNError(f"{option} is too large: give at most {_MOST >> 50:,} PiB")
    return int(size)
