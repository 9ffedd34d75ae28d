# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Scenarios as JSON or TOML."""

from dataclasses import fields
from pathlib import Path

import msgspec

from switchgnn.errors import SwitchGNNError
from switchgnn.records import RecordError, make_record
from switchgnn.virtual.scenario.scenario import Scenario


class ScenarioError(SwitchGNNError):
    """A file that holds no scenario."""


def scenario_text(scenario: Scenario) -> str:
    """Return a scenario as JSON, without what has its default."""
    plain = {
        each.name: getattr(scenario, each.name)
        for each in fields(scenario)
        if getattr(scenario, each.name) != each.default
    }
    return msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()


def read_scenario(path: Path) -> Scenario:
    """Read a scenario from a file, TOML if its name ends in `.toml`, otherwise JSON.

    Raises:
        ScenarioError: the file cannot be read, or holds no scenario.
    """
    try:
        data = path.read_bytes()
        decode = msgspec.toml.decode if path.suffix == ".toml" else msgspec.json.decode
        return make_record(Scenario, decode(data))
    except (OSError, ImportError, msgspec.DecodeError, RecordError) as error:
        raise ScenarioError(
            f"{path} holds no scenario ({error}): write one as `switchgnn soak --simulated` prints "
            "it with a failure."
        ) from error
