"""Installing: only the difference is written, and a failure leaves what was there."""

from dataclasses import replace

import pytest
from finsy.proto import rpc_code
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from switchgnn.controller import P4RuntimeClient, clear, star_network
from switchgnn.controller.base import errors
from switchgnn.controller.change import empty_state, read_state
from switchgnn.controller.controls.job import Jobs
from switchgnn.controller.controls.session import Session
from switchgnn.controller.p4runtime.rows import default_update
from switchgnn.controller.target import SwitchInstall
from tests.controller.fake_server import FakeSwitch
from tests.controller.plans import install, make_plan, observed, same
from tests.support.speed import seconds_here

PLAN = make_plan(1)
OTHER = make_plan(2, workers=4, sources=7, blocks=3, hops=3, results=40)


@pytest.fixture
def put(client, network, program):
    def put(plan, **options):
        return install(plan, [client], network, program=program, **options)

    return put


def test_a_fresh_switch_gets_program_entries_and_session_one(put, fake):
    report = put(PLAN)
    assert report.session == 1
    assert report.switches[0].pipeline_pushed
    assert report.switches[0].entries["fanout"] == 2 * 4 * 2
    assert "P4 program loaded" in report.sentences()[0]
    assert len(fake.contents.groups) == 1 + 3 * 8
    thresholds = 3 + 8
    assert len(fake.contents.entries) == 3 + 4 + 4 + 5 + 16 + 5 + 3 + thresholds + 2


# The sum that answers a recall without a body would be more than 512 bytes longer; or eight rows
# would, each in a chunk.
@pytest.mark.parametrize(("rows", "lanes"), [(1, 256), (2, 64), (8, 32), (8, 8)])
def test_frames_that_abort_bmv2_are_for_the_embedded_switch(put, fake, client, rows, lanes):
    plan = replace(PLAN, manifest=replace(PLAN.manifest, rows=rows, lanes=lanes))
    with pytest.raises(errors.PlanRefusedError, match=f"frames of {rows} x {lanes} numbers"):
        put(plan)
    assert (fake.updates, fake.pushes) == (0, 0)
    client.embedded = True
    assert put(plan).changed


def test_other_frames_are_for_both_switches(put):
    for rows, lanes in ((1, 128), (2, 56), (4, 24)):
        assert put(replace(PLAN, manifest=replace(PLAN.manifest, rows=rows, lanes=lanes))).changed


def test_a_second_install_writes_nothing_and_says_so(put, fake):
    put(PLAN)
    updates = fake.updates
    report = put(PLAN)
    assert not report.changed
    assert (fake.updates, fake.pushes) == (updates, 1)
    assert "nothing to do" in report.sentences()[0]
    assert report.session == 1


# The newest session is an update of its own; a threshold is one for each port.
@pytest.mark.parametrize(
    ("options", "session", "count"),
    [({"new_session": True}, 2, 2), ({"ecn_threshold": 20}, 1, 3 + 8)],
)
def test_what_changes_beside_the_plan_is_all_that_is_written(put, fake, options, session, count):
    put(PLAN)
    updates = fake.updates
    assert put(PLAN, **options).session == session
    assert fake.updates == updates + count


def turns(client, layout):
    session = Session(layout)
    return session.decode(client.read_rows(session.table))[1].any_tag


def test_a_restarted_switch_takes_all_turns_until_a_new_session(
    put, fake, network, program, layout
):
    for new_session in (False, True, True):
        put(PLAN, new_session=new_session)
    with P4RuntimeClient(fake.address, primary=False) as client:
        assert turns(client, layout) == 0
        had = read_state(client, layout)
    fake.restart()
    with P4RuntimeClient(fake.address) as client:
        target = SwitchInstall(client, program, layout)
        target.look()
        target.restore(had)
        assert turns(client, layout) == 1
        # Nor is that forgotten.
        report = install(PLAN, [client], network, program=program)
        assert (report.session, report.changed) == (3, False)
        assert turns(client, layout) == 1
        assert install(PLAN, [client], network, program=program, new_session=True).session == 4
        assert turns(client, layout) == 0


def test_another_plan_takes_a_new_session(put):
    put(PLAN)
    assert put(OTHER).session == 2
    assert put(PLAN).session == 3


def test_another_program_is_replaced(put, client, fake, program):
    client.set_pipeline(program, 12345)
    assert put(PLAN).switches[0].pipeline_pushed
    assert fake.pushes == 2


def test_a_cleared_switch_gets_its_program_anew(put, client, fake):
    # Its registers hold tags of a session that nobody knows.
    put(PLAN)
    clear(client)
    assert not fake.contents.entries
    assert not fake.contents.groups
    assert not fake.contents.defaults
    report = put(PLAN)
    assert (report.switches[0].pipeline_pushed, report.session) == (True, 1)


def test_the_session_starts_over_after_the_last_number(put, client, fake, layout):
    put(PLAN)
    newest = Jobs(layout).encode_newest(Session(layout).max_session)
    client.write([default_update(layout.table("job"), newest)])
    assert put(PLAN, new_session=True).session == 1
    assert fake.pushes == 2


def test_foreign_entries_are_removed_and_damaged_ones_repaired(put, client, fake, layout):
    put(PLAN)
    victim = next(key for key in fake.contents.entries if key[0] == layout.table("fanout").id)
    entry = fake.contents.entries.pop(victim)
    entry.match[0].exact.value = b"\x63"
    fake.contents.entries[victim[0], ((1, b"\x63"), *victim[1][1:])] = entry
    counts = put(PLAN).switches[0].counts
    assert (counts.inserted, counts.modified, counts.deleted) == (1, 0, 1)


def test_the_session_is_closed_while_entries_change(put, client, fake, layout, monkeypatch):
    put(PLAN)
    seen = set()
    table = Session(layout).table.id
    original = fake._apply

    def spy(update, context):
        entry = update.entity.table_entry
        if entry.table_id != table and not entry.is_default_action:
            seen.add(sum(key[0] == table for key in fake.contents.entries))
        return original(update, context)

    monkeypatch.setattr(fake, "_apply", spy)
    put(OTHER)
    assert seen == {0}


def refused(plan, network, program, match):
    with pytest.raises(errors.PlanRefusedError, match=match):
        install(plan, ["127.0.0.1:1"], network, program=program)


def test_a_plan_for_another_program_is_refused(network, program):
    refused(make_plan(program="00" * 32), network, program, "for another P4 program .*000000000000")


STAR = star_network(4)
TWO_ON_A_PORT = replace(STAR, neighbours=STAR.neighbours[:1] * 4)
ON_A_LOOP_PORT = replace(
    STAR, neighbours=(*STAR.neighbours[:3], replace(STAR.neighbours[3], port=256))
)


@pytest.mark.parametrize(
    ("plan", "network", "words"),
    [
        (make_plan(workers=5), STAR, "5 workers, but the network has 4 ports"),
        (make_plan(workers=200), star_network(200), "200 workers, .* has room for 128"),
        (PLAN, TWO_ON_A_PORT, "same port"),
        (PLAN, ON_A_LOOP_PORT, "from 1 to 255"),
    ],
)
def test_plans_that_do_not_fit_are_refused(plan, network, words, program):
    refused(plan, network, program, words)


def test_slots_beyond_a_bank_are_refused(network, program, layout):
    size = layout.registers["lanes0.value"].size - layout.registers["fragment_tag"].size
    manifest = replace(PLAN.manifest, slots_per_bank=size + 1)
    refused((manifest, PLAN.switch), network, program, f"{size + 1:,} slots in each bank")
    slots = PLAN.switch.entry_slot.copy()
    expected = PLAN.switch.entry_expected.copy()
    slots[0, 0], expected[0, 0] = size, 1
    switch = replace(PLAN.switch, entry_slot=slots, entry_expected=expected)
    refused((PLAN.manifest, switch), network, program, f"room for {size:,}")


def test_a_client_for_reading_is_refused(fake, network, program):
    client = P4RuntimeClient(fake.address, primary=False)
    with pytest.raises(errors.ControllerError, match="for reading only"):
        install(PLAN, [client], network, program=program)


@pytest.fixture(scope="module")
def shared():
    """One switch with PLAN for all examples of a property."""
    switch = FakeSwitch().start()
    with P4RuntimeClient(switch.address, deadline=seconds_here(3)) as client:
        yield switch, client
    switch.stop()


@pytest.mark.whole
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(fail_at=st.integers(1, 170))
def test_any_refused_update_leaves_the_old_plan(shared, network, program, layout, fail_at):
    switch, client = shared
    switch.arm()
    install(PLAN, [client], network, program=program)
    before = observed(switch.address, layout)
    switch.arm(fail_at=fail_at)
    try:
        install(OTHER, [client], network, program=program)
    except errors.WriteRefusedError as error:
        assert len(error.failures) == 1
        assert same(layout, observed(switch.address, layout), before)
    else:
        assert switch.faults.seen < fail_at


@pytest.mark.parametrize("fail_at", [1, 30, 75])
def test_a_refused_update_leaves_a_fresh_switch_empty(put, fake, layout, fail_at):
    fake.arm(fail_at=fail_at)
    with pytest.raises(errors.WriteRefusedError):
        put(PLAN)
    assert same(layout, observed(fake.address, layout), empty_state(layout))
    assert put(PLAN).session == 1


def test_a_forgotten_update_is_noticed_and_rolled_back(put, fake, layout):
    put(PLAN)
    before = observed(fake.address, layout)
    fake.arm(lose_at=70)
    with pytest.raises(
        errors.VerificationError, match=r"reads back 1 differently; the first: .* missing"
    ):
        put(OTHER)
    assert same(layout, observed(fake.address, layout), before)


def test_a_half_installed_switch_is_repaired_in_a_new_session(put, fake):
    put(PLAN)
    fake.arm(fail_at=40, keep_failing=True)
    with pytest.raises(errors.RollbackError, match="may hold a part of the plan") as caught:
        put(OTHER)
    assert isinstance(caught.value.__context__, errors.WriteRefusedError)
    fake.arm()
    assert put(OTHER).session == 2
    assert not put(OTHER).changed


@pytest.mark.whole
def test_a_broken_connection_is_told_and_mended_by_the_next_install(fake, network, program):
    with P4RuntimeClient(fake.address, deadline=seconds_here(0.5)) as client:
        install(PLAN, [client], network, program=program)
        fake.arm(drop_at=50)
        with pytest.raises(errors.RollbackError) as caught:
            install(OTHER, [client], network, program=program)
    assert isinstance(caught.value.__context__, errors.SwitchUnreachableError)
    fake.arm()
    fake.restart()
    assert install(OTHER, [fake.address], network, program=program).session == 1


def test_a_switch_without_a_session_joins_that_of_the_others(fake, other_fake, network, program):
    """Its workers' packets carry one number; the registers of the new switch hold nothing."""
    install(PLAN, [fake.address], network, program=program)
    install(PLAN, [fake.address], network, program=program, new_session=True)
    both = [fake.address, other_fake.address]
    report = install(PLAN, both, network, program=program)
    assert report.session == 2
    assert [switch.pipeline_pushed for switch in report.switches] == [False, True]
    assert not install(PLAN, both, network, program=program).changed


def test_a_new_session_is_above_that_of_every_switch(fake, other_fake, network, program):
    install(PLAN, [fake.address], network, program=program)
    install(PLAN, [fake.address], network, program=program, new_session=True)
    install(PLAN, [other_fake.address], network, program=program)
    report = install(PLAN, [other_fake.address, fake.address], network, program=program)
    assert report.session == 3
    assert all(switch.changed for switch in report.switches)


def test_a_failure_on_one_switch_rolls_back_the_other(fake, other_fake, network, program, layout):
    both = [fake.address, other_fake.address]
    install(PLAN, both, network, program=program)
    before = [observed(address, layout) for address in both]
    other_fake.arm(fail_at=100, fail_code=rpc_code.RESOURCE_EXHAUSTED)
    with pytest.raises(errors.WriteRefusedError, match=other_fake.address):
        install(OTHER, both, network, program=program)
    after = [observed(address, layout) for address in both]
    assert all(same(layout, *pair) for pair in zip(before, after, strict=True))


def test_a_switch_that_is_away_leaves_the_others_untouched(fake, network, program):
    gone = P4RuntimeClient("127.0.0.1:1", deadline=0.2)
    with pytest.raises(errors.SwitchUnreachableError, match=r"No switch answers at 127\.0\.0\.1:1"):
        install(PLAN, [fake.address, gone], network, program=program)
    assert fake.pushes == 0
