"""The strawman on real switches: exact sums, and more that overflows where slots are few."""

from contextlib import ExitStack

import pytest

from switchgnn.controller import P4RuntimeClient, read_counters
from switchgnn.planner.base.direction import Direction
from tests.support.fabrics import Team, bed
from tests.support.markers import TARGETS, full, some_of

WORKERS = 4
ROUNDS = 2
FAULTS = (
    *("loss=0.05,seed=1", "duplicate=0.1,reorder=0.1,seed=2"),
    "loss=0.1,duplicate=0.05,reorder=0.05,corrupt=0.005,seed=3",
)


@pytest.fixture(scope="module", params=TARGETS)
def made(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bed")
    with bed(request.param, WORKERS, folder, strawman=True, directions="both") as each:
        yield each


@pytest.fixture
def team(made):
    with ExitStack() as stack:

        def make(slots, **options):
            stack.close()
            made.plan = made.plan_for(slots)
            made.install()
            return Team(made, stack, **options)

        yield make


def counters(made):
    with P4RuntimeClient(made.address, primary=False) as client:
        return read_counters(client)


def enough(made):
    return 8 * (int(made.plan.switch.result_slot.max()) + 1)


@pytest.mark.parametrize("slots", [8, None, *(pytest.param(each, marks=full) for each in (11, 16))])
def test_every_sum_is_exact(made, team, slots):
    workers = team(slots or enough(made))
    before = counters(made)
    assert workers.run(ROUNDS, width=65) == 0, workers.errors
    after = counters(made)
    overflowed = after.named()["slot_overflowed"] - before.named()["slot_overflowed"]
    total = workers.total()
    # BMv2 may lose what it sends around or down; what was fetched came in no other way.
    assert overflowed >= total["overflows"]
    assert total["sums_made"] > 0 or overflowed == total["overflows"]
    assert overflowed == 0 if slots is None else overflowed > 0 or slots > 11
    # Whatever found a slot is in a part, and each part was counted once.
    prediction = made.plan.manifest.direction(Direction.FORWARD).prediction
    contributions = 3 * ROUNDS * prediction.contributions
    if not total["sums_made"]:
        assert after.passes.contributions - before.passes.contributions == contributions


@pytest.mark.parametrize(
    ("slots", "faults"), some_of(lambda slots, faults: slots + faults == 2, [8, 24, 400], FAULTS)
)
def test_every_sum_is_exact_under_faults(team, slots, faults):
    workers = team(slots, faults=faults)
    assert workers.run(ROUNDS, seed=slots) == 0, (workers.errors, workers.total())
    injected = workers.injected()
    assert injected["lost"] + injected["duplicated"] > 0
