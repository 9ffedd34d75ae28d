"""Plans, sessions, rounds, magnitudes and widths that do not fit end workers with a name."""

import numpy as np
import pytest

from switchgnn.host.innetwork import errors as refusals
from switchgnn.host.wire.header import LAST_ROUND, BarrierBody, Kind, unpack_header
from switchgnn.planner.base.direction import Direction
from tests.host.addresses import ADDRESSES
from tests.host.innetwork.test_exchange import (
    QUICK,
    Team,
    check_rounds,
    one_way_graph,
    plan_of,
    random_features,
)
from tests.support.markers import full


def test_a_magnitude_beside_which_all_others_vanish_is_refused(graph):
    """Its worker is named: sums would be zero without a word."""
    plan = plan_of(graph, 3)
    features = random_features(graph, 4)
    features[plan.workers[2].vertices] = np.float32(3e36)
    team = Team(plan, pace=QUICK)
    team.aggregate(features)
    assert set(map(type, team.errors.values())) >= {refusals.MagnitudeError}
    for worker in (0, 1):
        assert "worker 2 reports features of up to 3e+36" in str(team.errors[worker])


@pytest.mark.parametrize(
    ("all_times", "own_times"),
    [((1, 1, 1), (1, 1e-7, 1e-14)), ((1, 0, 1), (1, 1, 1)), ((1,), (1e6,))],
)
def test_features_of_a_worker_may_be_or_become_small(graph, all_times, own_times):
    """Gradients do, late in a training: that others are large then is nobody's fault."""
    plan = plan_of(graph, 3)
    team = Team(plan, pace=QUICK)
    for every, own in zip(all_times, own_times, strict=True):
        features = random_features(graph, 4) * np.float32(0.01 * every)
        features[plan.workers[2].vertices] *= np.float32(own)
        team.aggregate(features)
        assert not team.errors


def misled(graph, workers, magnitude, *, blocks, culprit=0):
    """A team after a round in which worker 0 is told another magnitude at these blocks."""
    plan = plan_of(graph, workers)
    body = BarrierBody(magnitude=magnitude, plan=plan.manifest.number, round=1).pack()

    def disturb(direction, worker, frame):
        header = unpack_header(frame)
        advances = direction == "down" and header.kind is Kind.ADVANCE
        if advances and header.block_id in blocks and worker == 0:
            return [ADDRESSES.frame(header._replace(dst_id=culprit).pack(body))]
        return [frame]

    team = Team(plan, pace=QUICK, disturb=disturb)
    team.aggregate(random_features(graph, 4))
    return team


def test_a_block_at_another_scale_is_noticed(graph):
    """As a switch says that was restarted, and then believed a larger magnitude for the round."""
    team = misled(graph, 2, 0x7E000000, blocks=[1])
    assert isinstance(team.errors[0], refusals.BarrierError)
    assert "different scales" in str(team.errors[0])


def test_a_magnitude_whose_sums_overflow_has_its_worker_named(graph):
    """No switch hands one out that works: it knows how many are added up at most."""
    team = misled(graph, 3, 0x7F7FFFFF, blocks=[0], culprit=2)
    assert isinstance(team.errors[0], refusals.MagnitudeError)
    assert "worker 2 reports features of up to 3.40282e+38" in str(team.errors[0])
    assert "overflows float32" in str(team.errors[0])


def test_the_last_round_of_a_session(graph):
    team = Team(plan_of(graph, 2), pace=QUICK)
    for exchange in team.exchanges:
        exchange._round = LAST_ROUND
    check_rounds(team, graph, 4, rounds=1)
    team.aggregate(random_features(graph, 4))
    assert {type(error) for error in team.errors.values()} == {refusals.RoundMismatchError}
    assert "All 16,777,215 rounds" in str(team.errors[0])


@pytest.mark.parametrize(("before", "after"), [(255, 256), (300, 511)])
def test_a_newer_session_ends_a_worker(graph, before, after):
    """Packets carry 8 bits of it, which wrap."""
    team = Team(plan_of(graph, 2), pace=QUICK, session=before)
    check_rounds(team, graph, 4)
    team.switch.session = after
    team.aggregate(random_features(graph, 4))
    assert set(map(type, team.errors.values())) == (
        {refusals.SessionMismatchError}
        if (after - before) & 0xFF < 128
        else {refusals.ExchangeTimeoutError}
    )


def test_a_process_that_starts_anew_in_the_middle_of_a_round_is_refused(graph):
    """The switch has its sources already; in a later round it may go on."""
    plan = plan_of(graph, 2)
    first = Team(plan, pace=QUICK)
    first.aggregate(random_features(graph, 4), absent=[1])
    again = Team(plan, pace=QUICK)
    again.switch = first.switch
    for worker, exchange in enumerate(again.exchanges):
        link, other = exchange._link, first.switch.link(worker)
        link.take, link.inbox = other.take, other.inbox
    again.aggregate(random_features(graph, 4))
    assert isinstance(again.errors[0], refusals.RoundMismatchError)


def disagreement(errors):
    """The one worker that is disagreement with whom it disagrees; the other waits for it."""
    kinds = {type(error): (worker, str(error)) for worker, error in errors.items()}
    assert set(kinds) == {refusals.DisagreementError, refusals.ExchangeTimeoutError}
    return kinds[refusals.DisagreementError]


def test_workers_in_different_directions_are_told():
    team = Team(plan_of(one_way_graph(), 2, slots=64, directions="both"), pace=QUICK)
    team.aggregate(random_features(one_way_graph(), 4), directions=list(Direction))
    worker, sentence = disagreement(team.errors)
    assert f"worker {1 - worker} goes on with another block or fragment" in sentence
    assert team.total()["features_sent"] == 0


@pytest.mark.parametrize("rounds", [0, pytest.param(1, marks=full)])
def test_workers_with_features_of_different_widths_are_told(graph, rounds):
    team = Team(plan_of(graph, 2), pace=QUICK)
    check_rounds(team, graph, 4, rounds=rounds)
    features = [random_features(graph, width) for width in (32, 33)]
    team.run(lambda w: team.exchanges[w].aggregate(features[w][team.plan.workers[w].vertices]))
    worker, sentence = disagreement(team.errors)
    assert f"block {team.plan.manifest.blocks}, fragment 0, worker {1 - worker} goes on" in sentence


def test_a_worker_that_leaves_rounds_out_is_refused(graph):
    team = Team(plan_of(graph, 2), pace=QUICK)
    check_rounds(team, graph, 4, rounds=1)
    team.exchanges[1]._round = 9
    team.aggregate(random_features(graph, 4))
    assert isinstance(team.errors[1], refusals.RoundMismatchError)
    assert "the switch, which is in round 2. Workers that" in str(team.errors[1])
    assert "--new-session" in str(team.errors[1])
