# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Workers agree on what comes next before a feature is sent, and nothing comes out of turn."""

import pytest

from switchgnn.host.innetwork.errors import (
    DisagreementError,
    ExchangeTimeoutError,
    RoundMismatchError,
)
from switchgnn.host.wire.header import Header, Kind
from switchgnn.planner.direction import Direction
from tests.host.addresses import ADDRESSES, SESSION
from tests.host.innetwork.test_exchange import (
    QUICK,
    Team,
    check_rounds,
    one_way_graph,
    plan_of,
    random_features,
)


def told(errors):
    """The one worker that is told with whom it disagrees; the other waits for it."""
    kinds = {type(error): (worker, str(error)) for worker, error in errors.items()}
    assert set(kinds) == {DisagreementError, ExchangeTimeoutError}
    return kinds[DisagreementError]


def test_workers_in_different_directions_are_told():
    plan = plan_of(one_way_graph(), 2, slots=64, directions="both")
    team = Team(plan, pace=QUICK)
    team.aggregate(random_features(one_way_graph(), 4), directions=list(Direction))
    worker, sentence = told(team.errors)
    assert f"worker {1 - worker} goes on with another block or fragment" in sentence
    assert team.total()["features_sent"] == 0


@pytest.mark.parametrize("rounds", [0, 1])
def test_workers_with_features_of_different_widths_are_told(graph, rounds):
    team = Team(plan_of(graph, 2), pace=QUICK)
    check_rounds(team, graph, 4, rounds=rounds)
    features = [random_features(graph, width) for width in (32, 33)]
    parts = team.plan.workers
    team.run(lambda w: team.exchanges[w].aggregate(features[w][parts[w].vertices]))
    worker, sentence = told(team.errors)
    assert f"block 1, fragment 0, worker {1 - worker} goes on" in sentence


def test_a_worker_that_leaves_rounds_out_is_refused(graph):
    team = Team(plan_of(graph, 2), pace=QUICK)
    check_rounds(team, graph, 4, rounds=1)
    team.exchanges[1]._round = 9
    team.aggregate(random_features(graph, 4))
    assert isinstance(team.errors[1], RoundMismatchError)
    assert "the switch, which is in round 2: workers that" in str(team.errors[1])
    assert "--new-session" in str(team.errors[1])


@pytest.mark.parametrize("kind", [Kind.FETCH, Kind.RECALL])
def test_packets_for_later_tags_change_nothing(graph, kind):
    """Each would have released, or taken away, a slot that others are about to need."""
    plan = plan_of(graph, 2)
    team = Team(plan, pace=QUICK)
    part = plan.workers[1]
    link = team.switch.link(1)
    frames = 0
    for round_number in range(2, 4):
        for block in range(1, plan.manifest.blocks + 1):
            for vertex in map(int, part.receive_vertex[block_of(part, block)]):
                header = Header(
                    kind=kind,
                    src_id=vertex,
                    dst_id=vertex,
                    block_id=block,
                    round=round_number,
                    session=SESSION,
                    is_fetch=True,
                )
                link.send(ADDRESSES.frame(header.pack(b"")))
                frames += 1
    assert team.switch.refused == frames > 0
    check_rounds(team, graph, 4, rounds=3)
    assert team.total()["fetches"] == 0


def block_of(part, block):
    return slice(part.receive_indptr[block - 1], part.receive_indptr[block])
