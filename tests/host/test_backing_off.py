# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Questions without an answer back off; an answer says that there is no need to."""

from types import SimpleNamespace

import numpy as np
import pytest

from switchgnn.host import barrier as barrier_module
from switchgnn.host.addresses import Addresses
from switchgnn.host.barrier import Barrier
from switchgnn.host.errors import ExchangeTimeoutError
from switchgnn.host.header import BarrierBody, Header, Kind, unpack_header
from switchgnn.host.inbox import Inbox
from switchgnn.host.pace import Pace
from switchgnn.host.receiver import SumReceiver
from switchgnn.host.round_trip import RoundTrip
from switchgnn.host.schedule import block_schedules
from switchgnn.host.tally import Tally
from switchgnn.planner.build import build_plan
from switchgnn.planner.load import load_graph

ADDRESSES = Addresses("02:00:00:00:00:01", "10.0.0.1", "02:00:00:00:ff:fe", "10.0.255.254")
PLACE = (1, 1, 0)
TIMEOUT = RoundTrip().timeout
STEP = 0.001


class Recorder:
    """A link that keeps what is sent."""

    name = "nowhere"

    def __init__(self):
        self.sent = []

    def send(self, frame):
        self.sent.append(unpack_header(frame))


@pytest.fixture(scope="module")
def schedule():
    plan = build_plan(load_graph("karate"), workers=2, slots=64, program="ab" * 32)
    return block_schedules(plan.workers[0], ADDRESSES, 4)[0]


@pytest.fixture
def receiver(schedule):
    return SumReceiver(
        Recorder(), ADDRESSES, schedule, place=PLACE, round_trip=RoundTrip(), tally=Tally()
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


def missing(receiver, now):
    vertex = receiver.missing_vertices[0]
    receiver.take_missing(Header(kind=Kind.MISSING, dst_id=vertex, count=0), now)


def fetch_everything(receiver, now):
    """The slots stand still for so long that the features are fetched."""
    for vertex in receiver.missing_vertices:
        answer = Header(kind=Kind.MISSING, dst_id=vertex, count=1)
        receiver.take_missing(answer, now)
        receiver.take_missing(answer, now + 10)


def test_without_answers_recalls_back_off(receiver):
    gaps = np.diff(moments(receiver, 6))
    assert gaps[0] == pytest.approx(2 * TIMEOUT, abs=2 * STEP)
    assert gaps[-1] == pytest.approx(1.0, abs=2 * STEP)


def test_with_answers_they_do_only_a_little(receiver):
    gaps = np.diff(moments(receiver, 6, answer=missing))
    assert gaps.max() <= 8 * TIMEOUT + 2 * STEP
    assert len(gaps) > 10


def test_a_fetched_feature_makes_the_others_due(receiver):
    moments(receiver, 6)
    fetch_everything(receiver, 7.0)
    source = next(header.src_id for header in receiver._link.sent if header.kind is Kind.FETCH)
    frame = ADDRESSES.frame(Header(kind=Kind.FEATURE, src_id=source, resend=True).pack(bytes(128)))
    assert receiver.take_feature(Header(kind=Kind.FEATURE, src_id=source), memoryview(frame), 17.0)
    assert receiver.next_timer(17.0) <= TIMEOUT + STEP


def repeated_dones(monkeypatch, answer):
    """How often `done` is sent within 10 s of a clock that only waiting moves on."""
    clock = SimpleNamespace(now=0.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(barrier_module, "time", clock)
    link = Recorder()
    answered = [0]

    def receive(seconds):
        if answer is not None and len(link.sent) > answered[0]:
            answered[0] = len(link.sent)
            clock.now += STEP
            frame = ADDRESSES.frame(answer.pack(BarrierBody(magnitude=0, plan=5).pack()))
            return memoryview(frame)
        clock.now += seconds + 1e-9
        return None

    link.receive = receive
    tally = Tally()
    barrier = Barrier(
        link,
        Inbox(link, None, tally),
        ADDRESSES,
        Pace(patience=10.0),
        RoundTrip(),
        tally=tally,
        worker=0,
        workers=2,
        plan_id=5,
    )
    with pytest.raises(ExchangeTimeoutError):
        barrier.close_block(*PLACE)
    return tally.barriers_repeated


def test_a_done_without_answer_backs_off(monkeypatch):
    assert repeated_dones(monkeypatch, None) <= 16


def test_a_worker_that_is_told_to_wait_asks_on(monkeypatch):
    waiting = Header(kind=Kind.WAITING, round=1, block_id=1, fragment=0)
    assert repeated_dones(monkeypatch, waiting) >= 10 / (8 * TIMEOUT)
