# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Plans are byte for byte what they were, but for the digest of the P4 program."""

import json
from dataclasses import replace

import numpy as np
import pytest

from switchgnn.planner.strategies import (
    BLOCK_STRATEGIES,
    ORDER_STRATEGIES,
    PARTITION_STRATEGIES,
    SEND_STRATEGIES,
)
from tests.planner import golden

RECORD = json.loads(golden.RECORD.read_text(encoding="ascii"))
PLANS, RENAMED = golden.plan_cases(), golden.renamed_cases()
SWITCHES = golden.switch_cases()


def skip_unless_it_answers_as_then(*libraries):
    for library in libraries:
        if golden.probes()[library] != RECORD["probes"][library]:
            pytest.skip(
                f"{library} gives other answers than when the plans were recorded with "
                f"{RECORD['versions']}; now there are {golden.versions()}"
            )


def libraries_of(case):
    asked = " ".join(case.values())
    if "best" in asked or "hypergraph" in asked:
        yield "mtkahypar"
    if "ptscotch" in asked:
        yield "ptscotch"
    yield from ("metis", "numpy")


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_is_what_it_was(name):
    skip_unless_it_answers_as_then(*libraries_of(PLANS[name]))
    assert golden.plan_digests(golden.plan_of(PLANS[name])) == RECORD["plans"][name]


@pytest.mark.parametrize("name", RENAMED)
def test_arrays_are_what_they_were(name):
    skip_unless_it_answers_as_then(*libraries_of(RENAMED[name]))
    plan = golden.plan_of(RENAMED[name])
    assert golden.plan_digests(plan)["others"] == RECORD["arrays"][name]


@pytest.mark.parametrize("name", SWITCHES)
def test_the_parts_of_leaves_and_spines_are_what_they_were(name):
    case, leaves, spines = SWITCHES[name]
    skip_unless_it_answers_as_then(*libraries_of(case))
    plan = golden.plan_of(case)
    assert golden.switches_digest(plan, leaves, spines) == RECORD["switches"][name]


def test_the_record_has_all_plans_and_no_others():
    assert set(RECORD["plans"]) == set(PLANS)
    assert set(RECORD["arrays"]) == set(RENAMED)
    assert set(RECORD["switches"]) == set(SWITCHES)


def test_every_strategy_is_among_them():
    asked = [set(case.items()) for case in PLANS.values()]

    def once(part, name):
        return any((part, name) in case for case in asked)

    assert all(once("blocks", name) for name in (*BLOCK_STRATEGIES, "strawman"))
    assert all(once("order", name) for name in ORDER_STRATEGIES)
    assert all(once("partition", name) for name in PARTITION_STRATEGIES)
    # `multicast` is what is sent where nothing is asked for.
    assert all(once("send", name) for name in SEND_STRATEGIES if name != "multicast")


def test_a_planner_that_orders_otherwise_is_found(monkeypatch):
    name = "graph karate, preset paper"
    monkeypatch.setitem(ORDER_STRATEGIES, "gamr", ORDER_STRATEGIES["random"])
    now = golden.plan_digests(golden.plan_of(PLANS[name]))
    assert now.keys() == RECORD["plans"][name].keys()
    assert all(now[file] != RECORD["plans"][name][file] for file in now)


@pytest.mark.parametrize("part", ["manifest", "switch", "workers", "assignment"])
def test_one_changed_number_is_found(part):
    case = {"graph": "karate", "preset": "paper"}
    plan = golden.plan_of(case)
    was = golden.plan_digests(plan)
    match part:
        case "manifest":
            other = replace(plan, manifest=replace(plan.manifest, slots=plan.manifest.slots + 1))
        case "switch":
            expected = plan.switch.result_expected.copy()
            expected[-1] += 1
            other = replace(plan, switch=replace(plan.switch, result_expected=expected))
        case "workers":
            last = plan.workers[-1]
            sends = replace(last, send_row=last.send_row[::-1].copy())
            other = replace(plan, workers=(*plan.workers[:-1], sends))
        case _:
            other = replace(plan, assignment=np.roll(plan.assignment, 1))
    file = "plan.json" if part == "manifest" else "others"
    now = golden.plan_digests(other)
    assert {name for name in now if now[name] != was[name]} == {file}


def test_another_part_of_a_switch_is_found(monkeypatch):
    plan = golden.plan_of({"graph": "karate", "preset": "paper"})
    was = golden.switches_digest(plan, 2, 1)
    split_for_leaf_spine = golden.split_for_leaf_spine

    def swapped(plan, leaf_spine):
        parts = split_for_leaf_spine(plan, leaf_spine)
        return replace(parts, leaves=parts.leaves[::-1])

    monkeypatch.setattr(golden, "split_for_leaf_spine", swapped)
    assert golden.switches_digest(plan, 2, 1) != was
