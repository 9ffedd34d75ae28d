# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that outlive their session, or begin it twice, end with its name."""

import time

import pytest

from switchgnn.host.innetwork.errors import (
    ExchangeTimeoutError,
    RoundMismatchError,
    SessionMismatchError,
)
from switchgnn.host.wire.header import LAST_ROUND, Kind, unpack_header
from tests.host.addresses import SESSION
from tests.host.innetwork.test_exchange import (
    QUICK,
    STEADY,
    Team,
    check_rounds,
    plan_of,
    random_features,
)
from tests.support.speed import seconds_here


def test_the_last_round_of_a_session(graph):
    plan = plan_of(graph, 2)
    team = Team(plan, pace=QUICK, first_round=LAST_ROUND)
    check_rounds(team, graph, 4, rounds=1)
    team.aggregate(random_features(graph, 4))
    assert {type(error) for error in team.errors.values()} == {RoundMismatchError}
    assert "All 16,777,215 rounds" in str(team.errors[0])


@pytest.mark.parametrize(("before", "after"), [(1, 2), (255, 256), (300, 511)])
def test_a_newer_session_ends_a_worker(graph, before, after):
    """Packets carry 8 bits of it, which wrap."""
    plan = plan_of(graph, 2)
    team = Team(plan, pace=QUICK, session=before)
    check_rounds(team, graph, 4)
    team.switch.session = after
    team.aggregate(random_features(graph, 4))
    errors = set(map(type, team.errors.values()))
    assert errors == (
        {SessionMismatchError} if (after - before) & 0xFF < 128 else {ExchangeTimeoutError}
    )


def test_an_older_session_is_named_when_the_switch_does_not_answer(graph):
    team = Team(plan_of(graph, 2), pace=QUICK, session=7)
    team.switch.session = 5
    team.aggregate(random_features(graph, 4))
    assert "answers for session 5" in str(team.errors[0])
    assert "worker is in session 7" in str(team.errors[0])


def test_a_process_that_starts_anew_in_the_middle_of_a_round_is_refused(graph):
    """The switch has its sources already; in a later round it may go on."""
    plan = plan_of(graph, 2)
    first = Team(plan, pace=QUICK)
    first.aggregate(random_features(graph, 4), absent=[1])
    again = Team(plan, pace=QUICK)
    again.switch = first.switch
    for worker, exchange in enumerate(again.exchanges):
        exchange._barrier._link.switch = first.switch
        assert exchange._barrier._worker == worker
    again.aggregate(random_features(graph, 4))
    assert isinstance(again.errors[0], RoundMismatchError)


def test_a_newer_session_ends_a_worker_in_the_middle_of_a_block(graph):
    """Its features are dropped; the last barrier's `done`, said again, is what gets an answer."""
    plan = plan_of(graph, 2)
    installed = []

    def disturb(direction, worker, frame):
        header = unpack_header(frame)
        if direction == "up" and header.kind is Kind.FEATURE and not installed:
            installed.append(header)
            team.switch.session = SESSION + 1
        return [frame]

    team = Team(plan, pace=STEADY, disturb=disturb)
    began = time.monotonic()
    team.aggregate(random_features(graph, 4))
    assert {type(error) for error in team.errors.values()} == {SessionMismatchError}
    assert time.monotonic() - began < seconds_here(STEADY.patience) / 2
