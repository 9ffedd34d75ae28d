# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Slots in use, read from the registers of the embedded switch; the fake one refuses, as BMv2."""

import pytest
from finsy.proto import p4d, p4r

from switchgnn.controller import P4RuntimeClient, install, program_cookie
from switchgnn.controller.counters import SlotsInUse, bank_slots, read_slots_in_use
from switchgnn.softswitch import SoftSwitch
from tests.controller.plans import make_plan


@pytest.fixture
def switch(program):
    with (
        SoftSwitch() as running,
        P4RuntimeClient(running.grpc_address) as client,
    ):
        client.set_pipeline(program, program_cookie(program))
        yield client


def fill(client, bank, index, tag, count):
    """Write the state of a slot, as the program does."""
    register = client.get_layout().registers[f"bank{bank}.state"]
    entry = p4r.RegisterEntry(
        register_id=register.id,
        index=p4r.Index(index=index),
        data=p4d.P4Data(bitstring=(tag << 16 | count).to_bytes(12, "big")),
    )
    update = p4r.Update(type=p4r.Update.MODIFY, entity=p4r.Entity(register_entry=entry))
    client.write([update])


def test_only_the_newest_block_counts(switch):
    assert read_slots_in_use(switch, 4) == SlotsInUse(0, 32, 32)
    fill(switch, 0, 0, 7, 1)
    fill(switch, 1, 3, 7, 2)
    fill(switch, 2, 2, 6, 9)
    # Beyond what the plan uses.
    fill(switch, 3, 4, 7, 1)
    assert read_slots_in_use(switch, 4) == SlotsInUse(2, 32, 32)
    fill(switch, 7, 1, 8, 1)
    assert read_slots_in_use(switch, 4) == SlotsInUse(1, 32, 32)


def test_of_many_slots_some_are_looked_at(switch):
    for index in range(0, 1000, 2):
        fill(switch, 5, index, 7, 1)
    found = read_slots_in_use(switch, 1000)
    assert found.slots == 8000
    assert 128 <= found.seen <= 256
    assert 0 < found.used <= found.seen / 8


def test_a_switch_that_does_not_say(fake, client, network, program):
    install(make_plan(), [client], network, program=program)
    assert read_slots_in_use(client, 4) is None


def test_as_many_as_results_are_in():
    assert bank_slots(make_plan().switch) == int(make_plan().switch.result_slot.max()) + 1
