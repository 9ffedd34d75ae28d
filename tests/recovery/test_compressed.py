# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Cached rows and few bits on bad links, beside all-reduces, and where parts die or are slow.

Plans have partial sums, several blocks and both directions. More moments, in virtual time, are in
tests/virtual.
"""

import threading
import time
from contextlib import ExitStack

import pytest

from switchgnn.controller import P4RuntimeClient, Share, load_plan
from switchgnn.host.compression import Compression
from switchgnn.host.errors import TransportError
from switchgnn.host.innetwork.errors import RoundMismatchError
from switchgnn.host.innetwork.exchange import InNetworkExchange
from switchgnn.host.pace import Pace
from tests.recovery.conftest import ALL_FAULTS, control, happened, kinds_of, restarting
from tests.support.compressing import CACHED, calls_of, run, run_and_check
from tests.support.fabrics import Team, bed
from tests.support.markers import TARGETS, some_of
from tests.support.reducing import SIZES, Crew, SharedBed, all_done
from tests.support.reducing import check as check_reduces
from tests.support.seeds import seeds

WORKERS = 4
PLAN = {"send": "cover", "directions": "both", "slots": 16}
BRIEF = Pace(patience=2.0, skew=1.0)
FEW_FAULTS = "loss=0.02,duplicate=0.02,reorder=0.02,seed=8"


@pytest.fixture
def stack():
    with ExitStack() as made:
        yield made


@pytest.fixture(scope="module", params=TARGETS)
def shared_bed(request, tmp_path_factory):
    with bed(request.param, WORKERS, tmp_path_factory.mktemp("bed"), **PLAN) as made:
        assert max(made.plan.switch.entry_count) > 1
        assert len(made.plan.manifest.directions["forward"].block_numbers) > 1
        yield made


@pytest.fixture
def team(shared_bed, stack):
    """Make a team on a new session; its links are closed afterwards."""

    def make(**options):
        shared_bed.install()
        return Team(shared_bed, stack, **options)

    return make


@pytest.mark.parametrize(
    ("bits", "rounds"),
    some_of(lambda bits, rounds: rounds == 0 or bits == 2, (32, 16, 8), (30, 200)),
)
def test_sums_are_those_of_what_was_sent(shared_bed, team, bits, rounds):
    workers = team(faults=f"{ALL_FAULTS},seed={bits}")
    fulls = run_and_check(workers, calls_of(shared_bed.graph, rounds, seed=bits), CACHED[bits])
    assert happened(workers.injected()) == kinds_of(ALL_FAULTS)
    # Each of the four tensors once, and where its scale was renewed.
    assert 4 <= fulls < rounds
    for exchange in workers.exchanges:
        assert 0 < exchange.savings.skipped < exchange.savings.rows


@pytest.mark.parametrize("bits", [16, 8])
def test_few_bits_without_a_cache(shared_bed, team, bits):
    workers = team(faults=f"{ALL_FAULTS},seed=3")
    run_and_check(workers, calls_of(shared_bed.graph, 20, seed=3), Compression(bits=bits))


@pytest.mark.parametrize("bits", [32, 8])
def test_a_slow_worker_loses_no_change(shared_bed, team, bits):
    """It begins rounds late, so that others' changes arrive before."""

    def pause(worker, index):
        if worker == WORKERS - 1:
            time.sleep(0.01 * (index % 3))

    calls = calls_of(shared_bed.graph, 30, seed=4)
    run_and_check(team(faults=FEW_FAULTS), calls, CACHED[bits], pause=pause)


def test_beside_all_reduces(shared_bed, stack):
    shared_bed.install()
    crew = Crew(shared_bed, stack, faults=FEW_FAULTS).begun()
    workers, jobs = Team(SharedBed(crew), stack), crew.submit(1, SIZES)
    run_and_check(workers, calls_of(shared_bed.graph, 30, seed=5), CACHED[16])
    check_reduces(jobs)
    assert all_done(jobs)


# --- Another process takes the place of a worker, with an empty cache


def test_another_process_ends_the_session(shared_bed, team):
    """It begins with round 1, as all processes do: nobody gets sums."""
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


def test_a_process_that_joins_later_may_have_no_cache(shared_bed, team):
    workers = team(first_round=3)
    for exchange in workers.exchanges:
        exchange.compress(Compression(bits=8))
        with pytest.raises(TransportError, match=r"begins with round 3.*--new-session"):
            exchange.compress(CACHED[32])


# --- The switch dies


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", seeds(1, 5))
@pytest.mark.parametrize("bits", [32, 8])
def test_the_switch_restarts_in_the_middle(target, tmp_path, stack, bits, seed):
    """Sums that it has lost are made of changes, and of no whole rows."""
    with bed(target, WORKERS, tmp_path, **PLAN) as made:
        made.install()
        client = stack.enter_context(P4RuntimeClient(made.address))
        plan = load_plan((made.plan.manifest, made.plan.switch))
        control(stack, [Share(plan, made.network, client)], made.program)
        ended = threading.Event()

        def end():
            made.kill()
            ended.set()

        with restarting(made, f"{bits} {seed}", end) as on_block:
            workers = Team(made, stack, faults=FEW_FAULTS, on_block=on_block)
            run_and_check(workers, calls_of(made.graph, 12, seed=seed), CACHED[bits])
        assert ended.is_set()
        stack.close()
