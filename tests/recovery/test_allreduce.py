"""All-reduces on bad links, with switches and workers that end, and beside forged frames."""

import random
from contextlib import ExitStack

import numpy as np
import pytest

from switchgnn.host.base.pace import Pace
from switchgnn.host.innetwork.errors import ExchangeTimeoutError
from switchgnn.host.reduce.frames import with_number
from switchgnn.host.wire.header import SESSION_MASK, Header, Kind
from tests.recovery import conftest
from tests.support.fabrics import JOIN_SECONDS
from tests.support.reducing import SIZES, Crew, all_done, check
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until


def test_every_sum_is_exact(crew, stack):
    """Several tensors are queued, and neighbour sums use the same links."""
    workers = crew(faults=f"{conftest.ALL_FAULTS},seed=1").begun()
    with workers.exchanging(stack):
        check(workers.submit(1, SIZES))
    assert conftest.all_happened(workers)


@pytest.mark.parametrize("faults", ["", conftest.FEW_FAULTS], ids=["calm", "faults"])
@pytest.mark.parametrize("which", conftest.BEDS)
def test_a_switch_restarts_in_the_middle(which, tmp_path, faults):
    """Its slots are empty, and the session stays."""
    with conftest.made_bed(which, tmp_path) as made, ExitStack() as stack:
        made.install()
        conftest.control(stack, made)
        workers = Crew(made, stack, faults=faults).begun()
        moments = random.Random(1)
        jobs = workers.submit(1, (*SIZES, 70_001, 3))
        for switch in (0, 2):
            until = workers.total()["sums"] + moments.randrange(1, 1000)
            wait_until(lambda until=until: workers.total()["sums"] >= until or all_done(jobs))
            made.restart(switch)
        check(jobs)


BRIEF = Pace(timeout=1.0)


BYZANTINE = conftest.WORKERS - 1
LANES = bytes(range(256)) * 4
WIDEST = 31


def forge(workers, header, body=LANES):
    frame = workers.bed.addresses(BYZANTINE).frame(header.pack(body))
    workers.halves[BYZANTINE][1].send(frame)


def about(workers, number):
    session = workers.bed.session & SESSION_MASK
    own = Header(kind=Kind.REDUCE, src_id=BYZANTINE, count=1, fragment=WIDEST, session=session)
    return with_number(own, number)


@conftest.of_stars
@pytest.mark.parametrize("ahead", [0, 512 * 1000])
def test_a_contribution_ahead_stops_all_with_an_error(crew, ahead):
    """It takes slots that all need; so does a wider one of the same number (docs/security.md)."""
    workers = crew(pace=BRIEF).begun()
    numbers = range(workers.first, workers.first + 8)
    for number in numbers:
        forge(workers, about(workers, number + ahead))
    for future in workers.submit(1, (3,) * len(numbers), [np.int32])[0].futures.values():
        error = future.exception(seconds_here(JOIN_SECONDS))
        assert isinstance(error, ExchangeTimeoutError), error
