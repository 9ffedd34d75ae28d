# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Lets happen what a scenario says happens once."""

from collections.abc import Collection
from functools import partial

from switchgnn.errors import SwitchGNNError
from switchgnn.virtual.scenario.scenario import Incident, IncidentKind, Scenario
from switchgnn.virtual.scene import Scene

_CONTROLLER = "controller"


class IncidentError(SwitchGNNError):
    """A scenario has something happen where nothing is."""


def arrange(scene: Scene) -> None:
    """See to it that all incidents of the scenario happen.

    Raises:
        IncidentError: one is to happen where nothing is.
    """
    for incident in scene.scenario.incidents:
        check_place(incident, scene.scenario, scene.wires)
        scene.scheduler.mark(incident.event, partial(_happen, scene, incident))


def check_place(incident: Incident, scenario: Scenario, wires: Collection[str]) -> None:
    """Check that what an incident names is there.

    Args:
        incident: the incident.
        scenario: how many workers and switches there are.
        wires: the names of all lines with their directions.

    Raises:
        IncidentError: it is not.
    """
    where, kind = incident.where, incident.kind
    lines = [name.rpartition(".")[0] for name in wires]
    known = {
        IncidentKind.SILENCE: [*wires, *lines],
        IncidentKind.STOP: [f"w{worker}" for worker in range(scenario.workers)],
        IncidentKind.SPILL: [f"s{switch}" for switch in range(scenario.switches)],
    }
    known[IncidentKind.KILL] = known[IncidentKind.JUMP] = known[IncidentKind.STOP]
    known[IncidentKind.MAD] = known[IncidentKind.STOP]
    known[IncidentKind.PARTITION] = known[IncidentKind.SPILL]
    known[IncidentKind.RESTART] = [
        *(*known[IncidentKind.SPILL], *known[IncidentKind.STOP], _CONTROLLER)
    ]
    if where not in known[kind]:
        raise IncidentError(
            f"A {kind.value} at {where!r}, which is not there: take one of "
            f"{', '.join(dict.fromkeys(known[kind]))}."
        )


def _happen(scene: Scene, incident: Incident) -> None:
    where, seconds = incident.where, incident.seconds
    number = int(where[1:]) if where[1:].isdigit() else 0
    scene.happened.append((scene.scheduler.now, incident))
    scene.trace.note(where, f"{incident.kind.value} {seconds:g}")
    if incident.kind is IncidentKind.SILENCE:
        for name, wire in scene.wires.items():
            if where in (name, name.rpartition(".")[0]):
                wire.silence(seconds)
    elif incident.kind is IncidentKind.STOP:
        scene.workers[number].stand_still(seconds)
    elif incident.kind is IncidentKind.KILL:
        scene.workers[number].kill()
    elif incident.kind is IncidentKind.JUMP:
        scene.workers[number].clock.jump(seconds)
    elif incident.kind is IncidentKind.MAD:
        scene.go_mad(number, seconds)
    elif incident.kind is IncidentKind.SPILL:
        scene.switches[number].spill()
    elif incident.kind is IncidentKind.PARTITION:
        scene.lines[number].cut(seconds)
    elif where == _CONTROLLER:
        scene.controller.restart(seconds)
    elif where.startswith("w"):
        scene.workers[number].restart(seconds)
    else:
        scene.unwatched += not scene.controller.watching
        scene.switches[number].restart(seconds)
