# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Whole exchanges in virtual time: nothing is otherwise than it must be, and each repeats.

Scenarios in which something was not as it must be are kept in found/: a drawn scenario changes
with the way in which it is drawn. The name of a file says what has to hold.
"""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from switchgnn.controller.p4runtime.wire import decode_rows
from switchgnn.host.wire.header import fragment_words, lanes_of, payload_bytes
from switchgnn.planner.lanes import LANES
from tests.controller.p4runtime.test_wire import LAYOUT, random_rows, response
from tests.simulation.checks import all_checks
from tests.simulation.checks.check import Check, PacketReader
from tests.simulation.draw import Wish, draw_scenario
from tests.simulation.jobs import DifferenceError
from tests.simulation.network import body_bytes, words_of
from tests.simulation.scenario import (
    Difference,
    DifferenceKind,
    Fault,
    FaultKind,
    Incident,
    IncidentKind,
    IncidentRates,
    Scenario,
    ScenarioError,
    read_scenario,
    scenario_text,
)
from tests.simulation.shrink import fewer_differences, fewer_parts
from tests.simulation.soak import Soak
from tests.simulation.subject import KnownRows
from tests.support.native import needs_compiler
from tests.support.speed import seconds_here

BAD = IncidentRates(loss=0.1, duplicate=0.1, late=0.05, reorder=0.1, corrupt=0.05)
QUIET = Scenario(seed=1, rounds=3)


@pytest.mark.parametrize(
    ("rates", "kinds"),
    [(IncidentRates(), set()), (BAD, {"loss", "duplicate", "late", "reorder", "corrupt"})],
)
def test_every_exchange_is_done(star, rates, kinds):
    outcome = star.run(replace(QUIET, up=rates, down=rates, sessions=2, directions="both"))
    assert not outcome.violations
    assert not outcome.errors
    assert outcome.exchanges == 2 * QUIET.rounds
    assert set(outcome.faults) == kinds


def over_leaves_and_spines(seed, spines=1, **more):
    """Four workers on links and cables of which a fetch and its answer pass eight."""
    lossy = IncidentRates(loss=0.4)
    base = replace(QUIET, seed=seed, graph="karate", workers=4, leaves=2, spines=spines)
    return replace(base, rounds=1, window=128, up=lossy, down=lossy, cables=lossy, **more)


@pytest.mark.whole
@pytest.mark.parametrize(("spines", "seed"), [(1, 1), (1, 2), (1, 4), (2, 3), (2, 4), (2, 5)])
def test_on_bad_links_nobody_is_given_up(soaks, spines, seed):
    scenario = over_leaves_and_spines(seed, spines)
    outcome = soaks(2, spines).run(scenario)
    assert outcome.errors == ()
    assert outcome.exchanges == scenario.exchanges


@pytest.mark.whole
@pytest.mark.parametrize("seed", range(1, 6))
def test_on_bad_links_the_worker_that_is_gone_is_named_in_time(soaks, seed):
    """Others may get on for a while with what it has sent before, and count its silence then."""
    gone = Incident(IncidentKind.KILL, "w3", 600)
    outcome = soaks(2, 1).run(over_leaves_and_spines(seed, incidents=(gone,)), keeps_trace=True)
    (killed,) = (line for line in outcome.trace if "w3 is killed" in line)
    given_up = next(line for line in outcome.trace if "gives up" in line)
    assert re.search(r"Worker 3 did not answer|without a sign of life, for workers? .*3", given_up)
    waited = (int(given_up.split()[0]) - int(killed.split()[0])) / 1e9
    assert QUIET.patience - 2 <= waited <= 2 * QUIET.patience


@pytest.mark.parametrize(
    "scenario",
    [
        replace(QUIET, up=BAD, down=BAD),
        replace(QUIET, incidents=(Incident(IncidentKind.RESTART, "s0", 130, 0.5),)),
        replace(QUIET, incidents=(Incident(IncidentKind.KILL, "w1", 130),), sessions=2),
    ],
    ids=["faults", "restart", "kill"],
)
def test_equal_scenarios_have_equal_traces(star, scenario):
    one, other = (star.run(scenario, keeps_trace=True) for _ in range(2))
    assert one.trace == other.trace
    assert one == other
    assert star.run(replace(scenario, seed=2)).digest != one.digest


def test_faults_told_one_by_one_are_those_that_were_drawn(star):
    scenario = replace(QUIET, up=BAD, down=BAD)
    drawn = star.run(scenario)
    told = star.run(
        replace(scenario, up=IncidentRates(), down=IncidentRates(), faults=drawn.each_fault)
    )
    assert told == drawn
    fewer = star.run(
        replace(scenario, up=IncidentRates(), down=IncidentRates(), faults=drawn.each_fault[1:])
    )
    assert fewer.digest != drawn.digest


@pytest.mark.whole
def test_another_process_has_the_same_digest(star):
    """Whatever else it does, and whatever the hashes of its strings are."""
    digests = set()
    for chance in ("1", "2"):
        command = [sys.executable, "-m", "tests.simulation", "--seed", "3", "--json"]
        done = subprocess.run(
            command,
            env={**os.environ, "PYTHONHASHSEED": chance},
            capture_output=True,
            text=True,
            timeout=seconds_here(60),
            check=True,
        )
        told = json.loads(done.stdout)
        assert told["exchanges"] == 8
        assert told["failures"] == []
        digests.add(told["trace_digest"])
    assert len(digests) == 1
    for seed in (1, 2):
        star.run(draw_scenario(seed, star.wish))
    sums = star.many(iter([draw_scenario(3, star.wish)]), str, lambda _: True)
    assert {sums.trace_digest} == digests


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"up": BAD}, "not both"),
        ({"faults": (Fault(FaultKind.LOSS, "w7.up", 1),)}, "does not exist"),
        ({"faults": (Fault(FaultKind.LOSS, "w0.up", 0),)}, "from 1"),
        ({"faults": 2 * (Fault(FaultKind.LOSS, "w0.up", 4),)}, "have the same frame"),
    ],
)
def test_faults_that_cannot_be_are_refused(star, changes, what):
    faults = (Fault(FaultKind.LOSS, "w0.up", 1),)
    with pytest.raises(ScenarioError, match=what):
        star.run(replace(QUIET, **{"faults": faults, **changes}))


def test_who_is_waited_for_in_vain_is_named(star):
    scenario = replace(QUIET, incidents=(Incident(IncidentKind.KILL, "w1", 130),))
    outcome = star.run(scenario)
    assert not outcome.violations
    assert len(outcome.errors) == scenario.workers - 1
    for error in outcome.errors:
        assert re.search(r"for worker 1\.|Worker 1 did not answer", error), error


def test_another_process_of_a_worker_is_refused(star):
    """And the others miss the one before it; where it had done nothing, it takes its place."""
    ends = Counter()
    for event in range(1, 300, 60):
        again = Incident(IncidentKind.RESTART, "w1", event, 0.3)
        outcome = star.run(replace(QUIET, incidents=(again,), patience=5.0))
        assert not outcome.violations
        ends[len(outcome.errors)] += 1
        for error in outcome.errors:
            assert re.search(r"for worker 1\.|did not answer|^w1: Another process", error), error
    assert set(ends) >= {0, QUIET.workers}


def test_drawn_scenarios(star):
    check_seeds(star, range(3))


@pytest.mark.whole
@pytest.mark.parametrize("first", [100, 130])
def test_more_drawn_scenarios(star, first):
    check_seeds(star, range(first, first + 30))


@pytest.mark.full
@pytest.mark.parametrize("first", range(1000, 2000, 100))
def test_many_drawn_scenarios(star, first):
    check_seeds(star, range(first, first + 100))


@pytest.mark.whole
@pytest.mark.parametrize(("leaves", "spines"), [(2, 1), (2, 2), (3, 2)])
def test_leaves_and_spines(soaks, leaves, spines):
    check_seeds(soaks(leaves, spines), range(200, 210))


def check_seeds(soak, seeds):
    found = {}
    for seed in seeds:
        outcome = soak.run(draw_scenario(seed, soak.wish))
        if outcome.violations:
            found[seed] = outcome.violations
    assert found == {}


@pytest.mark.parametrize("told", [False, True], ids=["rates", "faults"])
def test_a_scenario_is_written_and_read(told, tmp_path):
    scenario = draw_scenario(4, Wish())
    if told:
        faults = (
            Fault(FaultKind.LATE, "w0.up", 3, 5_000),
            Fault(FaultKind.CORRUPT, "w1.down", 1, bits=(7, 9)),
        )
        scenario = replace(scenario, up=IncidentRates(), down=IncidentRates(), faults=faults)
    file = tmp_path / "scenario.json"
    file.write_text(scenario_text(scenario))
    assert read_scenario(file) == scenario


@pytest.mark.parametrize(
    "text",
    [
        "[",
        '{"seed": "one"}',
        '{"seed": 1, "colour": "red"}',
        '{"seed": 1, "faults": [{"kind": "theft", "line": "w0.up", "frame": 1}]}',
    ],
)
def test_what_is_no_scenario_is_refused(tmp_path, text):
    file = tmp_path / "scenario.json"
    file.write_text(text)
    with pytest.raises(ScenarioError, match="no scenario"):
        read_scenario(file)


FOUND = sorted((Path(__file__).parent / "found").glob("*.json"))


@pytest.mark.parametrize("file", FOUND, ids=lambda file: file.stem)
def test_it_holds(soaks, file):
    scenario = read_scenario(file)
    outcome = soaks(scenario.leaves, scenario.spines).run(scenario)
    assert outcome.violations == ()


@pytest.mark.parametrize("lanes", LANES)
def test_rows_are_cut_as_hosts_cut_them(lanes):
    """The checks count for themselves; both must have the same layout."""
    for width in range(1, 3 * lanes + 2):
        words = words_of(width, lanes)
        assert words == fragment_words(width, lanes)
        assert sum(map(lanes_of, words)) >= width > sum(map(lanes_of, words[:-1]))
    assert [body_bytes(1, code) for code in range(8)] == [
        payload_bytes(code) for code in range(8)
    ] == [32, 64, 128, 256, 512, 1024, 0, 0]  # fmt: skip


def test_most_scenarios_have_the_width_of_the_library():
    drawn = [draw_scenario(seed, Wish()) for seed in range(400)]
    lanes = Counter(scenario.lanes for scenario in drawn)
    assert lanes[Scenario(0).lanes] > 200
    assert {8, 64, 256} <= set(lanes)
    assert all(scenario.slots * 32 >= 8 * scenario.lanes for scenario in drawn)
    # Of one fragment, of several, and with a last one that is narrower.
    cut = {words_of(s.width, s.lanes) for s in drawn if s.lanes == 64}
    assert {len(words) for words in cut} >= {1, 2, 3}


@pytest.mark.parametrize("lanes", LANES)
def test_every_width_sums_exactly(star, lanes):
    scenario = Scenario(
        seed=lanes, slots=64, lanes=lanes, width=2 * lanes + 9, up=BAD, down=BAD, send="cover"
    )
    outcome = star.run(scenario)
    assert not outcome.violations
    assert not outcome.errors
    assert outcome.exchanges == scenario.exchanges


TWO_SESSIONS = Scenario(seed=1, graph="random:20:30:1", rounds=8, patience=5.0, sessions=2)
TORN = Incident(IncidentKind.TEAR, "s0", 1, 0.1)


def frames_of(trace, kind):
    """Yield the lines on which frames of a kind have left s0 before it has ended."""
    for line in trace:
        _, where, *words = line.split()
        if where == "s0" and words[0] == "ends":
            return
        if where.endswith(".down") and len(words) == 3 and words[2][24:26] == kind:
            yield where


def test_of_what_leaves_a_torn_switch_some_hear(star):
    """The first that leaves through several ports says that all have opened the round."""
    told = set()
    for seed in range(6):
        outcome = star.run(replace(TWO_SESSIONS, seed=seed, incidents=(TORN,)), keeps_trace=True)
        assert not outcome.violations
        assert not outcome.errors
        assert outcome.exchanges == TWO_SESSIONS.exchanges
        lines = tuple(frames_of(outcome.trace, "84"))
        assert 1 <= len(lines) < TWO_SESSIONS.workers
        told.add(frozenset(lines))
    assert len(told) > 1


@pytest.mark.parametrize("event", [20, 130, 260])
def test_another_program_is_replaced(star, event):
    program = Incident(IncidentKind.PROGRAM, "s0", event, 0.2)
    outcome = star.run(replace(TWO_SESSIONS, incidents=(program,)))
    assert not outcome.violations
    assert not outcome.errors
    assert outcome.exchanges == TWO_SESSIONS.exchanges


def test_another_plan_stays_and_its_switch_is_named(star):
    """Its controller leaves it alone, the next install replaces it, and no sum is wrong."""
    relapse = Incident(IncidentKind.RELAPSE, "s0", 260, 0.2)
    outcome = star.run(replace(TWO_SESSIONS, incidents=(relapse,)))
    assert not outcome.violations
    assert TWO_SESSIONS.rounds < outcome.exchanges < TWO_SESSIONS.exchanges
    assert len(outcome.errors) == TWO_SESSIONS.workers
    for error in outcome.errors:
        assert "the switch" in error, error
        assert "switchgnn controller show" in error, error


@pytest.mark.parametrize("switch", ["s1", "s2"])
def test_behind_another_plan_on_a_leaf_or_spine_nothing_comes(soaks, switch):
    relapse = Incident(IncidentKind.RELAPSE, switch, 300, 0.2)
    scenario = replace(TWO_SESSIONS, workers=4, leaves=2, spines=2, incidents=(relapse,))
    outcome = soaks(2, 2).run(scenario)
    assert not outcome.violations
    assert len(outcome.errors) == scenario.workers


def test_restarts_are_drawn_now_and_then():
    drawn = [draw_scenario(seed, Wish()) for seed in range(600)]
    kinds = Counter(each.kind for scenario in drawn for each in scenario.incidents)
    assert kinds[IncidentKind.TEAR] > kinds[IncidentKind.RELAPSE] > 0
    assert kinds[IncidentKind.PROGRAM] > 0
    dense = [scenario for scenario in drawn if scenario.graph.startswith("random:240:1600")]
    assert 30 <= len(dense) <= 90
    assert all(scenario.exchanges <= 2 for scenario in dense)


OF_THREE = Scenario(seed=1, graph="random:20:30:1", workers=3)
MAD = replace(OF_THREE, incidents=(Incident(IncidentKind.MAD, "w1", 20, 0.1),))
# What the worker that differs is told, and one of the others.
TOLD = {
    DifferenceKind.SESSION: ("session", "for worker 1"),
    DifferenceKind.PLAN: ("holds plan", "for worker 1"),
    DifferenceKind.DIGEST: ("holds plan", "for worker 1"),
    DifferenceKind.MAGNITUDE: ("did not answer", "worker 1 reports features of up to"),
    DifferenceKind.WIDTH: ("goes on with another|for workers", "worker 1"),
    DifferenceKind.DIRECTION: ("no backward blocks", "for worker 1"),
    DifferenceKind.VERSION: ("no answer from the switch", "for worker 1"),
    DifferenceKind.ROUNDS: ("for workers 0, 2", None),
}


def test_mad_workers_send_the_same_each_time(star):
    one, other = (star.run(MAD, keeps_trace=True) for _ in range(2))
    assert one == other
    assert not one.violations
    assert one.faults["mad"] == 1
    volleys = [line for line in one.trace if "w1 is Byzantine" in line]
    assert len(volleys) > 5


@needs_compiler
def test_both_back_ends_take_a_mad_worker_for_the_same(star):
    native, python = (star.run(replace(MAD, backend=name)) for name in ("native", "python"))
    assert native.digest == python.digest


def test_a_mad_worker_whose_process_is_gone_is_named(star):
    kill = Incident(IncidentKind.KILL, "w1", 150)
    outcome = star.run(replace(MAD, rounds=8, incidents=(*MAD.incidents, kill)))
    assert not outcome.violations
    assert len(outcome.errors) == OF_THREE.workers - 1


@pytest.mark.parametrize("kind", DifferenceKind)
def test_who_differs_is_told_or_named(star, kind):
    outcome = star.run(replace(OF_THREE, differences=(Difference(1, kind),)))
    assert not outcome.violations
    own, others = TOLD[kind]
    errors = dict(error.split(": ", 1) for error in outcome.errors)
    assert re.search(own, errors.pop("w1"))
    if others is None:
        assert not errors
    else:
        assert errors.keys() == {"w0", "w2"}
        assert all(re.search(others, error) for error in errors.values()), errors


def test_who_exchanges_less_often_is_missed(star):
    outcome = star.run(replace(OF_THREE, differences=(Difference(1, DifferenceKind.ROUNDS, -1),)))
    assert not outcome.violations
    assert len(outcome.errors) == OF_THREE.workers - 1
    assert all("for worker 1" in error for error in outcome.errors)


def test_features_whose_sums_overflow_are_refused_by_their_worker(star):
    """And the others miss it: nobody else has heard of them."""
    outcome = star.run(replace(OF_THREE, differences=(Difference(1, DifferenceKind.MAGNITUDE, 2),)))
    assert not outcome.violations
    errors = dict(error.split(": ", 1) for error in outcome.errors)
    own = errors.pop("w1")
    assert own.startswith("Worker 1 has features of up to 2.2")
    assert "overflows float32" in own
    assert all("for worker 1." in error for error in errors.values())


def test_a_plan_that_no_worker_holds_is_told_to_all(star):
    outcome = star.run(replace(OF_THREE, other_plan=True))
    assert not outcome.violations
    assert outcome.exchanges == 0
    assert len(outcome.errors) == OF_THREE.workers
    assert all("holds plan" in error for error in outcome.errors)


@pytest.mark.parametrize(
    ("workers", "what"),
    [
        ((7,), "^Worker 7 cannot differ, as it does not exist"),
        ((1, 1), "^Worker 1 has two differences"),
    ],
)
def test_who_is_not_there_does_not_differ(star, workers, what):
    differences = tuple(Difference(worker, DifferenceKind.PLAN) for worker in workers)
    with pytest.raises(DifferenceError, match=what):
        star.run(replace(OF_THREE, differences=differences))


def test_misfits_are_drawn_now_and_then():
    scenarios = [draw_scenario(seed, Wish()) for seed in range(600)]
    mad = sum(any(i.kind is IncidentKind.MAD for i in each.incidents) for each in scenarios)
    different = Counter(each.differences[0].kind for each in scenarios if each.differences)
    assert 20 <= mad <= 60
    assert set(different) == set(DifferenceKind)
    assert sum(different.values()) <= 40
    always = [draw_scenario(seed, Wish(misfits=True)) for seed in range(200)]
    assert 1 <= sum(each.other_plan for each in always) <= 30
    assert all(each.differences or each.incidents or each.other_plan for each in always)


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("leaves", "spines"), [(0, 0), (2, 2)])
def test_more_drawn_ones_hold(leaves, spines):
    soak = Soak(Wish(leaves, spines, misfits=True))
    found = {seed: soak.run(draw_scenario(seed, soak.wish)).violations for seed in range(400, 460)}
    assert found == dict.fromkeys(found, ())


def test_smaller_scenarios_have_fewer_of_them():
    scenario = replace(MAD, differences=(Difference(2, DifferenceKind.WIDTH, 2),))
    assert [each.differences for each in fewer_differences(scenario)] == [
        (),
        (Difference(2, DifferenceKind.WIDTH, 1),),
    ]
    assert all(not each.differences for each in fewer_parts(scenario) if each.workers == 2)


PACKAGE = "tests.simulation.checks."
DOCUMENT = Path(__file__).parents[2] / "docs" / "reliability.md"


def test_all_are_in_the_docs_and_nothing_else_is():
    told = re.findall(r"^\| `([A-Z]\w+)` \|", DOCUMENT.read_text(), re.MULTILINE)
    assert sorted(told) == sorted(type(each).__name__ for each in all_checks() if is_check(each))


def test_all_of_them_look():
    written = {
        each.__name__
        for each in kinds(Check)
        if each.__module__.startswith(PACKAGE) and not each.__subclasses__() and is_check(each)
    }
    assert written == {type(each).__name__ for each in all_checks() if is_check(each)}


def is_check(each):
    """The reader hands packets to checks and is none."""
    return PacketReader not in (each, type(each))


def kinds(base):
    return {each for kind in base.__subclasses__() for each in (kind, *kinds(kind))}


def test_an_equal_answer_is_decoded_once_and_another_is_not():
    known = KnownRows()
    table = LAYOUT.table("fanout")
    one, other = (response(random_rows("fanout", seed, 20)) for seed in (1, 2))
    first = known.decode(table, [one])
    assert np.array_equal(first.data, decode_rows(table, [one]).data)
    assert known.decode(table, [one[:0], one]) is first
    assert np.array_equal(known.decode(table, [other]).data, decode_rows(table, [other]).data)
