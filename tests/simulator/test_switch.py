"""`switchgnn simulate` within what a switch has, on plans of others, and without its tools."""

from dataclasses import replace

import numpy as np
import pytest

from switchgnn.base.native import find_compiler
from switchgnn.lab.simulator.request import NetworkOptions, SimulateOptions, SimulatorError
from switchgnn.lab.simulator.simulation import MODELS, compiled_models
from switchgnn.lab.simulator.subject import make_subject
from switchgnn.p4src import load_program
from switchgnn.planner import PlannerError, build_plan, load_graph, write_plan
from switchgnn.profiles import ProfileError, known_profiles
from tests.commands.test_plan_memory import written
from tests.planner.forgery import content_of, write_content
from tests.planner.helpers import random_graph

from .scenes import ACK, DELAY, FEATURE
from .test_by_hand import OPENING
from .test_command import as_json, simulate

KARATE = ("--graph", "karate", "--workers", 4, "--memory", "2kB")


@pytest.fixture
def two_to_three(tmp_path):
    """Sources 0 and 1 of workers 0 and 1, and destinations 2, 3 and 4 of worker 2."""
    indptr, indices = np.array([0, 3, 6, 6, 6, 6]), np.array([2, 3, 4, 2, 3, 4])
    np.savez(tmp_path / "graph.npz", indptr=indptr, indices=indices)
    (tmp_path / "workers.txt").write_text("0\n1\n2\n2\n2\n")
    graph = ("--graph", tmp_path / "graph.npz", "--assignment", tmp_path / "workers.txt")
    return (*graph, "--workers", 3, "--memory", "2kB", "--features", 32, "--system", "paper")


def test_one_bank_and_a_rate_by_hand(tmp_path, two_to_three):
    """Each packet has three destinations, and with one bank two passes of the loop, 1 µs each.

    Both packets come at once. The second waits for two passes of the first; with its third
    addition, after four, the last sum leaves; its acknowledgement goes round once more.
    """
    turn, around = 1_000_000, FEATURE + 2 * DELAY + OPENING
    slow = written(tmp_path, "banks = 1", "passes_per_second = 1e6")
    told = as_json(*two_to_three, "--switch", slow)
    assert (told["passes"], told["contributions"], told["loop_passes"]) == (6, 6, 5)
    assert told["exchange_seconds"] == pytest.approx((around + 5 * turn + ACK) * 1e-12, rel=1e-9)
    # Eight banks: the first packet needs none of the loop, the other one for each sum behind the
    # first one and for the acknowledgement.
    wide = written(tmp_path, "passes_per_second = 1e6")
    told = as_json(*two_to_three, "--switch", wide)
    assert told["loop_passes"] == 3
    assert told["exchange_seconds"] == pytest.approx((around + 3 * turn + ACK) * 1e-12, rel=1e-9)
    # What is said beats the switch: no turn takes any time to speak of.
    told = as_json(*two_to_three, "--switch", wide, "--recirculation-rate", 1e12)
    assert told["exchange_seconds"] == pytest.approx((around + 3 * FEATURE) * 1e-12, rel=1e-5)


@pytest.mark.parametrize(
    "name", sorted({*known_profiles()} - {"tofino", "tofino2-compiled", "unlimited"})
)
@pytest.mark.parametrize("system", ["strawman", "paper", "best"])
def test_every_system_within_every_switch(name, system):
    told = as_json(*KARATE, "--system", system, "--switch", name)
    assert (told["switch"], told["fits"]) == (name, True)
    # As many in each pool.
    assert told["slots"] == 15 - 15 % told["pools"]
    assert told["network"]["recirculation_rate"] > 0
    assert sum(told["table_bytes"].values()) == told["table_bytes_sum"]


def test_the_slots_are_the_switchs():
    graph = ("--graph", "karate", "--workers", 4, "--system", "paper")
    assert as_json(*graph, "--switch", "tofino1")["slots"] == 81_920
    wide = ("--features", 128, "--slot-features", 128)
    assert as_json(*graph, *wide, "--switch", "tofino1")["slots"] == 10_485_760 // 512


def test_the_strawman_has_the_banks_of_the_switch(tmp_path):
    """One bank hands out all slots: nothing overflows in it while another one has some left."""
    strawman = ("--graph", "digits", "--workers", 4, "--memory", "2kB", "--system", "strawman")
    one, eight = (
        as_json(*strawman, "--switch", written(tmp_path, f"banks = {banks}")) for banks in (1, 8)
    )
    assert one["overflowed"] < eight["overflowed"]
    assert one["passes"] > eight["passes"]


def test_a_plan_that_does_not_fit_is_refused(tmp_path):
    needed = as_json(*KARATE, "--system", "paper", "--switch", "tofino2")["table_bytes_sum"]
    exact = written(tmp_path, "banks = 1", f"table_bytes = {needed}")
    as_json(*KARATE, "--system", "paper", "--switch", exact)
    short = written(tmp_path, "banks = 1", f"table_bytes = {needed - 1}")
    with pytest.raises(SimulatorError, match=rf"take {needed:,} bytes, .* may take {needed - 1:,}"):
        simulate(*KARATE, "--system", "paper", "--switch", short)
    as_json(*KARATE, "--system", "paper", "--switch", short, "--table-memory", needed)
    as_json("--graph", "karate", "--workers", 4, "--system", "bns-gcn", "--switch", short)


def test_links_that_do_not_fit_are_refused(tmp_path):
    few = written(tmp_path, "ports = 3", "port_gbits = 25.0")
    with pytest.raises(ProfileError, match="3 ports, and 4 links"):
        simulate(*KARATE, "--system", "bns-gcn", "--switch", few)
    leaves = ("--topology", "leaf-spine", "--leaves", 2, "--spines", 1)
    told = as_json(*KARATE, "--system", "paper", "--switch", few, *leaves)
    assert told["network"]["bandwidth"] == 25_000
    with pytest.raises(ProfileError, match="25,000 Mbit/s, and the links have 25,001"):
        simulate(*KARATE, "--system", "paper", "--switch", few, *leaves, "--bandwidth", 25_001)


def planned(folder, banks):
    plan = build_plan(load_graph("digits"), workers=4, slots=64, program="0" * 64, banks=banks)
    write_plan(plan, folder)
    return ("--plan", folder)


def test_plans_that_were_made_before(tmp_path):
    wide, narrow = planned(tmp_path / "wide", 8), planned(tmp_path / "narrow", 1)
    with pytest.raises(SimulatorError, match=r"of one bank, as the switch tofino2 has 1"):
        simulate(*wide, "--switch", "tofino2")
    as_json(*wide, "--switch", "embedded")
    # What is made for one bank can be added in any number of them.
    told = as_json(*narrow, "--switch", "tofino2")
    assert told["passes"] >= told["contributions"]
    as_json(*narrow, "--switch", "embedded")
    small = written(tmp_path, "banks = 1", f"slot_bytes = {63 * 128}")
    with pytest.raises(SimulatorError, match="64 slots, and the switch mine has 63"):
        simulate(*narrow, "--switch", small)


def test_four_banks_are_not_any_four_of_eight(tmp_path):
    """Banks 0 and 4 of the tables are one of the switch."""
    four = written(tmp_path, "banks = 4")
    as_json(*planned(tmp_path / "four", 4), "--switch", four)
    with pytest.raises(SimulatorError, match="adds to 2 slots of one bank"):
        simulate(*planned(tmp_path / "eight", 8), "--switch", four)


def options_of(folder):
    nothing, network = dict.fromkeys(("graph", "workers", "slots", "system")), NetworkOptions()
    return SimulateOptions(folder, **nothing, layers=1, features=32, seed=0, network=network)


@pytest.mark.parametrize("worker", [4, 200])
def test_a_sum_for_a_worker_that_is_not_there(tmp_path, worker):
    """The models would write beyond the end of their arrays."""
    content = content_of(built(random_graph(60, 300, 3, directed=True)))
    content["switch"]["result_worker"][0] = worker
    folder = write_content(content, tmp_path / "plan")
    folder.chmod(0o777)
    said = []
    with pytest.raises(PlannerError, match="is not used"):
        make_subject(options_of(folder), said.append)
    assert f"Checking the plan {folder} first: others may write to {folder}." in said


def built(graph, left=None):
    return build_plan(graph, workers=4, slots=20, program=load_program().digest, left=left)


def written_with_some_left(folder, graph):
    write_plan(built(graph, np.arange(graph.vertices) % 2 == 0), folder)
    return options_of(folder)


def test_the_graph_of_a_plan_that_leaves_destinations_is_named(tmp_path):
    options = written_with_some_left(tmp_path / "plan", random_graph(60, 300, 3, directed=True))
    with pytest.raises(SimulatorError, match="name it with --graph"):
        make_subject(options, lambda _: None)


def test_another_graph_than_that_of_the_plan_is_refused(tmp_path):
    options = written_with_some_left(tmp_path / "plan", load_graph("karate"))
    assert make_subject(options, lambda _: None).left > 0
    with pytest.raises(PlannerError, match="another graph"):
        make_subject(replace(options, graph="random:60:300:3"), lambda _: None)


def test_a_plan_that_leaves_nothing_needs_no_graph(tmp_path):
    write_plan(built(load_graph("karate")), tmp_path / "plan")
    with pytest.raises(SimulatorError, match="leave --graph out"):
        make_subject(replace(options_of(tmp_path / "plan"), graph="karate"), lambda _: None)


def test_a_compiler_may_be_missing(monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SimulatorError, match="needs a C\\+\\+ compiler"):
        compiled_models()
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(SimulatorError, match="no-such-compiler is not on the PATH"):
        compiled_models()


def test_a_compiler_that_fails_is_quoted(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CXX", "false")
    with pytest.raises(SimulatorError, match="cannot compile the models"):
        compiled_models()
    assert [path.suffix for path in (tmp_path / "switchgnn" / "simulator").iterdir()] == [".lock"]


def test_what_lies_in_the_current_folder_is_not_compiled(monkeypatch, tmp_path):
    """A compiler looks there first for what a unit from standard input includes."""
    wrapper = tmp_path / "preprocessor"
    wrapper.write_text(
        f"#!/bin/sh\n{find_compiler()} -x c++ -E - | grep -o from_.*_else >&2\nexit 1\n"
    )
    wrapper.chmod(0o755)
    for path in MODELS.iterdir():
        (tmp_path / path.name).write_text("int from_somebody_else;\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CXX", str(wrapper))
    with pytest.raises(SimulatorError) as refused:
        compiled_models()
    assert "from_somebody_else" not in str(refused.value)
