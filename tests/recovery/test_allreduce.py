"""All-reduces on bad links, with switches and workers that end, and beside forged frames."""

import numpy as np
import pytest

from switchgnn.host.base.pace import Pace
from switchgnn.host.innetwork.errors import ExchangeTimeoutError
from switchgnn.host.reduce.frames import with_number
from switchgnn.host.wire.header import SESSION_MASK, Header, Kind
from tests.recovery.conftest import (
    ALL_FAULTS,
    WORKERS,
    all_happened,
    of_stars,
)
from tests.support.fabrics import JOIN_SECONDS
from tests.support.reducing import SIZES, check
from tests.support.speed import seconds_here


def test_every_sum_is_exact(crew, stack):
    """Several tensors are queued, and neighbour sums use the same links."""
    workers = crew(faults=f"{ALL_FAULTS},seed=1").begun()
    with workers.exchanging(stack):
        check(workers.submit(1, SIZES))
    assert all_happened(workers)


BRIEF = Pace(timeout=1.0)


BYZANTINE = WORKERS - 1
LANES = bytes(range(256)) * 4
WIDEST = 31


def forge(workers, header, body=LANES):
    frame = workers.bed.addresses(BYZANTINE).frame(header.pack(body))
    workers.halves[BYZANTINE][1].send(frame)


def about(workers, number):
    session = workers.bed.session & SESSION_MASK
    own = Header(kind=Kind.REDUCE, src_id=BYZANTINE, count=1, fragment=WIDEST, session=session)
    return with_number(own, number)


@of_stars
@pytest.mark.parametrize("ahead", [0, 512 * 1000])
def test_a_contribution_ahead_stops_all_with_an_error(crew, ahead):
    """It takes slots that all need; so does a wider one of the same number (docs/security.md)."""
    workers = crew(pace=BRIEF).begun()
    numbers = range(workers.first, workers.first + 8)
    for number in numbers:
        forge(workers, about(workers, number + ahead))
    jobs = workers.submit(1, (3,) * len(numbers), [np.int32])
    for future in jobs[0].futures.values():
        error = future.exception(seconds_here(JOIN_SECONDS))
        assert isinstance(error, ExchangeTimeoutError), error
