# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The strawman's pool: its limits, what it refuses, and its numbers in the P4 sources."""

import re
from dataclasses import replace

import numpy as np
import pytest

from switchgnn.controller import install, read_counters
from switchgnn.controller.controls.banks import (
    OVERFLOWED_CELL,
    POOL_ACTION,
    Pool,
    SlotEvent,
    has_pool,
)
from switchgnn.controller.errors import PlanRefusedError
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.controller.p4runtime.rows import decode_default
from switchgnn.controller.p4runtime.state import read_default
from switchgnn.controller.plan import SwitchPlan
from switchgnn.p4src import load_program, load_strawman
from switchgnn.p4src.program import SOURCE_FOLDER
from tests.controller.plans import Manifest, make_plan

STRAWMAN = load_strawman()
LAYOUT = Layout.from_text(STRAWMAN.p4info)


def strawman_plan(**changes):
    plan = make_plan(program=STRAWMAN.digest)
    return SwitchPlan(replace(plan.manifest, strawman=True, **changes), plan.switch)


def test_only_the_strawman_has_a_pool(layout):
    assert has_pool(LAYOUT)
    assert not has_pool(layout)


@pytest.mark.parametrize("slots", [8, 9, 15, 16, 81920])
def test_slots_are_split_to_the_last_one(slots):
    pool = Pool(LAYOUT)
    default = pool.encode(slots)
    limits = list(decode_default(pool.table, POOL_ACTION, default).values())
    assert sum(limits) == pool.decode(default) == slots
    assert max(limits) - min(limits) <= 1


def test_an_install_sets_the_limits(client, network):
    install(strawman_plan(slots=21), [client], network, program=STRAWMAN)
    pool = Pool(client.get_layout())
    assert pool.decode(read_default(client, pool.table)) == 21


def test_a_program_of_the_other_kind_is_refused(client, network, program):
    with pytest.raises(PlanRefusedError, match="This is the strawman's plan, but"):
        install(strawman_plan(), [client], network, program=program)
    with pytest.raises(PlanRefusedError, match="a slot for each destination, but"):
        install(make_plan(), [client], network, program=STRAWMAN)


def test_more_slots_than_a_bank_has_are_refused(client, network):
    room = LAYOUT.registers["bank0.value"].size
    with pytest.raises(PlanRefusedError, match=f"{room + 1:,} slots in each bank"):
        install(strawman_plan(slots_per_bank=room + 1), [client], network, program=STRAWMAN)


def test_more_destinations_than_slots_are_installed_up_to_the_registers_size(client, network):
    room = Pool(LAYOUT).destinations_per_bank
    assert room > LAYOUT.registers["bank0.value"].size
    plan = strawman_plan()
    highest = np.array(plan.switch.result_slot)
    highest[0] = room - 1
    fits = SwitchPlan(plan.manifest, replace(plan.switch, result_slot=highest))
    install(fits, [client], network, program=STRAWMAN)
    highest = highest.copy()
    highest[0] = room
    beyond = SwitchPlan(plan.manifest, replace(plan.switch, result_slot=highest))
    with pytest.raises(PlanRefusedError, match=f"{room + 1:,} destinations in one bank"):
        install(beyond, [client], network, program=STRAWMAN)


def test_overflows_are_counted_by_bank(fake, client, network):
    install(strawman_plan(), [client], network, program=STRAWMAN)
    fake.contents.counters = {("bank2.events", OVERFLOWED_CELL): 5}
    counters = read_counters(client)
    assert [bank.overflowed for bank in counters.banks] == [0, 0, 5, 0, 0, 0, 0, 0]
    assert counters.named()["slot_overflowed"] == 5


def test_the_products_banks_never_overflow(client, network, program):
    install(make_plan(), [client], network, program=program)
    assert read_counters(client).named()["slot_overflowed"] == 0


def test_the_numbers_are_those_of_the_sources():
    text = (SOURCE_FOLDER / "strawman" / "banks.p4").read_text()
    assert re.search(r"SLOT_OVERFLOWED = SLOT_EVENTS;", text)
    assert len(SlotEvent) == OVERFLOWED_CELL
    assert LAYOUT.counter("bank0.events").size == len(SlotEvent) + 1


def test_the_strawman_is_another_program_with_the_same_memory():
    assert STRAWMAN.digest != load_program().digest
    assert STRAWMAN.slots == load_program().slots
    assert Manifest(1, "", "").strawman is False
