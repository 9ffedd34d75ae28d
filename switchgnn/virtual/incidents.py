# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Lets happen what a scenario says happens once."""

from collections.abc import Collection
from functools import partial

from switchgnn.base.errors import SwitchGNNError
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
    known[IncidentKind.TEAR] = known[IncidentKind.SPILL]
    known[IncidentKind.PROGRAM] = known[IncidentKind.RELAPSE] = known[IncidentKind.SPILL]
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
    scene.trace.note(incident.where, f"{incident.kind.value} {incident.seconds:g}")
    # A tear happens when frames leave next.
    if incident.kind is not IncidentKind.TEAR:
        _note(scene, incident)
    if incident.kind is IncidentKind.SILENCE:
        _be_silent(scene, incident)
    elif incident.where == _CONTROLLER:
        scene.controller.restart(incident.seconds)
    elif incident.where.startswith("w"):
        _happen_to_worker(scene, incident)
    else:
        _happen_to_switch(scene, incident)


def _be_silent(scene: Scene, incident: Incident) -> None:
    for name, wire in scene.wires.items():
        if incident.where in (name, name.rpartition(".")[0]):
            wire.silence(incident.seconds)


def _happen_to_worker(scene: Scene, incident: Incident) -> None:
    number, seconds = int(incident.where[1:]), incident.seconds
    worker = scene.workers[number]
    if incident.kind is IncidentKind.STOP:
        worker.stand_still(seconds)
    elif incident.kind is IncidentKind.KILL:
        worker.kill()
    elif incident.kind is IncidentKind.JUMP:
        worker.clock.jump(seconds)
    elif incident.kind is IncidentKind.MAD:
        scene.go_mad(number, seconds)
    else:
        worker.restart(seconds)


def _happen_to_switch(scene: Scene, incident: Incident) -> None:
    number, seconds = int(incident.where[1:]), incident.seconds
    switch = scene.switches[number]
    if incident.kind is IncidentKind.SPILL:
        switch.spill()
    elif incident.kind is IncidentKind.PARTITION:
        scene.lines[number].cut(seconds)
    elif incident.kind is IncidentKind.PROGRAM:
        scene.come_back_with_another_program(number, seconds)
    elif incident.kind is IncidentKind.RELAPSE:
        scene.come_back_with_another_plan(number, seconds)
    elif incident.kind is IncidentKind.TEAR:
        switch.tear(seconds, partial(_note, scene, incident))
    else:
        switch.restart(seconds)


def _note(scene: Scene, incident: Incident) -> None:
    """Take note of what happens now."""
    scene.happened.append((scene.scheduler.now, incident))
    if incident.restarts_switch:
        scene.unwatched += not scene.controller.watching
