# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A worker that reports a magnitude of its own making harms nobody unnoticed."""

import numpy as np

from switchgnn.host.innetwork.errors import BarrierError, MagnitudeError
from switchgnn.host.innetwork.exchange import plan_id
from switchgnn.host.wire.header import BarrierBody, Header, Kind, unpack_header
from tests.host.addresses import ADDRESSES, SESSION
from tests.host.innetwork.test_exchange import QUICK, Team, check_rounds, plan_of, random_features


def test_a_magnitude_beside_which_all_others_vanish_is_refused(graph):
    """Its worker is named: sums would be zero without a word."""
    plan = plan_of(graph, 3)
    features = random_features(graph, 4)
    features[plan.workers[2].vertices] = np.float32(3e36)
    team = Team(plan, pace=QUICK)
    team.aggregate(features)
    assert set(map(type, team.errors.values())) >= {MagnitudeError}
    for worker in (0, 1):
        assert "worker 2 reports features of up to 3e+36" in str(team.errors[worker])


def test_features_of_a_worker_may_become_small(graph):
    """Gradients do, late in a training: that others are large then is nobody's fault."""
    plan = plan_of(graph, 3)
    team = Team(plan, pace=QUICK)
    features = random_features(graph, 4)
    for _ in range(3):
        team.aggregate(features)
        assert not team.errors
        features[plan.workers[2].vertices] *= np.float32(1e-7)


def test_a_round_of_zeros_has_no_scale_to_refuse(graph):
    team = Team(plan_of(graph, 3), pace=QUICK)
    features = random_features(graph, 4) * np.float32(0.01)
    for each in (features, np.zeros_like(features), features):
        team.aggregate(each)
        assert not team.errors


def test_small_features_beside_large_ones_are_summed(graph):
    plan = plan_of(graph, 3)
    features = random_features(graph, 4)
    features[plan.workers[2].vertices] *= np.float32(1e6)
    team = Team(plan, pace=QUICK)
    team.aggregate(features)
    assert not team.errors


def test_a_magnitude_that_is_raised_later_changes_no_scale(graph):
    """A worker that lost its ADVANCE asks again, and hears the one that the others have."""
    plan = plan_of(graph, 3)
    lost = []

    def disturb(direction, worker, frame):
        header = unpack_header(frame)
        if direction == "down" and worker == 0 and header.kind is Kind.ADVANCE and not lost:
            lost.append(frame)
            raised = BarrierBody(magnitude=0x7E000000, plan=plan_id(plan.manifest))
            done = Header(kind=Kind.DONE, src_id=2, dst_id=numbers[2], session=SESSION, round=1)
            team.switch._process(2, ADDRESSES.frame(done.pack(raised.pack())))
            return []
        return [frame]

    team = Team(plan, pace=QUICK, disturb=disturb)
    numbers = [exchange._barrier._endpoint.incarnation for exchange in team.exchanges]
    check_rounds(team, graph, 4)
    assert lost


def test_a_block_at_another_scale_is_noticed(graph):
    """As a switch says that was restarted, and then believed a larger magnitude for the round."""
    plan = plan_of(graph, 2)

    def disturb(direction, worker, frame):
        header = unpack_header(frame)
        if direction == "down" and header.kind is Kind.ADVANCE and header.block_id and worker == 0:
            raised = BarrierBody(magnitude=0x7E000000, plan=plan_id(plan.manifest), round=1)
            return [ADDRESSES.frame(header.pack(raised.pack()))]
        return [frame]

    team = Team(plan, pace=QUICK, disturb=disturb)
    team.aggregate(random_features(graph, 4))
    assert isinstance(team.errors[0], BarrierError)
    assert "different scales" in str(team.errors[0])


def test_a_magnitude_whose_sums_overflow_has_its_worker_named(graph):
    """No switch hands one out that works: it knows how many are added up at most."""
    plan = plan_of(graph, 3)

    def disturb(direction, worker, frame):
        header = unpack_header(frame)
        if direction == "down" and header.kind is Kind.ADVANCE and worker == 0:
            told = BarrierBody(magnitude=0x7F7FFFFF, plan=plan_id(plan.manifest), round=1)
            return [ADDRESSES.frame(header._replace(dst_id=2).pack(told.pack()))]
        return [frame]

    team = Team(plan, pace=QUICK, disturb=disturb)
    team.aggregate(random_features(graph, 4))
    assert isinstance(team.errors[0], MagnitudeError)
    assert "worker 2 reports features of up to 3.40282e+38" in str(team.errors[0])
    assert "overflows float32" in str(team.errors[0])
