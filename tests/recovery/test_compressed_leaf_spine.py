# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Cached rows and few bits over leaves and spines: faults on cables and links, and restarts."""

import threading
from contextlib import ExitStack

import pytest

from switchgnn.controller import P4RuntimeClient, Share
from tests.recovery.conftest import ALL_FAULTS, control, happened, kinds_of
from tests.support.compressing import CACHED, calls_of, run_and_check
from tests.support.fabrics import Team
from tests.support.leaf_spine_fabrics import NO_FAULTS, leaf_spine_bed
from tests.support.markers import MININET_TARGETS, full
from tests.support.reducing import SIZES, Crew, SharedBed
from tests.support.reducing import check as check_reduces
from tests.support.seeds import seeds
from tests.support.speed import seconds_here

PLAN = {"send": "cover", "directions": "both", "spines": 2}
FEW_FAULTS = "loss=0.02,duplicate=0.02,reorder=0.02,seed=8"


@pytest.fixture(scope="module", params=MININET_TARGETS)
def shared_bed(request, tmp_path_factory):
    """Two leaves with two workers each, and two spines."""
    with leaf_spine_bed(tmp_path_factory.mktemp("bed"), request.param, **PLAN) as made:
        assert max(made.plan.switch.entry_count) > 1
        yield made


@pytest.fixture
def begin(shared_bed):
    """Begin a new session with faults on cables and links; return what closes with it."""
    with ExitStack() as stack:

        def begun(faults):
            shared_bed.disturb(NO_FAULTS)
            shared_bed.install()
            shared_bed.disturb(faults)
            stack.callback(shared_bed.disturb, NO_FAULTS)
            return stack

        yield begun


@pytest.mark.parametrize("bits", [32, 16, 8])
def test_sums_are_those_of_what_was_sent(shared_bed, begin, bits):
    faults = f"{ALL_FAULTS},seed={bits}"
    workers = Team(shared_bed, begin(faults), faults=faults)
    fulls = run_and_check(workers, calls_of(shared_bed.graph, 16, seed=bits), CACHED[bits])
    assert 4 <= fulls < 16
    assert happened(shared_bed.fabric.cable_injected()) == kinds_of(ALL_FAULTS)
    assert happened(workers.injected()) == kinds_of(ALL_FAULTS)


def test_beside_all_reduces(shared_bed, begin):
    stack = begin(FEW_FAULTS)
    crew = Crew(shared_bed, stack, faults=FEW_FAULTS).begun()
    workers, jobs = Team(SharedBed(crew), stack), crew.submit(1, SIZES)
    run_and_check(workers, calls_of(shared_bed.graph, 16, seed=5), CACHED[8])
    check_reduces(jobs)


@pytest.mark.parametrize("switch", [0, 2, pytest.param(3, marks=full)])
@pytest.mark.parametrize("seed", seeds(1, 3))
def test_a_leaf_or_a_spine_restarts(shared_bed, begin, switch, seed):
    stack = begin(NO_FAULTS)
    shares = shared_bed.shares()
    clients = [stack.enter_context(P4RuntimeClient(share.switch)) for share in shares]
    ends = zip(shares, clients, strict=True)
    watched = [Share(share.plan, share.network, client) for share, client in ends]
    control(stack, watched, shared_bed.program)
    shared_bed.disturb(FEW_FAULTS)
    reached = threading.Semaphore(0)
    workers = Team(shared_bed, stack, faults=FEW_FAULTS, on_block=lambda *_: reached.release())
    calls = calls_of(shared_bed.graph, 12, seed=seed)
    done = []
    running = threading.Thread(
        target=lambda: done.append(run_and_check(workers, calls, CACHED[16])), daemon=True
    )
    running.start()
    # Most tensors have been sent once.
    for _ in range(20 + 5 * seed + 3 * switch):
        assert reached.acquire(timeout=seconds_here())
    assert not done
    shared_bed.restart(switch)
    running.join(seconds_here(100))
    assert done, workers.errors
