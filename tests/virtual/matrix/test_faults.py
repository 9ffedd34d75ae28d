# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Nothing lost, nothing counted twice: the whole matrix of faults, each cell with its own losses.

`make test-all` tries 20 seeds of each.
"""

from dataclasses import replace

import pytest

from switchgnn.lab.virtual.scenario import Incident, IncidentKind, Rates
from tests.support.markers import covering
from tests.support.seeds import seed_of, seeds
from tests.virtual.matrix.scenes import LEAF_SPINE, STAR, faults_on, on_each_topology
from tests.virtual.matrix.witness import watched

NO_FAULTS = Rates()
LOSS = (0, 0.001, 0.01, 0.05, 0.1)
DUPLICATE = (0, 0.01, 0.05)
REORDER = (0, 0.05)
CABLES = ("l0s0", "l0s1", "l1s0", "l1s1")
CABLES_UP, CABLES_DOWN = (tuple(f"{name}.{way}" for name in CABLES) for way in ("up", "down"))
# Behind how many events, from the first install on.
FIRST_SPILL, LAST_SPILL = 100, 1500
BACKENDS = ("auto", "python")


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
    assert witness.tallies[0]["sums_made"] > 0


def check_calm(soak, scene, rounds=10):
    """Recovery costs nothing where nothing is lost."""
    outcome, witness = check_all_sums(soak, replace(scene, rounds=rounds))
    assert outcome.each_fault == ()
    (tally,) = witness.tallies
    assert tally["features_sent"] > 0
    repairs = ("sums_made", "features_resent", "features_fetched", "recalls", "overflows")
    assert {name: tally[name] for name in repairs if tally[name]} == {}


@pytest.mark.parametrize("number", seeds(1))
@pytest.mark.parametrize("loss", LOSS)
@pytest.mark.parametrize("duplicate", DUPLICATE)
@pytest.mark.parametrize("reorder", REORDER)
def test_every_sum_of_a_star_is_exact(star, loss, duplicate, reorder, number):
    rates = Rates(loss=loss, duplicate=duplicate, reorder=reorder, corrupt=0.001)
    check_rates(star, STAR, rates, seed_of(loss, duplicate, reorder, number))


@pytest.mark.parametrize("number", seeds(1))
@pytest.mark.parametrize(("loss", "duplicate", "reorder"), covering(LOSS, DUPLICATE, REORDER))
def test_every_sum_of_leaves_and_spines_is_exact(star, loss, duplicate, reorder, number):
    rates = Rates(loss=loss, duplicate=duplicate, reorder=reorder, corrupt=0.001)
    check_rates(star, LEAF_SPINE, rates, seed_of("leaf-spine", loss, duplicate, reorder, number))


@on_each_topology
@pytest.mark.parametrize("number", seeds(1))
@pytest.mark.parametrize(
    "rates",
    [NO_FAULTS, Rates(loss=0.05), Rates(loss=0.1, duplicate=0.05, reorder=0.05)],
    ids=["calm", "loss", "all"],
)
def test_partial_sums_are_exact(star, scene, rates, number):
    check_rates(star, replace(scene, send="cover"), rates, number)


@pytest.mark.parametrize(
    ("leaves", "spines", "send"),
    [(3, 2, "multicast"), (2, 1, "multicast"), (2, 1, "cover"), (3, 3, "cover")],
)
def test_other_shapes(star, leaves, spines, send):
    scene = replace(LEAF_SPINE, leaves=leaves, spines=spines, send=send, rounds=2)
    check_rates(star, scene, Rates(loss=0.1, duplicate=0.1, reorder=0.1, corrupt=0.02), 6)


@on_each_topology
def test_one_bad_link_slows_but_does_not_break(star, scene):
    _, witness = check_lines(star, scene, ("w2.up", "w2.down"), {"loss": 0.3})
    assert witness.tallies[0]["features_resent"] > 0


@pytest.mark.parametrize("send", ["multicast", "cover"])
def test_on_python_too(star, send):
    """Equal to the last event."""
    lines, rates = ("w2.up", "w2.down"), {"loss": 0.3}
    scenes = (replace(STAR, rounds=1, send=send, backend=name) for name in BACKENDS)
    native, python = (check_lines(star, scene, lines, rates)[0] for scene in scenes)
    assert native.digest == python.digest


@pytest.mark.parametrize(
    ("lines", "rates"),
    [
        (CABLES_UP + CABLES_DOWN, {"loss": 0.2}),
        (CABLES_UP, {"loss": 0.2}),
        (CABLES_DOWN, {"loss": 0.2}),
        (CABLES_UP + CABLES_DOWN, {"duplicate": 0.2}),
        (CABLES_UP + CABLES_DOWN, {"reorder": 0.2}),
        (CABLES_UP + CABLES_DOWN, {"corrupt": 0.05}),
        (("l1s0.up", "l1s0.down"), {"loss": 0.2}),
        (CABLES_UP + CABLES_DOWN, {"loss": 0.1, "duplicate": 0.1, "reorder": 0.1, "corrupt": 0.02}),
    ],
    ids=["loss", "up", "down", "duplicate", "reorder", "corrupt", "one", "all"],
)
def test_bad_cables(star, lines, rates):
    """Workers' links are good."""
    check_lines(star, LEAF_SPINE, lines, rates)


@on_each_topology
@pytest.mark.parametrize("rates", [NO_FAULTS, Rates(loss=0.1)], ids=["calm", "loss"])
def test_what_is_lost_in_switches_is_fetched(star, scene, rates):
    check_spills(star, scene, rates)


@on_each_topology
@pytest.mark.parametrize("send", ["multicast", "cover"])
def test_without_faults_nothing_is_repaired(star, scene, send):
    check_calm(star, replace(scene, send=send))
