# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Workers of a drawn scenario that are mad, or were started otherwise than the others."""

from dataclasses import replace
from random import Random

from switchgnn.virtual.scenario.scenario import (
    Difference,
    DifferenceKind,
    Incident,
    IncidentKind,
    Scenario,
)

# How many scenarios have one, of 1.
_MAD, _DIFFERENT = 1 / 15, 1 / 30
# Of those that differ, how many times it is the controller, of 1.
_CONTROLLER = 1 / 8
# What else happens: its process is gone, or a switch forgets whose turn it is.
_INSTALLED = 3.0
_ALONE, _GONE, _RESTARTED = "alone", "gone", "restarted"


def with_misfits(scenario: Scenario, *, always: bool = False) -> Scenario:
    """Return a scenario, now and then with somebody who is mad or differs; its seed says when.

    Args:
        scenario: as it was drawn.
        always: let somebody be mad or differ in any case.

    Returns:
        The scenario.
    """
    source = Random(f"misfits/{scenario.seed}")  # noqa: S311
    chance = source.random() * (_MAD + _DIFFERENT if always else 1.0)
    if chance < _MAD:
        return _with_madness(scenario, source)
    return _with_a_difference(scenario, source) if chance < _MAD + _DIFFERENT else scenario


def _with_madness(scenario: Scenario, source: Random) -> Scenario:
    worker = f"w{source.randrange(scenario.workers)}"
    # Anywhere in a scenario of unknown length, as incidents are.
    event = int(2 ** source.uniform(0.0, 9.0 + scenario.exchanges.bit_length()))
    with_it = source.choice((_ALONE, _ALONE, _GONE, _RESTARTED))
    incidents = [*scenario.incidents]
    # A switch that restarts is found and installed again in about a second.
    longest = _INSTALLED if with_it == _RESTARTED else 1.0
    seconds = round(longest * source.random(), 3)
    incidents.append(Incident(IncidentKind.MAD, worker, event, seconds))
    if with_it == _GONE:
        incidents.append(Incident(IncidentKind.KILL, worker, event))
    elif with_it == _RESTARTED:
        switch, before = f"s{source.randrange(scenario.switches)}", source.uniform(0.5, 1.0)
        gone = round(source.random() / 4, 3)
        incidents.append(Incident(IncidentKind.RESTART, switch, int(event * before), gone))
    in_order = sorted(incidents, key=lambda incident: incident.event)
    return replace(scenario, incidents=tuple(in_order))


def _with_a_difference(scenario: Scenario, source: Random) -> Scenario:
    """Let nothing else happen to the parts, so that it is known what must be said of it."""
    if source.random() < _CONTROLLER:
        return replace(scenario, incidents=(), other_plan=True)
    worker, kind = source.randrange(scenario.workers), source.choice(list(DifferenceKind))
    difference = Difference(worker, kind, source.choice((1, 1, 2, -1)))
    if kind in (DifferenceKind.PLAN, DifferenceKind.DIGEST, DifferenceKind.WIDTH):
        difference = replace(difference, by=1)
    return replace(scenario, incidents=(), differences=(difference,))
