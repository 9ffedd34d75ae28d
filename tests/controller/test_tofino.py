"""Plans on a switch that runs the Tofino program: one bank, and an entry for each sender."""

from dataclasses import replace

import numpy as np
import pytest
from finsy.proto import p4r

from switchgnn.base.network import leaf_spine_networks, network_on, star_network
from switchgnn.controller import load_plan, program_cookie
from switchgnn.controller.base.errors import PlanRefusedError
from switchgnn.controller.base.place import ALONE
from switchgnn.controller.check import check_plan, memory_of
from switchgnn.controller.controls.access import Destination, last_tags
from switchgnn.controller.controls.fanout import Fanout
from switchgnn.controller.controls.loop import FIRST_HARVEST_GROUP
from switchgnn.controller.controls.one_bank import Allowed, fitted
from switchgnn.controller.jobs import remove_job
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.controller.p4runtime.rows import INSERT, group_update
from switchgnn.controller.show import show, show_entries
from switchgnn.controller.target import parts_over, served_jobs
from switchgnn.p4src import load_tofino
from switchgnn.planner import build_plan, load_graph, write_plan
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from switchgnn.planner.plan.leaf_spine import partial_senders
from tests.controller.plans import install, run

TOFINO = load_tofino()
LAYOUT = Layout.from_text(TOFINO.p4info)


def planned(graph="karate", slots=64, **options):
    how = {"workers": 4, "slots": slots, "banks": 2, "lanes": 64, "send": "cover", **options}
    return build_plan(load_graph(graph), program=TOFINO.digest, **how)


PLAN = planned(pools=2)
NARROW = {"banks": 1, "lanes": 32}


@pytest.fixture
def put(client):
    def put(plan, job="default", ports=(1, 2, 3, 4)):
        return install(plan, [client], network_on(ports), job, program=TOFINO)

    return put


def test_an_install_writes_verifies_and_repeats(put, fake, client):
    loaded = load_plan(PLAN)
    entries = put(PLAN).switches[0].entries
    assert entries["partial"] == len(partial_senders(loaded.switch)[0]) > 0
    assert entries["fanout"] == Fanout(LAYOUT).count(loaded)
    assert not put(PLAN).changed
    assert show(client).jobs[0].session.pool_slots == 4 * PLAN.manifest.pool_slots
    assert {each["worker"] for each in show_entries(client, "partial")} <= {0, 1, 2, 3}
    replicas = fake.contents.groups[FIRST_HARVEST_GROUP + 1].replicas
    assert [(each.egress_port, each.instance) for each in replicas] == [(256, 1), (256, 0)]


def test_jobs_are_apart_and_one_is_removed(put, fake, client):
    put(PLAN, "a")
    had = set(fake.contents.entries), set(fake.contents.groups)
    put(PLAN, "b", (5, 6, 7, 8))
    assert [place.name for place, _ in served_jobs(client)] == ["a", "b"]
    assert max(each["worker"] for each in show_entries(client, "partial")) in range(4, 8)
    assert {FIRST_HARVEST_GROUP + 1, FIRST_HARVEST_GROUP + 2} <= set(fake.contents.groups)
    remove_job([client], "b")
    assert (set(fake.contents.entries), set(fake.contents.groups)) == had


def test_the_command_brings_the_program_of_a_plan(fake, client, tmp_path):
    write_plan(PLAN, tmp_path / "plan")
    install, jobs = ("install", tmp_path / "plan"), ("jobs", "--json")
    for words in (install, jobs, ("show", "--entries", "partial")):
        done = run(*words, "--address", fake.address)
        assert done.exit_code == 0, done.output
    assert client.get_pipeline_cookie() == program_cookie(TOFINO)
    assert done.output.count("\n") >= len(partial_senders(PLAN.switch)[0])


def test_other_groups_have_one_copy_for_each_port():
    update = group_update(INSERT, 7, (1, 2, 258))
    replicas = update.entity.packet_replication_engine_entry.multicast_group_entry.replicas
    assert [p4r.Replica(egress_port=port) for port in (1, 2, 258)] == list(replicas)


def test_senders_have_the_numbers_of_the_job():
    loaded, place = load_plan(PLAN), replace(ALONE, first_block=10, first_worker=20)
    allowed = Allowed(LAYOUT)
    found = allowed.records(allowed.rows(loaded, place=place))
    results, workers = partial_senders(loaded.switch)
    assert len(found) == allowed.count(loaded)
    for record, result, worker in zip(found, results, workers, strict=True):
        assert record["worker"] == 20 + worker
        assert record["block_id"] == 10 + loaded.switch.result_block[result]
        assert record["dst_id"] == loaded.switch.result_vertex[result]


@pytest.mark.parametrize(
    "options", [{}, {"slots": 40, "pools": 3}, {"partition": "metis-volume"}, NARROW]
)
def test_one_bank_has_the_slots_of_all(options):
    """A destination keeps a slot of its own, and hops add to it as often as it expects."""
    before = load_plan(planned("digits", **options))
    plan = fitted(before, LAYOUT)
    switch, size = plan.switch, plan.manifest.pool_slots
    slots = list(zip(switch.result_block, switch.result_slot, strict=True))
    assert len(set(slots)) == len(slots)
    assert switch.result_slot.max() < size
    assert size * plan.manifest.pools <= TOFINO.slots
    expected = dict(zip(slots, switch.result_expected, strict=True))
    added: dict[tuple[int, int], int] = dict.fromkeys(slots, 0)
    entries = (switch.entry_block, switch.entry_slot[:, 0], switch.entry_expected[:, 0])
    for block, slot, number, count in zip(*entries, switch.entry_count, strict=True):
        assert expected[block, slot] == number
        added[block, slot] += count
    assert added == expected
    assert fitted(plan, LAYOUT) is plan
    assert np.array_equal(before.switch.entry_hop, switch.entry_hop)


def test_a_plan_of_digits_is_within_all_tables():
    memory = memory_of(load_plan(planned("digits", TOFINO.slots)), LAYOUT, star_network(4))
    assert all(use.fits for use in (*memory.tables, *memory.registers))
    assert {use.name for use in memory.tables} == {table.name for table in LAYOUT.keyed_tables()}


def manifested(**changes):
    plan = load_plan(PLAN)
    return replace(plan, manifest=replace(plan.manifest, **changes))


def crowded():
    plan = load_plan(PLAN)
    many = np.arange(last_tags(LAYOUT)[0].size + 1, dtype=np.uint32)
    return replace(plan, switch=replace(plan.switch, source_vertex=many))


def with_many_entries():
    plan, times = load_plan(PLAN), 4000
    names = [each for each in vars(plan.switch) if each.startswith("entry_")]
    columns = {name: np.repeat(getattr(plan.switch, name), times, axis=0) for name in names}
    return replace(plan, switch=replace(plan.switch, **columns))


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (lambda: planned(banks=8), "uses 8 banks, the P4 program has 1"),
        (lambda: manifested(lanes=72), "72 numbers in a row of a frame.* room for 64.* --lanes 64"),
        (lambda: manifested(rows=2), "2 rows in a frame.* room for 1: plan with --rows 1"),
        (lambda: planned(slots=40_000), "20,000 slots in each bank.* room for 16,384"),
        (crowded, "16,385 sources.* room for 16,384"),
        (with_many_entries, "entries for table fanout.* room for 131,072"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(put, fake, client, plan, words):
    client.embedded = True
    with pytest.raises(PlanRefusedError, match=words):
        put(plan())
    assert (fake.updates, fake.pushes) == (0, 0)


def test_leaves_and_spines_have_a_slot_for_each_sum_and_an_entry_for_each_sender():
    over, destination, allowed = even_leaf_spine(4, 2, 1), Destination(LAYOUT), Allowed(LAYOUT)
    networks = leaf_spine_networks(over.leaf_of_worker, 1).switches
    senders = []
    for part, network in parts_over(planned("digits", slots=512, **NARROW), over, networks):
        check_plan(part, TOFINO, LAYOUT, network)
        plan = fitted(part, LAYOUT)
        sums = destination.records(destination.rows(plan, network))
        used = [(each["block_id"], each["slot"]) for each in sums if each.get("expected")]
        assert len(set(used)) == len(used) > 0
        senders.append({each["worker"] for each in allowed.records(allowed.rows(plan, network))})
    assert senders == [{0, 1}, {2, 3}, {0, 1}]
