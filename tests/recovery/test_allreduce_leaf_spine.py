# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""All-reduces over leaves and a spine: faults on cables and links, and restarts of each switch."""

import random
from contextlib import ExitStack

import pytest

from switchgnn.controller import P4RuntimeClient, Share
from tests.recovery.conftest import ALL_FAULTS, EACH_FAULT, control, happened, kinds_of
from tests.support.leaf_spine_fabrics import NO_FAULTS, leaf_spine_bed
from tests.support.markers import MININET_TARGETS, full
from tests.support.reducing import SIZES, Crew, DeafLink, all_done, check
from tests.support.seeds import seeds
from tests.support.waiting import wait_until

WORKERS = 4


@pytest.fixture(scope="module", params=MININET_TARGETS)
def shared_bed(request, tmp_path_factory):
    """Two leaves with two workers each, and two spines; only the first one reduces."""
    with leaf_spine_bed(tmp_path_factory.mktemp("bed"), request.param, spines=2) as made:
        yield made


@pytest.fixture
def stack():
    with ExitStack() as made:
        yield made


@pytest.fixture
def crew(shared_bed, stack):
    """Make a crew that has begun, on a new session."""

    def make(faults="", **options):
        shared_bed.disturb(NO_FAULTS)
        shared_bed.install()
        shared_bed.disturb(faults or NO_FAULTS)
        stack.callback(shared_bed.disturb, NO_FAULTS)
        return Crew(shared_bed, stack, faults=faults, **options).begun()

    return make


@pytest.mark.parametrize(
    "faults",
    [
        ALL_FAULTS,
        *EACH_FAULT,
        *(pytest.param(f"cables.{way}.loss=0.2", marks=full) for way in ("up", "down")),
    ],
)
def test_every_sum_is_exact(shared_bed, crew, stack, faults):
    workers = crew(f"{faults},seed=1")
    with workers.exchanging(stack):
        check(workers.submit(1, SIZES))
    kinds = faults.removeprefix("cables.up.").removeprefix("cables.down.")
    assert happened(shared_bed.fabric.cable_injected()) == kinds_of(kinds)


@pytest.fixture
def watched(shared_bed, stack):
    """Install again on every switch that restarts."""

    def begin():
        shares = shared_bed.shares()
        clients = [stack.enter_context(P4RuntimeClient(share.switch)) for share in shares]
        ends = zip(shares, clients, strict=True)
        each = [Share(share.plan, share.network, client) for share, client in ends]
        control(stack, each, shared_bed.program)

    return begin


@pytest.mark.parametrize("switch", [0, 2, pytest.param(1, marks=full)])
@pytest.mark.parametrize("seed", seeds(1, 4))
def test_a_leaf_or_the_spine_restarts(shared_bed, crew, watched, switch, seed):
    workers = crew("loss=0.02,duplicate=0.02,reorder=0.02,seed=8" if seed else "")
    watched()
    moments = random.Random(seed)
    jobs = workers.submit(seed, (*SIZES, 70_001, 3))
    for _ in range(2):
        until = workers.total()["sums"] + moments.randrange(1, 1000)
        wait_until(lambda until=until: workers.total()["sums"] >= until or all_done(jobs))
        shared_bed.restart(switch)
    check(jobs)


@pytest.mark.parametrize("loser", [0, WORKERS - 1])
@pytest.mark.parametrize("switch", [0, 2])
def test_a_sum_that_only_others_have_is_asked_for(shared_bed, crew, watched, loser, switch):
    """Whichever switch has lost it."""
    workers = crew(wraps={loser: DeafLink})
    watched()
    jobs = workers.submit(1, (20,))
    others = [jobs[0].futures[worker] for worker in range(WORKERS) if worker != loser]
    wait_until(lambda: all(future.done() for future in others), "the sums of the others")
    shared_bed.restart(switch)
    workers.links[loser].deaf = False
    check([*jobs, *workers.submit(2, SIZES)])
