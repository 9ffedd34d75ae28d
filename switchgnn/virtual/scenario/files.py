# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Scenarios as JSON or TOML."""

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.files import read_bounded
from switchgnn.base.records import RecordError, make_record
from switchgnn.virtual.scenario.scenario import Scenario

_MOST_BYTES = 64 << 20


class ScenarioError(SwitchGNNError):
    """A file that holds no scenario."""


def scenario_text(scenario: Scenario) -> str:
    """Return a scenario as JSON, a line for each thing, without what has its default."""
    fields_told = ",\n".join(
        f"  {json.dumps(name)}: {_value_text(value)}" for name, value in _told(scenario).items()
    )
    return f"{{\n{fields_told}\n}}\n"


def scenario_line(scenario: Scenario) -> str:
    """Return a scenario as JSON in one line, for a command."""
    return json.dumps(_told(scenario))


def _told(record: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass
    """Return the fields of a dataclass that do not have their defaults, as plain data."""
    return {
        each.name: _plain(value)
        for each in fields(record)
        if (value := getattr(record, each.name)) != each.default
    }


def _plain(value: Any) -> Any:  # noqa: ANN401 - any field
    if is_dataclass(value):
        return _told(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def _value_text(value: Any) -> str:  # noqa: ANN401 - plain data
    if not isinstance(value, list):
        return json.dumps(value)
    items = ",\n".join(f"    {json.dumps(item)}" for item in value)
    return f"[\n{items}\n  ]"


def scenario_said(said: str) -> Scenario:
    """Return the scenario that a user has given: as JSON, or the name of its file.

    Raises:
        ScenarioError: it is none.
    """
    if said.lstrip().startswith("{"):
        return _scenario("--scenario", lambda: msgspec.json.decode(said))
    return read_scenario(Path(said))


def read_scenario(path: Path) -> Scenario:
    """Read a scenario from a file, TOML if its name ends in `.toml`, otherwise JSON.

    Raises:
        ScenarioError: the file cannot be read, or holds no scenario.
    """
    decode = msgspec.toml.decode if path.suffix == ".toml" else msgspec.json.decode
    return _scenario(str(path), lambda: decode(read_bounded(path, _MOST_BYTES)))


def _scenario(where: str, decode: Callable[[], Any]) -> Scenario:
    try:
        return make_record(Scenario, decode())
    except RecursionError:
        raise ScenarioError(f"{where} holds no scenario: it is nested too deeply.") from None
    except (OSError, ImportError, msgspec.DecodeError, RecordError) as error:
        raise ScenarioError(
            f"{where} holds no scenario ({error}): write one as `switchgnn soak --simulated` "
            "prints it with a failure."
        ) from error
