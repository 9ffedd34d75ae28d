# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers that the P4 sources and the controller must agree on."""

import re

from switchgnn.controller import Outcome
from switchgnn.controller.controls import loop
from switchgnn.controller.controls.banks import Banks, SlotEvent
from switchgnn.controller.controls.outcome import COUNTER
from switchgnn.p4src.program import SOURCE_FOLDER


def constants(file, kind):
    text = (SOURCE_FOLDER / file).read_text()
    found = re.findall(rf"const {kind}\s+(\w+)\s*=\s*(\d+);", text)
    return {name: int(value) for name, value in found}


def test_outcomes_are_those_of_the_sources(layout):
    assert {outcome.name: outcome.value for outcome in Outcome} == constants(
        "outcome.p4", "outcome_t"
    )
    assert layout.counter(COUNTER).size == len(Outcome)


def test_slot_events_are_those_of_the_sources(layout):
    found = constants("slots.p4", r"bit<32>")
    assert found.pop("SLOT_EVENTS") == len(SlotEvent)
    assert found == {event.name: event.value for event in SlotEvent}


def test_loop_ports_and_groups_are_those_of_the_sizes():
    assert constants("sizes.p4", "bit<9>")["FIRST_LOOP_PORT"] == loop.FIRST_LOOP_PORT
    assert constants("sizes.p4", "bit<16>")["ALL_WORKERS_GROUP"] == loop.ALL_WORKERS_GROUP
    bits = re.search(r"#define LOOP_LANE_BITS (\d+)", (SOURCE_FOLDER / "sizes.p4").read_text())
    assert 1 << int(bits[1]) == loop.LOOP_LANES


def test_bank_sizes_are_read_from_the_program(layout):
    assert Banks(layout).banks == 8
    assert Banks(layout).slots_per_bank == layout.registers["lanes0.value"].size
