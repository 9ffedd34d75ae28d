# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Drawn switches that do not come back empty, or end while frames leave them."""

from dataclasses import replace
from random import Random

from switchgnn.virtual.scenario.scenario import Incident, IncidentKind, Scenario

# As what a restart of a switch happens, and how often, of 1.
_KINDS = {
    IncidentKind.RESTART: 0.5,
    IncidentKind.TEAR: 0.3,
    IncidentKind.PROGRAM: 0.1,
    IncidentKind.RELAPSE: 0.1,
}


def with_other_restarts(scenario: Scenario) -> Scenario:
    """Return a scenario in which switches restart in different ways; its seed says in which."""
    source = Random(f"restarts/{scenario.seed}")  # noqa: S311
    incidents = tuple(_otherwise(each, source) for each in scenario.incidents)
    return replace(scenario, incidents=incidents)


def _otherwise(incident: Incident, source: Random) -> Incident:
    if not incident.restarts_switch:
        return incident
    (kind,) = source.choices(list(_KINDS), list(_KINDS.values()))
    return replace(incident, kind=kind)
