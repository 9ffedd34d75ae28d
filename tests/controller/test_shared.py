"""Jobs that share the slots of the strawman's program: which are beside each other."""

from dataclasses import replace

import pytest

from switchgnn.base.network import network_on
from switchgnn.commands.shared.switch_state import jobs_table
from switchgnn.controller import DesiredStates, JobRequest, Share, SwitchPlan, install_each
from switchgnn.controller.base.errors import PlanRefusedError
from switchgnn.controller.controls.banks import SHARED_AGE, SlotLimits
from switchgnn.controller.show import NO_TABLES, show
from switchgnn.p4src import load_program, load_strawman
from tests.controller.plans import make_plan

STRAWMAN = load_strawman()
SLOTS = 21


def plan_of(program=STRAWMAN, slots=SLOTS):
    plan = make_plan(program=program.digest)
    manifest = replace(plan.manifest, strawman=program is STRAWMAN, slots=slots)
    return SwitchPlan(manifest, plan.switch)


def put(client, name, first_port, *, shared=True, program=STRAWMAN, slots=SLOTS, quota=None):
    share = Share(plan_of(program, slots), network_on(range(first_port, first_port + 3)), client)
    install_each([share], DesiredStates(program), JobRequest(name, quota, shared=shared))


def test_jobs_share_slots_and_have_destinations_of_their_own(client):
    for number, name in enumerate("abc"):
        put(client, name, 1 + 3 * number)
    state = show(client, NO_TABLES)
    places = [job.place for job in state.jobs]
    assert [place.shared for place in places] == [SLOTS] * 3
    destinations = int(plan_of().switch.result_slot.max()) + 1
    assert [place.first_slot for place in places] == [0, destinations, 2 * destinations]
    table = SlotLimits(client.get_layout())
    limits = table.decode(client.read_default(table.table))
    assert limits.pop("age") == SHARED_AGE
    assert sum(limits.values()) == SLOTS
    (column,) = (each for each in jobs_table(state.jobs).columns if each.header == "slots per bank")
    assert [*column.cells] == ["shared"] * 3


ALONE, BESIDE = {"name": "a", "first_port": 1}, {"name": "b", "first_port": 4}


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (ALONE, {**BESIDE, "slots": 22}, "share 21 slots, but the plan of job b is for 22"),
        (ALONE, {**BESIDE, "shared": False}, "Job a .* has shared slots: remove it"),
        ({**ALONE, "shared": False}, BESIDE, "Job a .* has slots of its own: remove it"),
        (ALONE, {**ALONE, "shared": False}, "Job a .* has shared slots: remove it"),
        (ALONE, {**BESIDE, "quota": 20}, "job b needs 21 slots, but its quota is 20"),
        (
            {**ALONE, "shared": False, "program": load_program()},
            {**BESIDE, "program": load_program()},
            "only the strawman's program",
        ),
    ],
)
def test_what_cannot_be_beside_a_job_is_refused(fake, client, first, second, words):
    put(client, **first)
    before = dict(fake.contents.entries)
    with pytest.raises(PlanRefusedError, match=words):
        put(client, **second)
    assert fake.contents.entries == before


def test_a_job_alone_may_get_another_limit(client):
    put(client, **ALONE)
    put(client, **ALONE, slots=33)
    assert [job.place.shared for job in show(client, NO_TABLES).jobs] == [33]
