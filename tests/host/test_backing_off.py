# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Questions without an answer back off; an answer says that there is no need to."""

import numpy as np
import pytest

from switchgnn.host.innetwork.barrier import NEXT_ROUND, Barrier
from switchgnn.host.innetwork.endpoint import new_endpoint
from switchgnn.host.innetwork.errors import ExchangeTimeoutError
from switchgnn.host.innetwork.receiver import SumReceiver
from switchgnn.host.innetwork.responder import Inbox
from switchgnn.host.innetwork.schedule import block_schedules
from switchgnn.host.pace import Pace
from switchgnn.host.round_trip import RoundTrip
from switchgnn.host.wire.header import FRAGMENT_BYTES, BarrierBody, Header, Kind
from switchgnn.planner.build import build_plan
from switchgnn.planner.graphs.load import load_graph
from tests.host.addresses import ADDRESSES, SESSION, Recorder
from tests.support.hand_clock import HandClock

PLACE = (1, 1, 0)
TIMEOUT = RoundTrip().timeout
STEP = 0.001


@pytest.fixture(scope="module")
def schedule():
    plan = build_plan(load_graph("karate"), workers=2, slots=64, program="ab" * 32)
    return block_schedules(plan.workers[0], ADDRESSES, 4, SESSION)[0]


@pytest.fixture
def receiver(schedule):
    return SumReceiver(
        new_endpoint(0, SESSION, Recorder(), ADDRESSES, Pace()), schedule, place=PLACE, began=1.0
    )


def moments(receiver, seconds, *, start=1.0, answer=None):
    """When it asks, within so many seconds; `answer` is called after each question."""
    asked = []
    for tick in range(int(seconds / STEP)):
        now = start + tick * STEP
        if receiver.ask_for_what_is_late(now):
            asked.append(now)
            if answer is not None:
                answer(receiver, now)
    return asked


def missing(receiver, now, count=0, vertex=None):
    """Answer that a sum, by default the first one, is incomplete."""
    vertex = receiver.missing_vertices[0] if vertex is None else vertex
    return receiver.take_missing(Header(kind=Kind.MISSING, dst_id=vertex, count=count), now)


def fetches(receiver):
    """The sources of all fetches."""
    sent = receiver._endpoint.link.sent
    return [header.src_id for header in sent if header.kind is Kind.FETCH]


def fetch_everything(receiver, now):
    """The slots stand still for so long that the features are fetched."""
    for vertex in receiver.missing_vertices:
        missing(receiver, now, 1, vertex)
        missing(receiver, now + 10, 1, vertex)


def take_feature(receiver, source, now):
    header = Header(kind=Kind.FEATURE, src_id=source, resend=True)
    return receiver.take_feature(header, memoryview(ADDRESSES.frame(header.pack(bytes(128)))), now)


def test_without_answers_recalls_back_off(receiver):
    gaps = np.diff(moments(receiver, 6))
    assert gaps[0] == pytest.approx(2 * TIMEOUT, abs=2 * STEP)
    assert gaps[-1] == pytest.approx(1.0, abs=2 * STEP)


def test_with_answers_they_do_only_a_little(receiver):
    asked = np.array(moments(receiver, 1.5, answer=missing))
    assert np.diff(asked).max() <= 8 * TIMEOUT + 2 * STEP
    assert len(asked) >= 5


def test_a_slow_block_is_asked_about_in_shares_of_its_time(receiver):
    """The longer it has taken, the longer the silence before a question: up to a second."""
    asked = np.array(moments(receiver, 12, answer=missing))
    gaps, ages = np.diff(asked), asked[1:] - 1.0
    expected = np.clip(ages / 4, 0, 1.0)
    late = ages > 4 * 8 * TIMEOUT
    assert late.any()
    # The age is that of the moment of asking, so a gap g after age a is (a + g) / 4.
    assert gaps[late] == pytest.approx(expected[late], abs=3 * STEP)


def test_a_slot_must_stand_still_for_half_the_time_of_its_block(receiver):
    missing(receiver, 9.0, 1)
    missing(receiver, 9.0 + 7.9, 1)
    assert not fetches(receiver)
    missing(receiver, 9.0 + 8.1, 1)
    assert fetches(receiver)


def test_a_fetched_feature_makes_the_others_due(receiver):
    moments(receiver, 6)
    fetch_everything(receiver, 7.0)
    receiver._began = 17.0  # only the backing off is looked at
    assert take_feature(receiver, fetches(receiver)[0], 17.0)
    assert receiver.next_timer(17.0) <= TIMEOUT + STEP


def test_recalls_that_get_lost_are_sent_more_often(receiver):
    """Where one in eight comes back, a second holds eight, after a first that waits for others."""
    asked = []

    def now_and_then(receiver, now):
        asked.append(now)
        if len(asked) % 8 == 0:
            missing(receiver, now, len(asked))

    moments(receiver, 60, answer=now_and_then)
    gaps = np.diff(asked[-41:])
    assert (np.abs(gaps - 1 / 8) < 0.01).sum() == 35
    assert (np.abs(gaps - 1.0) < 0.01).sum() == 5


def test_fetches_are_sent_more_often_still(receiver):
    """A fetch and its answer take two ways each as long as that of a recall."""
    round_trip = receiver._endpoint.round_trip
    fetch_everything(receiver, 7.0)
    for _ in range(40):
        round_trip.measured(0.0001)
        round_trip.took(5)
    gaps = np.diff(moments(receiver, 3, start=18.0))
    assert gaps[-1] == pytest.approx(1 / 25, abs=2 * STEP)


def test_who_is_slow_is_not_taken_for_lossy(receiver):
    """The answers to all questions come, each after the last of them: none was lost."""
    moments(receiver, 10)
    for _ in range(10):
        for vertex in receiver.missing_vertices:
            missing(receiver, 11.0, 0, vertex)
    assert receiver._endpoint.round_trip.longest() == pytest.approx(1.0, abs=0.01)


def test_questions_that_are_answered_at_once_are_sent_as_seldom_as_before():
    round_trip = RoundTrip()
    for _ in range(40):
        round_trip.took(8)
    for _ in range(40):
        round_trip.took(1)
    assert round_trip.longest() == pytest.approx(1.0, abs=0.01)


def test_a_repeated_feature_is_a_sign_of_its_owner(receiver):
    """It shows that the worker which still owes others is alive."""
    fetch_everything(receiver, 7.0)
    owed = sorted(receiver._wanted)
    assert take_feature(receiver, owed[0], 17.0)
    assert take_feature(receiver, owed[0], 30.0)
    for source in owed[1:]:
        take_feature(receiver, source, 31.0)
    assert not take_feature(receiver, owed[0], 32.0)


def test_who_has_waited_for_half_its_patience_fetches(receiver):
    """However long the block has taken: after the whole of it the worker gives up."""
    patience = receiver._endpoint.pace.patience
    began = 1.0 + 10 * patience
    missing(receiver, began, 1)
    missing(receiver, began + 0.45 * patience, 1)
    assert not fetches(receiver)
    missing(receiver, began + 0.55 * patience, 1)
    assert fetches(receiver)


def test_while_sums_grow_nothing_is_fetched(receiver):
    """One slot stands still, because its worker is slow: others show that it goes on."""
    still, grows, comes = receiver.missing_vertices[:3]
    missing(receiver, 9.0, 1, still)
    missing(receiver, 9.0, 1, grows)
    assert missing(receiver, 18.0, 2, grows)
    missing(receiver, 20.0, 1, still)
    assert not fetches(receiver)
    place = receiver._schedule.receive_place[comes]
    count = receiver._schedule.receive_count[place]
    body = bytes(FRAGMENT_BYTES)
    header = Header(kind=Kind.SUM, dst_id=comes, count=count)
    receiver.take_sum(header, memoryview(ADDRESSES.frame(header.pack(body))), 27.0)
    missing(receiver, 30.0, 1, still)
    assert not fetches(receiver)
    missing(receiver, 45.0, 1, still)
    assert fetches(receiver)


def repeated_dones(answer):
    """How often `done` is sent within 10 s of a clock that only waiting moves on."""
    clock = HandClock(0.0)
    link = Recorder()
    answered = [0]

    def receive(seconds):
        if answer is not None and len(link.sent) > answered[0]:
            answered[0] = len(link.sent)
            clock.seconds += STEP
            frame = ADDRESSES.frame(answer.pack(BarrierBody(magnitude=0, plan=5, pulses=0).pack()))
            return memoryview(frame)
        clock.seconds += seconds + 1e-9
        return None

    link.receive = receive
    endpoint = new_endpoint(0, SESSION, link, ADDRESSES, Pace(patience=10.0), clock=clock)
    barrier = Barrier(endpoint, Inbox(endpoint, None, None), workers=2, plan_id=5)
    with pytest.raises(ExchangeTimeoutError):
        barrier.close_block(PLACE, NEXT_ROUND)
    return endpoint.tally.barriers_repeated


def test_a_done_without_answer_backs_off():
    assert repeated_dones(None) <= 8 + 10 / Pace().beat


def test_a_worker_that_is_told_to_wait_asks_on():
    waiting = Header(kind=Kind.WAITING, session=SESSION, round=1, block_id=1, fragment=0)
    assert repeated_dones(waiting) >= 10 / (8 * TIMEOUT)
