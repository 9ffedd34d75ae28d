# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn plan` says what a plan takes of the switches, and writes none that does not fit."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from switchgnn.commands.application import app
from switchgnn.controller.memory import Use
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.plan.files import read_switch_part
from switchgnn.profiles import PlanMemory


def plan(*arguments):
    result = CliRunner().invoke(
        app, ["plan", *map(str, arguments)], env={"COLUMNS": "80"}, catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    return result.stdout


DIGITS = ("digits", "--workers", 4, "--slots", 64)


def test_entries_and_bytes_of_every_table(tmp_path):
    found = json.loads(plan(*DIGITS, "--out", tmp_path / "plan", "--json"))
    switch = read_switch_part(tmp_path / "plan")
    assert found["fits"]
    assert found["entries"]["fanout"] == len(switch.entry_block)
    assert found["entries"]["source"] == len(switch.source_vertex)
    assert found["entries"]["result"] == len(switch.result_block)
    # 309 bits: block, source, hop; two flags and eight slots with their counts.
    assert found["table_bytes"]["fanout"] == 39 * len(switch.entry_block)
    assert found["table_bytes_sum"] == sum(found["table_bytes"].values())
    assert found["register_bytes"]["lanes0.value"] == 64 // 8 * 128
    assert found["register_bytes_sum"] == sum(found["register_bytes"].values())
    assert found["passes_per_second"] is None


def test_partial_sums_take_an_entry_for_each_destination(tmp_path):
    found = json.loads(plan(*DIGITS, "--send", "cover", "--out", tmp_path / "plan", "--json"))
    switch = read_switch_part(tmp_path / "plan")
    partial = switch.entry_source >= 2**31
    rows, banks = np.nonzero(switch.entry_expected[partial])
    slots = zip(
        switch.entry_block[partial][rows],
        banks,
        switch.entry_slot[partial][rows, banks],
        strict=True,
    )
    assert found["entries"]["partial"] == len(set(slots)) > 0
    # 176 bits: block, destination; a bit for each worker.
    assert found["table_bytes"]["partial"] == 22 * found["entries"]["partial"]
    assert found["entries"]["fanout"] == (~partial).sum()


def test_leaves_and_spines_are_told_by_the_fullest():
    whole = json.loads(plan(*DIGITS, "--json"))
    text = plan(*DIGITS, "--leaves", 2, "--spines", 2)
    split = json.loads(plan(*DIGITS, "--leaves", 2, "--spines", 2, "--json"))
    assert split["fits"]
    assert split["entries"]["fanout"] < whole["entries"]["fanout"]
    # No switch need have the most of every table.
    assert split["table_bytes_sum"] <= sum(split["table_bytes"].values())
    assert "memory of the fullest switch" in text


def test_tables_may_take_no_more_than_allowed(tmp_path):
    needed = json.loads(plan(*DIGITS, "--json"))["table_bytes_sum"]
    assert json.loads(plan(*DIGITS, "--table-memory", needed, "--json"))["fits"]
    found = json.loads(plan(*DIGITS, "--table-memory", needed - 1, "--json"))
    assert not found["fits"]
    assert found["table_memory"] == needed - 1
    assert "It does not fit: The tables of the switch take" in plan(
        *DIGITS, "--table-memory", needed - 1
    )
    with pytest.raises(PlannerError, match=r"may take .* Nothing was written"):
        plan(*DIGITS, "--table-memory", needed - 1, "--out", tmp_path / "plan")
    assert not list(tmp_path.iterdir())


def test_partial_sums_take_fewer_entries():
    """What the refusal advises."""
    multicast, cover = (
        json.loads(plan(*DIGITS, "--send", send, "--json"))["table_bytes"]["fanout"]
        for send in ("multicast", "cover")
    )
    assert cover < multicast


def test_the_passes_that_were_assumed_are_told():
    options = ("--strategy", "best", "--link-rate", 1000, "--recirculation-rate", 5000)
    assert json.loads(plan(*DIGITS, *options, "--json"))["passes_per_second"] == 5000


def test_what_the_program_has_no_room_for_is_named():
    use = Use("fanout", 11, 10, 405)
    memory = PlanMemory((use,), (), use.bytes, 0, None, 1)
    assert memory.to_dict()["fits"] is False
    assert "needs 11 of fanout, and the P4 program has 10" in memory.refusals[0]


@pytest.mark.parametrize("size", ["10XB", "-1", ""])
def test_sizes_that_are_none(size):
    result = CliRunner().invoke(app, ["plan", *map(str, DIGITS), "--table-memory", size])
    assert result.exit_code != 0
