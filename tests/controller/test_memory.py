"""What a plan takes of a switch is what would be written to it."""

import functools
import json
from dataclasses import replace

import pytest

from switchgnn.base.network import leaf_spine_networks, star_network
from switchgnn.controller import install
from switchgnn.controller.base.errors import PlanRefusedError
from switchgnn.controller.base.plan import SwitchPlan, leaf_spine_switch_plan
from switchgnn.controller.check import check_plan, memory_of
from switchgnn.controller.controls.fanout import Fanout
from switchgnn.controller.controls.session import Session
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.p4src import load_program, load_strawman
from switchgnn.planner import build_plan, load_graph
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.planner.plan.leaf_spine import split_for_leaf_spine

PROGRAM = load_program()
LAYOUT = Layout.from_text(PROGRAM.p4info)
ECN_THRESHOLD = 10


STAR = star_network(4)


@functools.cache
def planned(send="multicast", program=PROGRAM, **options):
    options |= {"send": send, "program": program.digest}
    return build_plan(load_graph("digits"), workers=4, slots=64, **options)


def on_a_star(*how, **options):
    plan = planned(*how, **options)
    return SwitchPlan(plan.manifest, plan.switch)


def entries_of(plan, layout, network):
    """Those that an install would write, by table."""
    job = install.desired_state(plan, layout, network, ECN_THRESHOLD)
    state = install.with_session(job, layout, 1, Session(layout).entry(1, plan))
    return {name: len(rows) for name, rows in state.rows.items() if len(rows)}


def check_entries(switch, network, layout=LAYOUT):
    found = memory_of(switch, layout, network)
    numbers = {use.name: use.number for use in found.tables if use.number}
    assert numbers == entries_of(switch, layout, network)
    return found


def test_entries_are_those_that_are_written_to_a_switch_or_to_leaves_and_spines():
    check_entries(on_a_star("cover"), STAR)
    check_entries(on_a_star(), STAR)
    plan, around = planned(), leaf_spine_networks((0, 0, 1, 1), 2)
    parts = split_for_leaf_spine(plan, LeafSpine((0, 0, 1, 1), spines=2)).switches
    for part, network in zip(parts, (*around.leaves, *around.spines), strict=True):
        check_entries(leaf_spine_switch_plan(plan.manifest, part), network)


def test_the_strawmans_plan_takes_what_is_written():
    program = load_strawman()
    plan = on_a_star(program=program, blocks="strawman")
    found = check_entries(plan, STAR, Layout.from_text(program.p4info))
    cells = {use.name: use.number for use in found.registers}
    assert cells["bank0.destinations"] == plan.switch.result_slot.max() + 1
    assert cells["bank0.free_slots"] == plan.manifest.slots_per_bank


def test_bits_are_those_that_the_compiler_says():
    """BMv2's own file of the program, which the controller does not read."""
    compiled = json.loads(PROGRAM.json)
    headers = {each["name"]: each["header_type"] for each in compiled["headers"]}
    types = {
        each["name"]: {field: bits for field, bits, *_ in each["fields"]}
        for each in compiled["header_types"]
    }
    registers = {each["name"].split(".", 1)[-1]: each for each in compiled["register_arrays"]}
    actions = {each["id"]: each for each in compiled["actions"]}
    tables = {
        each["name"].split(".")[-1]: each
        for pipeline in compiled["pipelines"]
        for each in pipeline["tables"]
    }
    found = memory_of(on_a_star(), LAYOUT, STAR)
    for use in found.tables:
        table = tables[use.name]
        targets = (each["target"] for each in table["key"])
        key = sum(types[headers[header]][field] for header, field in targets)
        data = max(
            sum(parameter["bitwidth"] for parameter in actions[number]["runtime_data"])
            for number in table["action_ids"]
        )
        assert (use.bits, use.room) == (key + data, table["max_size"])
        assert use.bytes == use.number * -(-use.bits // 8)
    for use in found.registers:
        (name,) = [each for each in registers if f".{each}".endswith(f".{use.name}")]
        assert (use.bits, use.room) == (registers[name]["bitwidth"], registers[name]["size"])


def test_registers_grow_with_the_plan():
    plan = on_a_star("cover")
    found = memory_of(plan, LAYOUT, STAR)
    cells = {use.name: use.number for use in found.registers}
    assert cells["last_tag"] == len(plan.switch.source_vertex)
    assert cells["lanes3.value"] == cells["bank3.state"] == 64 / 8 + cells["fragment_tag"]
    assert found.register_bytes == sum(use.bytes for use in found.registers)
    assert too_large(found) == []


def too_large(memory):
    return [use for use in (*memory.tables, *memory.registers) if not use.fits]


def smaller(name, size):
    tables = {**LAYOUT.tables, name: replace(LAYOUT.tables[name], size=size)}
    return replace(LAYOUT, tables=tables)


@pytest.mark.parametrize("name", ["fanout", "source", "destination", "result", "station"])
def test_tables_that_are_too_small_are_named(name):
    switch = on_a_star()
    entries = entries_of(switch, LAYOUT, STAR)[name]
    assert too_large(memory_of(switch, smaller(name, entries), STAR)) == []
    (use,) = too_large(memory_of(switch, smaller(name, entries - 1), STAR))
    assert (use.name, use.number, use.room) == (name, entries, entries - 1)
    check_plan(switch, PROGRAM, smaller(name, entries), STAR)
    with pytest.raises(PlanRefusedError, match=f"{entries:,} entries for table {name}"):
        check_plan(switch, PROGRAM, smaller(name, entries - 1), STAR)


def test_it_is_refused_before_an_entry_is_made(monkeypatch):
    """Millions of entries take their time and memory."""
    monkeypatch.setattr(Layout, "from_text", lambda _: smaller("fanout", 1))
    monkeypatch.setattr(Fanout, "rows", lambda *_: pytest.fail("An entry was made."))
    with pytest.raises(PlanRefusedError, match="table fanout, but the P4 program has room for 1"):
        install.install_each(
            [install.Share(on_a_star(), STAR, "127.0.0.1:1")], install.DesiredStates(PROGRAM)
        )
