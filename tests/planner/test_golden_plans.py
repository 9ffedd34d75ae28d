# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Plans are byte for byte what they were, but for the digest of the P4 program."""

import json

import pytest

from tests.planner import golden
from tests.support.markers import full, whole

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


def marks_of(name):
    # Ranks of MPI take seconds.
    if "ptscotch" not in name:
        return ()
    return (whole,) if "karate" in name else (full,)


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks_of(name)) for name in PLANS])
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
