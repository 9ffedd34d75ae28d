# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Nothing lost, nothing counted twice: the whole matrix of faults, each cell with its own losses.

Also with early features, and forward and backward in turns on a directed graph. `make test-all`
tries 20 seeds of each.
"""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from scipy.sparse import csr_matrix, save_npz

from switchgnn.host.innetwork import fixed_point as foresight
from switchgnn.host.innetwork.fixed_point import Foresight
from switchgnn.planner import BoundaryEdges
from switchgnn.planner.direction import Direction
from tests.simulation.checks import scales
from tests.simulation.scenario import Incident, IncidentKind, IncidentRates
from tests.simulation.soak import Soak
from tests.support.markers import covering
from tests.support.seeds import seed_of, seeds
from tests.virtual.matrix.scenes import (
    LEAF_SPINE,
    SCENES,
    SENDS,
    STAR,
    faults_on,
    on_each_topology,
    watched,
)

NO_FAULTS = IncidentRates()
LOSS = (0, 0.001, 0.01, 0.05, 0.1)
DUPLICATE = (0, 0.01, 0.05)
REORDER = (0, 0.05)
CABLES = ("l0s0", "l0s1", "l1s0", "l1s1")
CABLES_UP, CABLES_DOWN = (
    tuple(f"{name}.{direction}" for name in CABLES) for direction in ("up", "down")
)
# Behind how many events, from the first install on.
FIRST_SPILL, LAST_SPILL = 100, 1500


def check_all_sums(soak, scenario, **options):
    """All exchanges are done, and no worker gives up; the checks compare the sums."""
    outcome, witness = watched(soak, scenario, **options)
    assert outcome.errors == ()
    assert outcome.exchanges == scenario.exchanges
    return outcome, witness


def check_rates(soak, scene, rates, seed=1):
    """All sums are exact, and the faults really happened, on either kind of lines."""
    cables = rates if scene.leaves else NO_FAULTS
    scenario = replace(scene, up=rates, down=rates, cables=cables, seed=seed)
    outcome, _ = check_all_sums(soak, scenario)
    kinds = {"worker": [], "cable": []}
    for fault in outcome.each_fault:
        kinds["worker" if fault.line.startswith("w") else "cable"].append(fault.kind.value)
    for happened in kinds.values() if scene.leaves else [kinds["worker"]]:
        for kind in ("loss", "duplicate", "reorder"):
            rate = getattr(rates, kind)
            assert kind in happened or rate * outcome.frames <= 80
            assert rate or kind not in happened


def check_lines(soak, scene, lines, rates, seed=5):
    """All sums are exact, though some lines are bad; nothing happens on others."""
    scenario = replace(scene, faults=faults_on(lines, rates, seed))
    outcome, witness = check_all_sums(soak, scenario)
    assert {fault.line for fault in outcome.each_fault} <= set(lines)
    assert {fault.kind.value for fault in outcome.each_fault} == set(rates)
    return outcome, witness


def check_spills(soak, scene, rates=NO_FAULTS):
    """What goes around in switches is lost again and again: sums are made from fetched features."""
    numbers = range(scene.switches)
    spills = tuple(
        Incident(IncidentKind.SPILL, f"s{number}", event + number)
        for event in range(FIRST_SPILL, LAST_SPILL, 5)
        for number in numbers
    )
    # One packet at a time, so that some are always under way.
    scenario = replace(scene, rounds=4, turns=1, incidents=spills, up=rates, down=rates)
    _, witness = check_all_sums(soak, scenario)
    assert witness.counters[0]["sums_made"] > 0


def check_calm(soak, scene, rounds=10):
    """Recovery costs nothing where nothing is lost."""
    outcome, witness = check_all_sums(soak, replace(scene, rounds=rounds))
    assert outcome.each_fault == ()
    (counters,) = witness.counters
    assert counters["features_sent"] > 0
    repairs = ("sums_made", "features_resent", "features_fetched", "recalls", "overflows")
    assert {name: counters[name] for name in repairs if counters[name]} == {}


@pytest.mark.parametrize("number", seeds(1, 10))
@pytest.mark.parametrize(
    ("scene", "send", "loss", "duplicate", "reorder"),
    covering(SCENES, SENDS, LOSS, DUPLICATE, REORDER),
)
def test_every_sum_is_exact(soak, scene, send, loss, duplicate, reorder, number):
    rates = IncidentRates(loss=loss, duplicate=duplicate, reorder=reorder, corrupt=0.001)
    seed = seed_of(scene.leaves, send, loss, duplicate, reorder, number)
    check_rates(soak, replace(scene, send=send), rates, seed)


@on_each_topology
def test_one_bad_link_slows_but_does_not_break(soak, scene):
    _, witness = check_lines(soak, scene, ("w2.up", "w2.down"), {"loss": 0.3})
    assert witness.counters[0]["features_resent"] > 0


@pytest.mark.parametrize(
    ("lines", "rates"),
    [
        (CABLES_UP, {"loss": 0.2}),
        (CABLES_DOWN, {"loss": 0.2}),
        (CABLES_UP + CABLES_DOWN, {"duplicate": 0.2}),
        (CABLES_UP + CABLES_DOWN, {"reorder": 0.2}),
        (CABLES_UP + CABLES_DOWN, {"corrupt": 0.05}),
        (("l1s0.up", "l1s0.down"), {"loss": 0.2}),
        (CABLES_UP + CABLES_DOWN, {"loss": 0.1, "duplicate": 0.1, "reorder": 0.1, "corrupt": 0.02}),
    ],
    ids=["up", "down", "duplicate", "reorder", "corrupt", "one", "all"],
)
def test_bad_cables(soak, lines, rates):
    """Workers' links are good."""
    check_lines(soak, LEAF_SPINE, lines, rates)


@on_each_topology
@pytest.mark.parametrize("rates", [NO_FAULTS, IncidentRates(loss=0.1)], ids=["calm", "loss"])
def test_what_is_lost_in_switches_is_fetched(soak, scene, rates):
    check_spills(soak, scene, rates)


@on_each_topology
@pytest.mark.parametrize("send", SENDS)
def test_without_faults_nothing_is_repaired(soak, scene, send):
    check_calm(soak, replace(scene, send=send))


ROUNDS = 8
# The first exchange has none before it, the second none that something has followed.
FIRST = 2
BAD = IncidentRates(loss=0.05, duplicate=0.05, reorder=0.05)
GONE = 0.1


def repeated(scene, rates=NO_FAULTS, **changes):
    """Return a scene of exchanges that repeat themselves."""
    cables = rates if scene.leaves else NO_FAULTS
    return replace(scene, rounds=ROUNDS, up=rates, down=rates, cables=cables, **changes)


@on_each_topology
def test_from_the_third_round_on_features_come_early(soak, scene):
    _, witness = check_all_sums(soak, repeated(scene))
    (counters,) = witness.counters
    assert counters["early"] == (ROUNDS - FIRST) * scene.workers
    assert counters["void"] == counters["recalls"] == counters["features_resent"] == 0


def check_void(soak, scene, rates=NO_FAULTS, seed=0):
    """All sums are exact, and each round whose features have outgrown the scale is given up."""
    scenario = repeated(scene, rates, surges=0.4, seed=seed)
    _, witness = check_all_sums(soak, scenario)
    (counters,) = witness.counters
    largest = [np.abs(features).max() for features, _ in witness.scene.job.rounds]
    in_threes = zip(largest, largest[1:], largest[2:], strict=False)
    void = sum(now > 4 * max(earlier) for *earlier, now in in_threes)
    assert void or seed
    # All workers know of each worker that has outgrown the scale.
    assert counters["void"] == void * scene.workers
    assert counters["early"] == (ROUNDS - FIRST - void) * scene.workers


@on_each_topology
@pytest.mark.parametrize("rates", [NO_FAULTS, BAD], ids=["calm", "bad"])
@pytest.mark.parametrize("seed", seeds(1))
def test_what_does_not_fit_is_exchanged_in_the_next_round(soak, scene, rates, seed):
    check_void(soak, scene, rates, seed)


@on_each_topology
@pytest.mark.parametrize("seed", seeds(1))
def test_a_switch_restarts_again_and_again(soak, scene, seed):
    """Also while early features come, and in void rounds."""
    restarts = tuple(
        Incident(IncidentKind.RESTART, f"s{number % scene.switches}", 700 + 900 * number, GONE)
        for number in range(4)
    )
    scenario = repeated(scene, BAD, surges=0.4, seed=seed, incidents=restarts)
    outcome, _ = check_all_sums(soak, scenario)
    assert outcome.faults["restart"] > 1


def test_sums_at_another_scale_are_noticed():
    """The right scale is not what the workers say it is."""
    with mock.patch.object(foresight, "HEADROOM", 2.0), pytest.raises(AssertionError):
        check_all_sums(Soak(), repeated(STAR))


VERTICES = 60


@pytest.fixture
def graph(tmp_path):
    """Few edges go both ways."""
    dense = np.random.default_rng(8).random((VERTICES, VERTICES)) < 0.08
    np.fill_diagonal(dense, False)
    path = tmp_path / "directed.npz"
    save_npz(path, csr_matrix(dense.astype(np.int64)))
    return str(path)


def both_directions(scene, graph, **changes):
    return replace(scene, graph=graph, directions="both", slots=12, rounds=4, **changes)


@on_each_topology
@pytest.mark.parametrize("send", SENDS)
@pytest.mark.parametrize("rates", [NO_FAULTS, BAD], ids=["calm", "bad"])
def test_both_directions_in_turns_are_exact(soak, scene, graph, send, rates):
    check_rates(soak, both_directions(scene, graph, send=send), rates)


@on_each_topology
@pytest.mark.parametrize("rates", [NO_FAULTS, BAD], ids=["calm", "bad"])
def test_a_direction_that_was_not_foreseen_is_exchanged_as_ever(
    soak, scene, graph, rates, monkeypatch
):
    """Switches let features of a block in, behind or before the one that then has its turn."""
    right = Foresight.next

    def wrong(foresight):
        foreseen = right(foresight)
        if foreseen is None:
            return None
        forward = foreseen.kind.direction is Direction.FORWARD
        direction = Direction.BACKWARD if forward else Direction.FORWARD
        announced.add(direction)
        return replace(foreseen, kind=replace(foreseen.kind, direction=direction))

    announced = set()
    monkeypatch.setattr(Foresight, "next", wrong)
    monkeypatch.setattr(scales, "foreseen", lambda past: [])
    check_rates(soak, replace(both_directions(scene, graph), rounds=6), rates)
    assert announced == {*Direction}


def test_backward_blocks_with_forward_edges_are_noticed(monkeypatch, graph):
    """The planted mistake: backward plans are not transposed."""
    monkeypatch.setattr(BoundaryEdges, "transposed", lambda edges: edges)
    with pytest.raises(AssertionError):
        check_rates(Soak(), both_directions(STAR, graph), NO_FAULTS)
