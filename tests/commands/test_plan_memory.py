"""`switchgnn plan` says what a plan takes of the switches, and writes none that does not fit."""

from collections import Counter

import numpy as np
import pytest
from typer.testing import CliRunner

from switchgnn.commands.application import app
from switchgnn.controller.check import Use
from switchgnn.planner import PlannerError, read_switch_part
from switchgnn.profiles import PlanMemory, ProfileError, find_profile, known_profiles
from tests.commands.test_plan import plan, plan_json

DIGITS = ("digits", "--workers", 4, "--slots", 64)


def test_entries_and_bytes_of_every_table(tmp_path):
    found = plan_json(*DIGITS, "--strategy", "paper", "--out", tmp_path / "plan")
    switch = read_switch_part(tmp_path / "plan")
    assert found["fits"]
    assert found["entries"]["fanout"] == len(switch.entry_block)
    assert found["entries"]["source"] == len(switch.source_vertex)
    assert found["entries"]["result"] == len(switch.result_block)
    # 333 bits: block, source, hop; two flags and eight slots with their counts and rows.
    assert found["table_bytes"]["fanout"] == 42 * len(switch.entry_block)
    assert found["table_bytes_sum"] == sum(found["table_bytes"].values())
    # Those of the plan, and those of the all-reduce.
    assert found["register_bytes"]["lanes0.value"] == (64 // 8 + 16 * 128) * 128
    assert found["register_bytes_sum"] == sum(found["register_bytes"].values())
    assert found["passes_per_second"] is None


def test_leaves_and_spines_are_told_by_the_fullest():
    whole = plan_json(*DIGITS)
    text = plan(*DIGITS, "--leaves", 2, "--spines", 2)
    split = plan_json(*DIGITS, "--leaves", 2, "--spines", 2)
    assert split["fits"]
    assert split["entries"]["fanout"] < whole["entries"]["fanout"]
    # No switch need have the most of every table.
    assert split["table_bytes_sum"] <= sum(split["table_bytes"].values())
    assert "memory of the fullest switch" in text


def test_what_the_program_has_no_room_for_is_named():
    use = Use("fanout", 11, 10, 405)
    memory = PlanMemory((use,), (), use.bytes, 0, None, 1)
    assert memory.to_dict()["fits"] is False
    assert "needs 11 of fanout, and the P4 program has 10" in memory.refusals[0]


BEST = ("--strategy", "best")


def written(folder, *lines):
    file = folder / "mine.toml"
    file.write_text("\n".join(lines))
    return file


@pytest.mark.whole
@pytest.mark.parametrize("name", known_profiles())
@pytest.mark.parametrize("send", ["multicast", "cover"])
def test_a_plan_fits_by_another_count(tmp_path, name, send):
    profile = find_profile(name)
    found = plan_json(*DIGITS, "--switch", name, "--send", send, "--out", tmp_path / "plan")
    switch = read_switch_part(tmp_path / "plan")
    assert (found["switch"], found["fits"]) == (name, True)
    assert found["banks"] == profile.banks
    assert found["passes_per_second"] == profile.passes_per_second
    assert found["table_memory"] == profile.table_bytes
    # What each packet adds to, bank by bank of the switch: as many passes as in the fullest.
    adds = Counter()
    for row, bank in zip(*np.nonzero(switch.entry_expected), strict=True):
        key = int(switch.entry_block[row]), int(switch.entry_source[row])
        adds[(*key, int(bank) % profile.banks)] += 1
    fullest = {}
    for (block, source, _), number in adds.items():
        fullest[block, source] = max(fullest.get((block, source), 0), number)
    assert found["contributions"] == sum(adds.values())
    assert found["passes"] == sum(fullest.values())
    assert found["loop_passes"] == sum(fullest.values()) - len(fullest)
    if profile.passes_per_second is None:
        assert found["loop_seconds"] is None
    else:
        # 64 features are one fragment, or several where a pass adds to one bank only.
        fragments = -(-64 // found["lanes"])
        seconds = fragments * found["loop_passes"] / profile.passes_per_second
        assert found["loop_seconds"] == pytest.approx(seconds)


def test_an_entry_has_as_many_slots_as_the_switch_has_banks():
    """Each is 14 bits of slot, 16 of count and 3 of row; key and two flags are 69 bits."""
    each = {}
    for name in ("embedded", "tofino2"):
        found = plan_json(*DIGITS, "--switch", name)
        each[name] = found["table_bytes"]["fanout"] / found["entries"]["fanout"]
    assert each == {"embedded": -(-(69 + 8 * 33) // 8), "tofino2": -(-(69 + 33) // 8)}


QUICK_LOOP = ("banks = 1", "passes_per_second = 1e12", "port_gbits = 1.0")


@pytest.mark.whole
def test_best_finds_a_plan_whose_tables_fit(tmp_path):
    """Links alone count beside such a loop, so that the fewest packets would be the quickest."""
    free = plan_json(*DIGITS, *BEST, "--switch", written(tmp_path, *QUICK_LOOP))
    allowed = free["table_bytes_sum"] - 1
    file = written(tmp_path, *QUICK_LOOP, f"table_bytes = {allowed}")
    found = plan_json(*DIGITS, *BEST, "--switch", file)
    assert found["fits"]
    assert found["table_bytes_sum"] <= allowed
    assert found["weight"] > free["weight"] == 0
    # The paper's plan sends no partial sums.
    assert not plan_json(*DIGITS, "--strategy", "paper", "--switch", file)["fits"]
    text = plan(*DIGITS, *BEST, "--switch", written(tmp_path, *QUICK_LOOP, "table_bytes = 9"))
    assert "may take 9: allow more (--table-memory), or take another switch (--switch)." in text


def test_the_switch_gives_what_is_not_said(tmp_path):
    file = written(tmp_path, "slot_bytes = 10240", "banks = 2", "passes_per_second = 1e6")
    found = plan_json("digits", "--workers", 4, "--switch", file)
    assert (found["slots"], found["banks"], found["passes_per_second"]) == (80, 2, 1e6)
    said = ("--slots", 40, "--recirculation-rate", 5e5, "--table-memory", "1MB")
    found = plan_json("digits", "--workers", 4, "--switch", file, *said)
    assert (found["slots"], found["table_memory"]) == (40, 1_000_000)
    assert found["passes_per_second"] == 5e5


@pytest.mark.whole
def test_tables_that_do_not_fit(tmp_path):
    needed = plan_json(*DIGITS, "--switch", "tofino2")["table_bytes_sum"]
    exact = written(tmp_path, "banks = 1", f"table_bytes = {needed}")
    assert plan_json(*DIGITS, "--switch", exact)["fits"]
    short = written(tmp_path, "banks = 1", f"table_bytes = {needed - 1}")
    assert not plan_json(*DIGITS, "--switch", short)["fits"]
    with pytest.raises(PlannerError, match=r"another switch \(--switch\).* Nothing was written"):
        plan(*DIGITS, "--switch", short, "--out", tmp_path / "plan")
    assert not (tmp_path / "plan").exists()
    # What is said beats the switch.
    plan(*DIGITS, "--switch", short, "--table-memory", needed, "--out", tmp_path / "plan")
    assert (tmp_path / "plan").exists()


def test_ports_that_do_not_suffice(tmp_path):
    file = written(tmp_path, "ports = 3")
    with pytest.raises(ProfileError, match="mine has 3 ports, and 4 links end there"):
        plan(*DIGITS, "--switch", file)
    # Two workers and a spine on each leaf.
    assert plan_json(*DIGITS, "--leaves", 2, "--spines", 1, "--switch", file)["fits"]
    with pytest.raises(ProfileError, match="4 links"):
        plan(*DIGITS, "--leaves", 2, "--spines", 2, "--switch", file)


def test_only_switches_that_run_the_program_have_its_sizes(tmp_path):
    """10,485,760 bytes are 81,920 slots: one more is too many for the program."""
    many = ("digits", "--workers", 2, "--slots", 81_928, "--pools", 1)
    assert not plan_json(*many, "--switch", "embedded")["fits"]
    assert plan_json(*many, "--switch", "tofino2")["fits"]


def test_leaves_and_spines_have_the_banks_of_the_switch():
    spread = (*DIGITS, "--leaves", 2, "--spines", 2)
    found = plan_json(*spread, "--switch", "tofino2")
    assert found["loop_passes"] > plan_json(*spread, "--switch", "unlimited")["loop_passes"]


def test_jobs_are_for_the_program(tmp_path):
    arguments = ["--data", "digits", "--workers", "2", "--parts", "--out", str(tmp_path / "job")]
    assert CliRunner().invoke(app, ["plan", *arguments, "--switch", "tofino2"]).exit_code == 2
    assert not (tmp_path / "job").exists()
