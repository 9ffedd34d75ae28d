# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Leaves and spines: faults on cables and links, and whatever may die in a round.

The matrix of faults, other moments and other switches are in tests/virtual/matrix.
"""

import random
import re
import threading
import time
from contextlib import ExitStack

import pytest

from switchgnn.controller import P4RuntimeClient, Share
from switchgnn.host.pace import Pace
from tests.recovery.conftest import ALL_FAULTS, EACH_FAULT, control, happened, kinds_of
from tests.support.fabrics import Team
from tests.support.leaf_spine_fabrics import NO_FAULTS, leaf_spine_bed
from tests.support.markers import MININET_TARGETS, full, some_of
from tests.support.seeds import seeds
from tests.support.speed import seconds_here

WORKERS = 4
ROUNDS = 3
PATIENCE = 1.0
# From the dead worker's last frame; a machine with two cores runs everything.
BOUND = 20.0
FEW_FAULTS = "loss=0.02,duplicate=0.02,reorder=0.02,seed=8"


@pytest.fixture(scope="module", params=MININET_TARGETS)
def shared_bed(request, tmp_path_factory):
    """Two leaves and two spines; killed switches are restarted."""
    with leaf_spine_bed(tmp_path_factory.mktemp("bed"), request.param, spines=2) as made:
        yield made


@pytest.fixture
def team(shared_bed):
    """Make a team with faults on a new session; its links are closed afterwards."""
    with ExitStack() as stack:

        def make(faults):
            shared_bed.disturb(NO_FAULTS)
            shared_bed.install()
            shared_bed.disturb(faults)
            return Team(shared_bed, stack, faults=faults)

        yield make


def on_cables(bed):
    return bed.fabric.cable_injected()


@pytest.mark.parametrize("faults", [ALL_FAULTS, *EACH_FAULT])
def test_every_sum_is_exact(shared_bed, team, faults):
    workers = team(f"{faults},seed=1")
    wrong = workers.run(ROUNDS, seed=1)
    assert not workers.errors, (workers.errors, workers.total())
    assert wrong == 0
    # The faults really happened, on either kind of links.
    assert happened(on_cables(shared_bed)) == kinds_of(faults)
    assert happened(workers.injected()) == kinds_of(faults)


@full
@pytest.mark.parametrize("faults", ["cables.down.loss=0.2", "cables.up.loss=0.2", "l1s0.loss=0.2"])
def test_bad_cables(shared_bed, team, faults):
    workers = team(f"{faults},seed=5")
    assert workers.run(ROUNDS) == 0, (workers.errors, workers.total())
    assert happened(on_cables(shared_bed)) == {"lost"}
    assert happened(workers.injected()) == set()


def test_without_faults_no_sum_is_made_by_hand(shared_bed, team):
    workers = team(NO_FAULTS)
    assert workers.run(ROUNDS) == 0, workers.errors
    assert workers.total()["sums_made"] == 0
    assert happened(on_cables(shared_bed)) == set()


@pytest.mark.parametrize("seed", seeds(1, 2))
@pytest.mark.parametrize(
    ("switch", "faults"),
    # In `make test` a leaf, which has faults beside, and a spine.
    some_of(
        lambda switch, faults: (switch, faults) in {(1, 1), (2, 0)},
        range(4),
        [NO_FAULTS, FEW_FAULTS],
    ),
)
def test_any_one_switch_restarts(shared_bed, switch, faults, seed):
    seen = random.Random(repr((switch, faults, seed))).randrange(1, 24)
    shared_bed.disturb(NO_FAULTS)
    shared_bed.install()
    with ExitStack() as stack:
        clients = [
            stack.enter_context(P4RuntimeClient(each.switch)) for each in shared_bed.shares()
        ]
        ends = zip(shared_bed.shares(), clients, strict=True)
        watched = [Share(share.plan, share.network, client) for share, client in ends]
        control(stack, watched, shared_bed.program)
        shared_bed.disturb(faults)
        reached = threading.Semaphore(0)
        team = Team(shared_bed, stack, faults=faults, on_block=lambda *_: reached.release())
        wrong = []
        running = threading.Thread(target=lambda: wrong.append(team.run(4)), daemon=True)
        running.start()
        for _ in range(seen):
            assert reached.acquire(timeout=seconds_here())
        shared_bed.restart(switch)
        running.join(seconds_here(100))
        assert not running.is_alive()
        assert wrong == [0], (seen, team.errors)


@pytest.mark.parametrize(
    ("victim", "after"),
    [(3, 1), pytest.param(0, 0, marks=full)],
)
def test_a_worker_dies(shared_bed, victim, after):
    """The others, on either leaf, stop in time and name the missing worker."""
    shared_bed.disturb(NO_FAULTS)
    shared_bed.install()
    died = []
    with ExitStack() as stack:
        team = Team(
            shared_bed,
            stack,
            pace=Pace(timeout=PATIENCE),
            on_block=lambda *_: died.append(time.monotonic()),
        )
        started = time.monotonic()
        team.run(after + 2, stops={victim: after})
        ended = time.monotonic()
    assert ended - max([started, *died]) < seconds_here(BOUND)
    assert set(team.errors) == set(range(WORKERS)) - {victim}
    for error in team.errors.values():
        # From another leaf the whole leaf is missing: to a spine it has all its bits.
        named = re.search(r"for workers? ([\d, ]+)", str(error))
        assert named and str(victim) in named[1].split(", "), error


SHAPES = [(3, 2, "multicast"), (2, 1, "cover"), (2, 2, "cover")]


@pytest.mark.parametrize(
    ("target", "shape"),
    some_of(lambda target, shape: target == 0 and shape == 1, MININET_TARGETS, SHAPES),
)
def test_other_shapes(tmp_path, target, shape):
    leaves, spines, send = shape
    faults = "loss=0.1,duplicate=0.1,reorder=0.1,corrupt=0.02"
    shape = {"leaves": leaves, "spines": spines, "send": send}
    with leaf_spine_bed(tmp_path, target, **shape) as bed, ExitStack() as stack:
        bed.disturb(f"{faults},seed=6")
        team = Team(bed, stack, faults=f"{faults},seed=7")
        assert team.run(2) == 0, team.errors
        assert not team.errors
