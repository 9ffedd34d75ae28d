"""Cached rows and few bits on bad links, beside all-reduces, and where switches restart.

Plans have partial sums, several blocks and both directions. More moments, in virtual time, are in
tests/virtual.
"""

from contextlib import ExitStack

import pytest

from switchgnn.host.compression import Compression
from switchgnn.host.errors import TransportError
from tests.recovery.conftest import (
    ALL_FAULTS,
    BEDS,
    FEW_FAULTS,
    STARS,
    all_happened,
    control,
    made_bed,
    of_stars,
    restarting,
)
from tests.support.compressing import CACHED, calls_of, run_and_check
from tests.support.fabrics import Team
from tests.support.reducing import SIZES, all_done
from tests.support.reducing import check as check_reduces

PLAN = {"send": "cover", "directions": "both", "slots": 16}


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


@pytest.mark.parametrize("which", STARS)
@pytest.mark.parametrize("bits", [32, 16, 8])
def test_sums_of_bundles(which, bits, tmp_path, stack):
    with made_bed(which, tmp_path, **PLAN, rows=4, lanes=24) as made:
        made.install()
        workers = Team(made, stack, faults=f"{ALL_FAULTS},seed={bits}")
        run_and_check(workers, calls_of(made.graph, 20, seed=bits), CACHED[bits])
        assert all_happened(workers)


def test_beside_all_reduces(shared_bed, crew, stack):
    reducing = crew(faults=FEW_FAULTS).begun()
    workers, jobs = reducing.team(stack), reducing.submit(1, SIZES)
    run_and_check(workers, calls_of(shared_bed.graph, 16, seed=5), CACHED[16])
    check_reduces(jobs)
    assert all_done(jobs)


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
        on_block = stack.enter_context(restarting(1, lambda: restarted.append(made.restart(0))))
        workers = Team(made, stack, faults=FEW_FAULTS, on_block=on_block)
        run_and_check(workers, calls_of(made.graph, 12, seed=1), CACHED[8])
        assert restarted
