"""Whole exchanges and all-reduces in virtual time: all checks hold, and each run repeats.

Scenarios that have violated a check are kept in found/: a drawn scenario changes with the way in
which it is drawn. The name of a file says what has to hold.
"""

import re
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from tests.simulation.checks import CHECKS
from tests.simulation.draw import Wish, draw_scenario
from tests.simulation.scenario import (
    Fault,
    FaultKind,
    Incident,
    IncidentKind,
    IncidentRates,
    Scenario,
    ScenarioError,
    Tensor,
    TensorKind,
    read_scenario,
    scenario_text,
)
from tests.simulation.soak import Soak
from tests.support.markers import full, whole

BAD = IncidentRates(loss=0.1, duplicate=0.1, late=0.05, reorder=0.1, corrupt=0.05)
QUIET = Scenario(seed=1, rounds=3)


def over_leaves_and_spines(seed, spines, **more):
    """Four workers on links and cables of which a fetch and its answer pass eight."""
    lossy = IncidentRates(loss=0.4)
    base = replace(QUIET, seed=seed, graph="karate", workers=4, leaves=2, spines=spines)
    return replace(base, rounds=1, window=128, up=lossy, down=lossy, cables=lossy, **more)


@whole
@pytest.mark.parametrize(("spines", "seed"), [(1, 1), (2, 3), (2, 4)])
def test_on_bad_links_no_worker_is_given_up(soak, spines, seed):
    scenario = over_leaves_and_spines(seed, spines)
    outcome = soak.run(scenario)
    assert outcome.errors == ()
    assert outcome.exchanges == scenario.exchanges


@whole
@pytest.mark.parametrize("seed", range(1, 3))
def test_on_bad_links_the_worker_that_is_gone_is_named_in_time(soak, seed):
    """Others may get on for a while with what it has sent before, and count its silence then."""
    gone = Incident(IncidentKind.KILL, "w3", 600)
    outcome = soak.run(over_leaves_and_spines(seed, 1, incidents=(gone,)), keeps_trace=True)
    (killed,) = (line for line in outcome.trace if "w3 is killed" in line)
    given_up = next(line for line in outcome.trace if "gives up" in line)
    assert re.search(r"Worker 3 did not answer|without a sign of life, for workers? .*3", given_up)
    waited = (int(given_up.split()[0]) - int(killed.split()[0])) / 1e9
    assert QUIET.patience - 2 <= waited <= 2 * QUIET.patience


OF_THREE = Scenario(seed=1, graph="random:20:30:1", workers=3)
BYZANTINE = replace(OF_THREE, incidents=(Incident(IncidentKind.BYZANTINE, "w1", 20, 0.1),))


@pytest.mark.parametrize(
    "scenario",
    [
        replace(QUIET, up=BAD, down=BAD, pools=2),
        replace(QUIET, incidents=(Incident(IncidentKind.RESTART, "s0", 130, 0.5),)),
        replace(QUIET, incidents=(Incident(IncidentKind.KILL, "w1", 130),), sessions=2),
        BYZANTINE,
        over_leaves_and_spines(3, 1, bits=8, cache=True, reduces=(Tensor(300),)),
    ],
    ids=["faults", "restart", "kill", "byzantine", "leaves"],
)
def test_equal_scenarios_have_equal_traces(soak, scenario):
    """On both back ends of the switch."""
    one, again = (soak.run(scenario, keeps_trace=True) for _ in range(2))
    assert one == again
    assert soak.run(replace(scenario, backend="python"), keeps_trace=True) == one
    assert soak.run(replace(scenario, seed=scenario.seed + 1)).digest != one.digest


def test_listed_faults_are_those_that_were_drawn(soak):
    drawn = soak.run(replace(QUIET, up=BAD, down=BAD))
    assert soak.run(replace(QUIET, faults=drawn.each_fault)) == drawn
    assert soak.run(replace(QUIET, faults=drawn.each_fault[1:])).digest != drawn.digest


LOST = Fault(FaultKind.LOSS, "w0.up", 1)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"up": BAD, "faults": (LOST,)}, "not both"),
        ({"faults": (replace(LOST, line="w7.up"),)}, "does not exist"),
        ({"faults": (replace(LOST, frame=0),)}, "from 1"),
        ({"faults": (LOST, LOST)}, "have the same frame"),
        ({"incidents": (Incident(IncidentKind.KILL, "w7", 1),)}, "does not exist"),
    ],
)
def test_impossible_scenarios_are_refused(soak, changes, what):
    with pytest.raises(ScenarioError, match=what):
        soak.run(replace(QUIET, **changes))


def test_another_process_of_a_worker_is_refused_unless_the_first_had_done_nothing(soak):
    ends = set()
    for event in range(1, 300, 60):
        again = Incident(IncidentKind.RESTART, "w1", event, 0.3)
        outcome = soak.run(replace(QUIET, incidents=(again,), patience=5.0))
        assert not outcome.violations
        ends.add(len(outcome.errors))
        for error in outcome.errors:
            assert re.search(r"for worker 1\.|did not answer|^w1: Another process", error), error
    assert ends >= {0, QUIET.workers}


@pytest.mark.parametrize(
    ("wish", "seeds"),
    [
        pytest.param(Wish(), range(3), id="star"),
        pytest.param(Wish(), range(3, 60), id="more", marks=whole),
        pytest.param(Wish(2, 1), range(20), id="leaf-spine", marks=whole),
        pytest.param(Wish(3, 2), range(10), id="more leaves", marks=whole),
        pytest.param(Wish(reduces=True), range(8), id="all-reduces", marks=whole),
        pytest.param(Wish(2, 2, reduces=True), range(6), id="leaf-spine reduces", marks=whole),
        pytest.param(Wish(byzantine=True, reduces=True), range(12), id="byzantine", marks=whole),
        pytest.param(Wish(compression=True), range(8), id="compression", marks=whole),
        pytest.param(Wish(cut=True), range(4, 6), id="vertex cut"),
        pytest.param(Wish(cut=True), range(6, 24), id="more vertex cuts", marks=whole),
        pytest.param(Wish(2, 2, cut=True), range(12), id="leaf-spine cut", marks=whole),
        pytest.param(Wish(tofino=True), range(6), id="tofino"),
        pytest.param(Wish(byzantine=True, tofino=True), (30, 68), id="tofino, byzantine"),
        pytest.param(Wish(second=True, tofino=True), range(8), id="tofino, two jobs", marks=whole),
        pytest.param(Wish(2, 1, tofino=True), range(3), id="tofino leaves"),
        pytest.param(
            Wish(2, 2, reduces=True, tofino=True), range(8), id="tofino, all", marks=whole
        ),
        pytest.param(Wish(second=True), range(6), id="two jobs", marks=whole),
        pytest.param(Wish(2, 1, second=True), range(3), id="two jobs on a leaf", marks=whole),
        *(
            pytest.param(wish, range(begin, begin + 100), marks=[full, pytest.mark.timeout(900)])
            for begin in range(1000, 1300, 100)
            for wish in (
                *(Wish(), Wish(2, 2), Wish(2, 2, byzantine=True), Wish(2, 2, reduces=True)),
                *(Wish(byzantine=True, second=True), Wish(2, 1, second=True)),
                *(Wish(cut=True), Wish(2, 2, cut=True), Wish(byzantine=True, cut=True)),
                *(Wish(tofino=True), Wish(cut=True, tofino=True)),
            )
        ),
    ],
)
def test_drawn_scenarios(wish, seeds):
    soak = Soak(wish)
    found = {seed: soak.run(soak.scenario(seed)).violations for seed in seeds}
    assert found == dict.fromkeys(found, ())


@pytest.mark.parametrize("leaves", [0, 2])
@pytest.mark.parametrize("kind", [IncidentKind.BYZANTINE, IncidentKind.KILL, IncidentKind.REMOVE])
def test_faults_of_one_job_change_nothing_for_another(soak, kind, leaves):
    """Its workers get the same bytes at the same times, and the switch has the same of it."""
    where = "controller" if kind is IncidentKind.REMOVE else "w1"
    scenario = replace(
        OF_THREE,
        leaves=leaves,
        spines=leaves // 2,
        patience=5.0,
        second=replace(OF_THREE, seed=2, workers=2, rounds=6, reduces=(Tensor(500),)),
        incidents=(Incident(kind, where, 300, 0.05),),
    )
    outcome, calm = soak.run(scenario), soak.run(replace(scenario, incidents=()))
    assert outcome.violations == ()
    assert outcome.faults[kind] == 1
    assert outcome.digest != calm.digest
    assert outcome.held == calm.held
    assert sum(outcome.held["SwitchIngress.outcome.outcome"]) > 100
    assert not any(error.startswith("x") for error in outcome.errors)


@pytest.mark.parametrize(
    "file", sorted((Path(__file__).parent / "found").glob("*.json")), ids=lambda file: file.stem
)
def test_what_was_found_holds(soak, file):
    assert soak.run(read_scenario(file)).violations == ()


def test_draws_have_everything():
    drawn = [draw_scenario(Random(seed), Wish()) for seed in range(600)]
    assert {8, 32, 64, 256} <= {scenario.lanes for scenario in drawn}
    assert {each.pools for each in drawn} == {1, 2, 3, 4}
    assert 30 <= sum(each.partition is not None for each in drawn) <= 90
    assert {each.kind for scenario in drawn for each in scenario.incidents} == set(IncidentKind)
    assert 20 <= sum(each.graph.startswith("random:240:1600") for each in drawn) <= 100
    sizes = {tensor.elements for scenario in drawn for tensor in scenario.reduces}
    assert {1, 255, 256, 257} <= sizes
    assert max(sizes) > 512 * 256


def test_a_scenario_is_written_and_read(tmp_path):
    faults = (replace(LOST, kind=FaultKind.LATE, delay=5_000), replace(LOST, bits=(7, 9)))
    scenario = replace(draw_scenario(Random(4), Wish(2, 2, reduces=True)), faults=faults)
    text = scenario_text(scenario)
    (tmp_path / "scenario.json").write_text(text)
    assert read_scenario(text) == read_scenario(tmp_path / "scenario.json") == scenario


@pytest.mark.parametrize("text", ['{"seed": "one"}', '{"graph":' + "[" * 9, "no/such/file.json"])
def test_what_is_no_scenario_is_refused(text):
    with pytest.raises(ScenarioError, match="no scenario"):
        read_scenario(text)


@pytest.mark.parametrize("lanes", [8, 16, 24, 32, 64, 104, 256])
def test_every_width_sums_exactly(soak, lanes):
    scenario = Scenario(lanes, lanes=lanes, width=2 * lanes + 9, up=BAD, down=BAD, send="cover")
    outcome = soak.run(scenario)
    assert outcome.violations == outcome.errors == ()
    assert outcome.exchanges == scenario.exchanges
    assert set(outcome.faults) == {"loss", "duplicate", "late", "reorder", "corrupt"}


def test_a_byzantine_worker_whose_process_is_gone_is_named(soak):
    kill = Incident(IncidentKind.KILL, "w1", 150)
    outcome = soak.run(
        replace(BYZANTINE, rounds=8, incidents=(*BYZANTINE.incidents, kill)), keeps_trace=True
    )
    assert not outcome.violations
    assert outcome.faults["byzantine"] == 1
    assert sum("w1 is Byzantine" in line for line in outcome.trace) > 5
    assert len(outcome.errors) == OF_THREE.workers - 1


def test_all_checks_are_in_the_docs_and_nothing_else_is():
    document = Path(__file__).parents[2] / "docs" / "reliability.md"
    told = re.findall(r"^\| `([A-Z]\w+)` \|", document.read_text(), re.MULTILINE)
    assert sorted(told) == sorted(each.__name__ for each in CHECKS)


TENSORS = tuple(
    Tensor(elements, kind, pause)
    for elements, pause in ((1, 0.0), (257, 0.01), (5000, 0.0))
    for kind in TensorKind
)
CALM = Scenario(seed=1, graph="random:8:12:1", rounds=1, patience=5.0, reduces=TENSORS)
LOSSY = IncidentRates(loss=0.05, duplicate=0.05, late=0.05, reorder=0.05, corrupt=0.02)
# More fragments than slots, so that later ones wait for the first.
LARGE = replace(CALM, reduces=(Tensor(150_000), Tensor(150_000, TensorKind.FLOAT32)))


def run(soak, scenario):
    outcome = soak.run(scenario, keeps_trace=True)
    assert not outcome.violations
    return outcome


@pytest.mark.parametrize(
    ("leaves", "rates"),
    [
        pytest.param(0, IncidentRates(), id="calm"),
        pytest.param(0, LOSSY, id="faults"),
        pytest.param(2, LOSSY, id="leaf-spine"),
    ],
)
def test_all_are_done_beside_exchanges(soak, leaves, rates):
    # On cables each frame passes twice as many lines.
    scenario = replace(CALM, leaves=leaves, spines=leaves, workers=4, up=rates, down=rates)
    outcome = run(soak, scenario)
    assert not outcome.errors
    assert (outcome.exchanges, outcome.reduces) == (1, len(TENSORS))


@pytest.mark.whole
@pytest.mark.parametrize("kind", [IncidentKind.RESTART, IncidentKind.TEAR])
def test_a_restarted_switch_loses_none(soak, kind):
    """Its sums are lost as well, of which some workers have some. No exchange ends meanwhile."""
    rates = IncidentRates(loss=0.05)
    restart = Incident(kind, "s0", 1500, 0.1)
    outcome = run(soak, replace(LARGE, rounds=0, up=rates, down=rates, incidents=(restart,)))
    assert not outcome.errors
    assert outcome.reduces == 2


def test_a_killed_worker_is_named_by_all_others(soak):
    outcome = run(soak, replace(LARGE, incidents=(Incident(IncidentKind.KILL, "w1", 700),)))
    errors = [error for error in outcome.errors if "All-reduce" in error]
    assert len(errors) == CALM.workers - 1
    assert all(re.search(r"without a sign of life, for worker 1\.", error) for error in errors)


def test_a_worker_that_computes_for_longer_than_the_patience_is_waited_for(soak):
    outcome = run(soak, replace(CALM, reduces=(Tensor(300), Tensor(300, pause=4 * CALM.patience))))
    assert outcome.reduces == 2
    assert outcome.seconds > 2 * CALM.patience
