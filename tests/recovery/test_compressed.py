# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Cached rows and few bits on bad links, beside all-reduces, and where switches restart.

Plans have partial sums, several blocks and both directions. More moments, in virtual time, are in
tests/virtual.
"""

import time
from contextlib import ExitStack
from functools import partial

import pytest

from switchgnn.host.compression import Compression
from switchgnn.host.errors import TransportError
from switchgnn.host.innetwork.errors import RoundMismatchError
from switchgnn.host.innetwork.exchange import InNetworkExchange
from switchgnn.host.pace import Pace
from tests.recovery.conftest import (
    ALL_FAULTS,
    BEDS,
    FEW_FAULTS,
    STARS,
    WORKERS,
    all_happened,
    control,
    made_bed,
    restarting,
)
from tests.support.compressing import CACHED, calls_of, run, run_and_check
from tests.support.fabrics import Team
from tests.support.reducing import SIZES, all_done
from tests.support.reducing import check as check_reduces

PLAN = {"send": "cover", "directions": "both", "slots": 16}
BRIEF = Pace(timeout=2.0, skew=1.0)
of_stars = pytest.mark.parametrize("shared_bed", STARS, indirect=True)


@pytest.mark.parametrize("bits", [32, 16, 8])
def test_sums_are_those_of_what_was_sent(shared_bed, team, bits):
    assert max(shared_bed.plan.switch.entry_count) > 1
    workers = team(faults=f"{ALL_FAULTS},seed={bits}")
    fulls = run_and_check(workers, calls_of(shared_bed.graph, 30, seed=bits), CACHED[bits])
    assert all_happened(workers)
    # Each of the four tensors once, and where its scale was renewed.
    assert 4 <= fulls < 30
    for exchange in workers.exchanges:
        assert 0 < exchange.savings.skipped < exchange.savings.rows


@of_stars
def test_few_bits_without_a_cache(shared_bed, team):
    workers = team(faults=f"{ALL_FAULTS},seed=3")
    run_and_check(workers, calls_of(shared_bed.graph, 20, seed=3), Compression(bits=8))


@of_stars
def test_a_slow_worker_loses_no_change(shared_bed, team):
    """It begins rounds late, so that others' changes arrive before."""

    def pause(worker, index):
        if worker == WORKERS - 1:
            time.sleep(0.01 * (index % 3))

    calls = calls_of(shared_bed.graph, 30, seed=4)
    run_and_check(team(faults=FEW_FAULTS), calls, CACHED[8], pause=pause)


def test_beside_all_reduces(shared_bed, crew, stack):
    reducing = crew(faults=FEW_FAULTS).begun()
    workers, jobs = reducing.team(stack), reducing.submit(1, SIZES)
    run_and_check(workers, calls_of(shared_bed.graph, 16, seed=5), CACHED[16])
    check_reduces(jobs)
    assert all_done(jobs)


@of_stars
def test_another_process_ends_the_session(shared_bed, team):
    """It begins with round 1, as all processes do, and an empty cache: nobody gets sums."""
    calls = calls_of(shared_bed.graph, 8, widths=(7,), seed=6, surges=False)
    workers = team(pace=BRIEF)
    run_and_check(workers, calls[:4], CACHED[32])
    workers.exchanges[2] = InNetworkExchange(
        shared_bed.plan.manifest,
        shared_bed.plan.workers[2],
        workers.links[2],
        shared_bed.addresses(2),
        session=shared_bed.session,
        pace=BRIEF,
    )
    workers.exchanges[2].compress(CACHED[32])
    results = run(workers, calls[4:])
    assert set(workers.errors) == set(range(WORKERS))
    assert type(workers.errors[2]) is RoundMismatchError
    assert not any(results)


@of_stars
def test_a_process_that_joins_later_may_have_no_cache(team):
    for exchange in team(first_round=3).exchanges:
        exchange.compress(Compression(bits=8))
        with pytest.raises(TransportError, match=r"begins with round 3.*--new-session"):
            exchange.compress(CACHED[32])


@pytest.mark.parametrize("which", BEDS)
def test_a_switch_restarts_in_the_middle(which, tmp_path):
    """Sums that it has lost are made of changes, and of no whole rows."""
    with made_bed(which, tmp_path, **PLAN) as made, ExitStack() as stack:
        made.install()
        control(stack, made)
        restarted = []
        restart = partial(_restart, made, restarted)
        on_block = stack.enter_context(restarting(1, restart))
        workers = Team(made, stack, faults=FEW_FAULTS, on_block=on_block)
        run_and_check(workers, calls_of(made.graph, 12, seed=1), CACHED[8])
        assert restarted


def _restart(made, restarted):
    restarted.append(made)
    made.restart(0)
