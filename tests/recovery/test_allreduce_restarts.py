# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The switch dies in the middle of all-reduces and starts again, with empty slots."""

import random
from contextlib import ExitStack

import pytest

from switchgnn.controller import P4RuntimeClient, Share, load_plan
from tests.recovery.conftest import control
from tests.support.fabrics import bed
from tests.support.markers import TARGETS
from tests.support.reducing import SIZES, Crew, DeafLink, all_done, check
from tests.support.seeds import seeds
from tests.support.waiting import wait_until

WORKERS = 4


@pytest.fixture
def stack():
    with ExitStack() as made:
        yield made


@pytest.fixture(params=TARGETS)
def own_bed(request, tmp_path, stack):
    """A switch that gets its plan again when it restarts."""
    with bed(request.param, WORKERS, tmp_path) as made:
        made.install()
        client = stack.enter_context(P4RuntimeClient(made.address))
        plan = load_plan((made.plan.manifest, made.plan.switch))
        control(stack, [Share(plan, made.network, client)], made.program)
        yield made
        stack.close()


def restart(made):
    made.kill()
    made.start()


@pytest.mark.parametrize("faults", ["", "loss=0.03,reorder=0.03,duplicate=0.03,seed=2"])
@pytest.mark.parametrize("seed", seeds(1, 6))
def test_the_switch_restarts_in_the_middle(own_bed, stack, seed, faults):
    """Its slots are empty, and the session stays."""
    workers = Crew(own_bed, stack, faults=faults).begun()
    moments = random.Random(seed)
    jobs = workers.submit(seed, (*SIZES, 70_001, 3))
    for _ in range(2):
        until = workers.total()["sums"] + moments.randrange(1, 1000)
        wait_until(lambda until=until: workers.total()["sums"] >= until or all_done(jobs))
        restart(own_bed)
    check(jobs)


@pytest.mark.parametrize("loser", [0, WORKERS - 1])
def test_a_sum_that_only_others_have_is_asked_for(own_bed, stack, loser):
    workers = Crew(own_bed, stack, wraps={loser: DeafLink}).begun()
    jobs = workers.submit(1, (20,))
    others = [jobs[0].futures[worker] for worker in range(WORKERS) if worker != loser]
    wait_until(lambda: all(future.done() for future in others), "the sums of the others")
    assert not jobs[0].futures[loser].done()
    # A sum that the switch repeats must not arrive before it restarts.
    restart(own_bed)
    workers.links[loser].deaf = False
    check([*jobs, *workers.submit(2, SIZES)])
    assert workers.streams[loser].counters.asked > 0
    assert workers.total()["answered"] > 0
