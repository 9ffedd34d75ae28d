# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A failure becomes small, and something that a person reads."""

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from switchgnn.virtual.diagram.steps import Step, last_steps
from switchgnn.virtual.diagram.svg import svg_diagram
from switchgnn.virtual.diagram.text import text_diagram
from switchgnn.virtual.scenario.draw import Wish, draw_scenario
from switchgnn.virtual.scenario.scenario import Incident, IncidentKind, Rates, Scenario
from switchgnn.virtual.scenario.shrink import shrink, smaller

KILL = Incident(IncidentKind.KILL, "w1", 90)
STOP = Incident(IncidentKind.STOP, "w0", 70, 0.5)
LARGE = Scenario(
    seed=9,
    graph="random:120:240:3",
    workers=5,
    slots=8,
    send="cover",
    directions="both",
    width=80,
    rounds=8,
    sessions=3,
    window=4,
    turns=3,
    up=Rates(loss=0.1, late=0.1),
    incidents=(STOP, KILL),
)


def test_what_is_not_needed_goes():
    """All that is to remain is the kill, and that frames are lost on their way up."""

    def shows(scenario):
        return KILL in scenario.incidents and scenario.up.loss > 0

    small = shrink(LARGE, shows, 1000)
    assert small == Scenario(
        seed=small.seed,
        graph="random:8:12:1",
        workers=2,
        slots=256,
        rounds=1,
        jitter=0,
        up=Rates(loss=0.1),
        incidents=(KILL,),
    )


def test_tries_are_bounded():
    tried = []
    shrink(LARGE, lambda scenario: tried.append(scenario) or False, 7)
    assert len(tried) == 7


@pytest.mark.parametrize("seed", range(20))
def test_what_is_smaller_differs_in_one_thing(seed):
    scenario = draw_scenario(seed, Wish(2, 2))
    for candidate in smaller(scenario):
        different = [
            name for name in vars(scenario) if vars(scenario)[name] != vars(candidate)[name]
        ]
        assert len(different) == 1


def test_a_failure_is_drawn(star):
    scenario = Scenario(seed=1, incidents=(KILL,))
    steps = star.steps(scenario, 25)
    assert len(steps) == 25
    text = text_diagram(steps)
    assert len(text.splitlines()) == 26
    assert {"w0", "w2", "s0"} <= set(text.splitlines()[0].split())
    assert "gives up" in text
    assert "DONE session 1 round" in text
    picture = ET.fromstring(svg_diagram(steps))  # noqa: S314  our own
    texts = [element.text for element in picture.iter() if element.tag.endswith("text")]
    assert any("gives up" in each for each in texts)


def test_a_failure_is_where_a_diagram_ends():
    asks = Step(1.0, "w0", "s0", "DONE", "passed")
    steps = [
        Step(0.0, "s0", "s0", "starts"),
        asks,
        replace(asks, time=2.0),
        replace(asks, time=3.0, fate="loss"),
        Step(4.0, "check", "check", "ends: it does not"),
        Step(5.0, "w0", "w0", "is killed"),
    ]
    shown = last_steps(steps, 10)
    assert [step.time for step in shown] == [0.0, 2.0, 3.0, 4.0]
    _, _, passed, lost, _ = text_diagram(shown).splitlines()
    assert "->" in passed
    assert ".x" in lost
    assert "[loss]" in lost
