"""Features of a round that was foreseen do not wait for its opening, and are exact either way."""

from collections import Counter

import numpy as np
import pytest

from switchgnn.host.innetwork.errors import DisagreementError
from switchgnn.host.innetwork.fixed_point import HEADROOM, Foresight
from switchgnn.host.wire.header import Kind, unpack_header
from tests.host.innetwork import test_exchange as exchanges
from tests.support.hand_clock import HandClock
from tests.support.waiting import wait_until

WORKERS, WIDTH = 4, 33


class Seen:
    """The sound frames that a switch took and sent, in order."""

    def __init__(self):
        self.kinds = []

    def __call__(self, direction, worker, frame):
        header = unpack_header(frame)
        if header is not None:
            self.kinds.append((direction, worker, header.kind, header.round, header.block_id))
        return [frame]

    def rounds(self):
        return {number for _, _, _, number, _ in self.kinds}

    def of(self, *kinds):
        return sum(kind in kinds for _, _, kind, _, _ in self.kinds)

    def openings(self):
        """How often each worker has said that it opens a round."""
        return Counter(
            worker
            for direction, worker, kind, _, block in list(self.kinds)
            if (direction, kind, block) == ("up", Kind.DONE, 0)
        )

    def early(self, number):
        """The features of a round that came before any worker was told that it is open."""
        features = 0
        for direction, _, kind, here, block in list(self.kinds):
            if (direction, kind, here, block) == ("down", Kind.ADVANCE, number, 0):
                break
            features += (direction, kind, here) == ("up", Kind.FEATURE, number)
        return features


def made(graph, rounds=2, *, pools=1, **options):
    """A team that has exchanged so often that the next round is foreseen."""
    seen = Seen()
    team = exchanges.Team(
        exchanges.plan_of(graph, WORKERS, slots=64, pools=pools), disturb=seen, **options
    )
    for index in range(rounds):
        exchanges.exact(team, graph, exchanges.random_features(graph, WIDTH, index))
    seen.kinds.clear()
    return team, seen


def test_a_round_that_was_foreseen_waits_at_one_barrier_less(graph):
    team, _ = made(graph, rounds=1)
    before = team.total()
    for index in range(3):
        exchanges.exact(team, graph, exchanges.random_features(graph, WIDTH, index))
    after = team.total()
    # The second round is the first of which something like it has been seen; all later ones are.
    assert after["early"] - before["early"] == 2 * WORKERS
    steps = team.exchanges[0]._blocks // team.exchanges[0]._rounds
    assert before["barriers"] - WORKERS * steps == WORKERS
    assert after["barriers"] - before["barriers"] == WORKERS * (3 * steps + 1)
    assert after["void"] == 0


def slowly(team, features, late, until):
    """Exchange with one worker that waits for a condition first; return sums and results."""
    sums = team.aggregate(features, first=lambda worker: worker == late and wait_until(until))
    assert not team.errors, team.errors
    return sums


def test_features_do_not_wait_for_a_slow_worker(graph):
    team, seen = made(graph)
    features = exchanges.random_features(graph, WIDTH, 7)
    others = sum(part.send_indptr[1] for part in team.plan.workers if part.worker)
    total, results = slowly(team, features, 0, lambda: seen.early(3) >= others)
    assert np.array_equal(total, exchanges.expected(team.plan, graph, features, results[1]))


def test_who_computes_is_not_asked_for_features(graph):
    """Until all are in the round no question helps; the clock moves only while one computes."""
    clock = HandClock(1000.0)
    team, seen = made(graph, clock=clock)
    others = set(range(1, WORKERS))

    def computes():
        for _ in range(3):
            said = seen.openings()
            clock.seconds += exchanges.STEADY.timeout / 10
            # Who repeats it has noticed the time.
            wait_until(lambda said=said: others <= (seen.openings() - said).keys())
        return True

    features = exchanges.random_features(graph, WIDTH, 7)
    total, results = slowly(team, features, 0, computes)
    assert np.array_equal(total, exchanges.expected(team.plan, graph, features, results[1]))
    assert seen.of(Kind.RECALL, Kind.FETCH) == 0


@pytest.mark.parametrize("times", [1.9 * HEADROOM, 1e6])
@pytest.mark.parametrize("whose", [range(1), range(WORKERS)])
@exchanges.every_number_of_pools
def test_features_that_outgrow_the_scale_are_exchanged_again(graph, times, whose, pools):
    """All give the round up, and the sums are as exact as if nothing had been foreseen."""
    team, seen = made(graph, pools=pools)
    features = exchanges.random_features(graph, WIDTH, 1)
    for worker in whose:
        features[team.plan.workers[worker].vertices] *= np.float32(times)
    scale = exchanges.exact(team, graph, features)
    assert scale.magnitude == float(np.abs(features).max())
    assert team.total()["void"] == WORKERS
    assert seen.rounds() == {3, 4}
    assert exchanges.exact(team, graph, features).magnitude == HEADROOM * scale.magnitude
    assert team.total()["void"] == WORKERS


@pytest.mark.parametrize("width", [WIDTH - 1, 1, 100])
@exchanges.every_number_of_pools
def test_another_width_than_was_foreseen_is_exchanged_as_ever(graph, width, pools):
    team, seen = made(graph, pools=pools)
    early = team.total()["early"]
    exchanges.exact(team, graph, exchanges.random_features(graph, width, 3))
    assert (team.total()["early"], team.total()["void"]) == (early, 0)
    assert seen.early(3) == 0


def test_a_worker_that_foresees_something_else_is_named(graph):
    team, _ = made(graph, pace=exchanges.QUICK)
    team.exchanges[2]._parts.upcoming.foresight = Foresight(team.plan.manifest.max_fan_in)
    team.aggregate(exchanges.random_features(graph, WIDTH, 3))
    assert team.errors
    assert any(isinstance(error, DisagreementError) for error in team.errors.values())
