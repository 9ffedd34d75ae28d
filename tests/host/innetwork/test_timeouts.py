"""When questions are asked again, what answers to them show, and which workers are given up."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from switchgnn.host.base.pace import CongestionRule, Pace, RoundTrip
from switchgnn.host.base.silence import HeartbeatBit, SignsOfLife
from switchgnn.host.innetwork.barrier import Barrier, opening
from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.innetwork.errors import ExchangeTimeoutError
from switchgnn.host.innetwork.receiver import SumReceiver
from switchgnn.host.innetwork.responder import Inbox
from switchgnn.host.innetwork.schedule import FeatureFrames
from switchgnn.host.innetwork.sender import FeatureSender
from switchgnn.host.innetwork.units import UnitExchange
from switchgnn.host.wire.header import (
    FRAGMENT_BYTES,
    LANES,
    BarrierBody,
    Header,
    Kind,
    Unit,
    fragment_words,
)
from tests.host.addresses import ADDRESSES, SESSION, Recorder
from tests.host.innetwork.test_fast_path import schedule_of
from tests.support.hand_clock import HandClock

UNIT = Unit(1, 1, 0)
TIMEOUT, PATIENCE = RoundTrip().timeout, Pace().timeout
STEP = 0.001


@pytest.fixture
def receiver():
    endpoint = Endpoint(0, SESSION, Recorder(), ADDRESSES, Pace())
    return SumReceiver(endpoint, schedule_of(1), unit=UNIT, began=1.0)


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
    vertex = receiver.missing_vertices[0] if vertex is None else vertex
    return receiver.take_missing(Header(kind=Kind.MISSING, dst_id=vertex, count=count), now)


def fetches(receiver):
    return [header.src_id for header in receiver._endpoint.link.sent if header.kind is Kind.FETCH]


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
    late = ages > 4 * 8 * TIMEOUT
    assert late.any()
    # The age is that of the moment of asking, so a gap g after age a is (a + g) / 4.
    assert gaps[late] == pytest.approx(np.clip(ages / 4, 0, 1.0)[late], abs=3 * STEP)


def test_a_lost_sum_is_noticed_at_once_in_an_old_block(receiver):
    """And only answers that others are slow make the worker wait for shares of the block's time."""
    receiver._began = -99.0
    asked = np.array(moments(receiver, 1.0, answer=missing))
    assert asked[0] - 1.0 == pytest.approx(TIMEOUT, abs=2 * STEP)
    doubled = TIMEOUT * 2.0 ** np.arange(1, len(asked))
    assert len(doubled) >= 3
    assert np.diff(asked) == pytest.approx(doubled, abs=2 * STEP)


@pytest.mark.parametrize(("gap", "wait"), [(0.002, 0.005), (0.006, 0.012), (1.0, 0.015)])
def test_silence_longer_than_any_between_two_sums_is_noticed(receiver, gap, wait):
    """Twice as long, at least a round trip, at most the usual time; that again for slow workers."""
    receiver._endpoint.round_trip.measured(0.005)
    now = 2.0 + gap
    for came in (2.0, now, now):
        receiver.took(1, came)
    assert receiver.next_timer(now) == pytest.approx(wait)
    (asked,) = moments(receiver, wait + 2 * STEP, start=now, answer=missing)
    assert receiver.next_timer(asked) >= 0.015


def test_recalls_wait_as_long_as_recalled_sums_take(receiver):
    vertex = receiver.missing_vertices[0]
    index = receiver._schedule.receive_index[vertex]
    count = receiver._schedule.receive_count[index]
    receiver._endpoint.clock = HandClock(5.0)
    receiver._ask(index)
    again = Header(kind=Kind.SUM, dst_id=vertex, count=count, is_fetch=True)
    frame = memoryview(ADDRESSES.frame(again.pack(bytes(FRAGMENT_BYTES))))
    assert receiver.take_sum(again, frame, 5.3)
    # RFC 6298 after one measurement: the round trip, and four times half of it.
    assert receiver.next_timer(5.3) == pytest.approx(0.9)


@pytest.mark.parametrize(("age", "still"), [(8.0, 8.0), (10 * PATIENCE, PATIENCE / 2)])
def test_a_slot_must_stand_still_for_half_the_time_of_its_block(receiver, age, still):
    """Or half the patience: after the whole of it the worker gives up."""
    missing(receiver, 1.0 + age, 1)
    missing(receiver, 1.0 + age + 0.95 * still, 1)
    assert not fetches(receiver)
    missing(receiver, 1.0 + age + 1.05 * still, 1)
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
            missing(receiver, now, len(asked), receiver._endpoint.link.sent[-1].dst_id)
        receiver._grew_at = now  # so it asks about one at a time

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
    assert np.diff(moments(receiver, 3, start=18.0))[-1] == pytest.approx(1 / 25, abs=2 * STEP)


def test_who_is_slow_is_not_taken_for_lossy(receiver):
    """The answers to all questions come, each after the last of them: none was lost."""
    moments(receiver, 10)
    for _ in range(10):
        for vertex in receiver.missing_vertices:
            missing(receiver, 11.0, 0, vertex)
    assert receiver._endpoint.round_trip.longest() == pytest.approx(1.0, abs=0.01)


def test_a_repeated_feature_is_a_sign_of_its_owner(receiver):
    """It shows that the worker which still owes others is alive."""
    fetch_everything(receiver, 7.0)
    owed = sorted(receiver._wanted)
    assert take_feature(receiver, owed[0], 17.0)
    assert take_feature(receiver, owed[0], 30.0)
    for source in owed[1:]:
        take_feature(receiver, source, 31.0)
    assert not take_feature(receiver, owed[0], 32.0)


def test_while_sums_grow_nothing_is_fetched(receiver):
    """One slot stands still, because its worker is slow: others show that it goes on."""
    still, grows, comes = receiver.missing_vertices[:3]
    missing(receiver, 9.0, 1, still)
    missing(receiver, 9.0, 1, grows)
    assert missing(receiver, 18.0, 2, grows)
    missing(receiver, 20.0, 1, still)
    assert not fetches(receiver)
    count = receiver._schedule.receive_count[receiver._schedule.receive_index[comes]]
    header = Header(kind=Kind.SUM, dst_id=comes, count=count)
    receiver.take_sum(header, memoryview(ADDRESSES.frame(header.pack(bytes(FRAGMENT_BYTES)))), 27.0)
    missing(receiver, 30.0, 1, still)
    assert not fetches(receiver)
    missing(receiver, 45.0, 1, still)
    assert fetches(receiver)


GROUP = 4


def rows_of(size, block=1):
    frames = FeatureFrames(ADDRESSES, block, np.arange(size, dtype=np.uint32), GROUP, session=1)
    return frames.fill(1, *fragment_words(LANES, LANES), np.zeros((size, LANES), dtype=np.int32))


class Talk:
    """A sender that has asked about its first groups and, nobody answering, asked again."""

    def __init__(self, groups=1, *, asked_again=True):
        rows = rows_of(groups * GROUP)
        endpoint = Endpoint(0, 1, Recorder(), ADDRESSES, Pace(window=2 * GROUP))
        self.round_trip, self.counters = endpoint.round_trip, endpoint.counters
        self.round_trip.measured(0.005)
        self.sender = FeatureSender(endpoint, rows)
        self.asked = 1.0
        self.sender.send_some(self.asked, 0)
        if asked_again:
            self.ask_again()

    def ask_again(self):
        self.sender.repeat_what_is_late(self.asked + 2 * self.round_trip.timeout)
        assert self.counters.probes == 1


def test_two_answers_tell_how_long_the_first_one_took():
    talk = Talk()
    before = talk.round_trip.timeout
    assert talk.sender.take_ack(0, GROUP, talk.asked + 0.06)
    assert talk.round_trip.timeout == before  # it may be the answer to the repetition
    assert talk.sender.done
    assert not talk.sender.take_ack(0, GROUP, talk.asked + 0.08)
    assert talk.round_trip.timeout > 0.06


def test_a_question_that_a_later_one_overtook_was_lost():
    """A network that loses packets may double some: the two answers are one."""
    talk = Talk(groups=2, asked_again=False)
    assert talk.sender.take_ack(1, GROUP, talk.asked + 0.005)
    talk.ask_again()
    before = talk.round_trip.timeout
    assert talk.sender.take_ack(0, GROUP, talk.asked + 0.06)
    assert not talk.sender.take_ack(0, GROUP, talk.asked + 0.06)
    assert talk.round_trip.timeout == before


def test_an_answer_that_features_are_missing_tells_how_long_it_took():
    """On a link that loses many, most answers say so."""
    talk = Talk(asked_again=False)
    before = talk.round_trip.timeout
    assert talk.sender.take_ack(0, GROUP - 1, talk.asked + 0.06)
    assert talk.round_trip.timeout > before + 0.01


def test_an_answer_without_a_question_tells_nothing():
    talk = Talk(groups=3, asked_again=False)
    before = talk.round_trip.timeout
    talk.sender.take_ack(2, GROUP - 1, talk.asked + 0.06)
    assert talk.round_trip.timeout == before


def test_three_later_answers_show_a_loss_and_twice_as_many_after_an_error():
    endpoint = Endpoint(
        0, 1, Recorder(), ADDRESSES, Pace(window=64, congestion=CongestionRule.NONE)
    )
    endpoint.round_trip.measured(0.005)
    needed = []
    for probes in (1, 2):
        sender = FeatureSender(endpoint, rows_of(64))
        sender.send_some(1.0, 0)
        answered = (each for each in range(1, 8) if sender.take_ack(each, 8, 1.002))
        needed.append(next(each for each in answered if endpoint.counters.probes == probes))
        assert [sender.take_ack(0, 8, 1.003) for _ in range(2)] == [True, False]
    assert needed == [3, 6]


def test_silence_repeats_only_the_last_question():
    """Its answer shows which others were lost; a switch that is only slow is not asked them all."""
    talk = Talk(groups=2, asked_again=False)
    for _ in range(10):
        talk.asked += 2.0
        talk.sender.repeat_what_is_late(talk.asked)
    (questions,) = {bytes(frame) for frame in talk.sender._link.frames[2 * GROUP :]}
    assert questions == bytes(talk.sender._rows.frame(2 * GROUP - 1))
    assert talk.counters.probes == 10
    talk.sender.take_ack(1, GROUP, talk.asked + 0.005)
    assert talk.counters.probes == 11


PACE = Pace(timeout=20.0)


class TestSigns:
    """Of three workers 0 asks."""

    def test_a_heartbeat_that_changes_is_a_sign(self):
        signs = SignsOfLife(3)
        for now, heartbeats in ((0, 0b100), (9, 0b000), (18, 0b100), (27, 0b100)):
            signs.take(0b001, heartbeats, float(now))
        assert signs.silent(20.0, 27.0) == [1]
        assert signs.silent(20.0, 38.5) == [1, 2]

    def test_silence_begins_with_the_first_answer(self):
        signs = SignsOfLife(3)
        assert not signs.awaited
        signs.take(0b001, 0, 100.0)
        assert signs.awaited
        assert signs.silent(20.0, 119.0) == []
        assert signs.silent(20.0, 121.0) == [1, 2]

    def test_who_is_done_is_not_awaited(self):
        signs = SignsOfLife(3)
        signs.take(0b001, 0, 0.0)
        signs.take(0b101, 0, 30.0)
        assert signs.silent(20.0, 30.0) == [1]
        # A switch that was restarted has forgotten who was done.
        signs.take(0b001, 0, 31.0)
        assert signs.silent(20.0, 31.0) == [1]
        signs.take(0b111, 0, 32.0)
        assert not signs.awaited


@pytest.mark.parametrize("speaks", [0.001, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("asks", [0.03, 0.5, 1.0])
def test_who_asks_once_per_beat_sees_each_change(speaks, asks):
    """In beats; in whatever step the two are, a change is seen every few of them."""
    for phase in (0.0, 0.37, 0.999):
        heartbeat, signs, said = HeartbeatBit(1.0), SignsOfLife(2), 0.0
        latest = heartbeat.bit(said)
        for question in range(1, int(100 / asks)):
            now = question * asks + phase
            while said + speaks <= now:
                said += speaks
                latest = heartbeat.bit(said)
            signs.take(0b01, latest << 1, now)
            assert not signs.silent(6.0, now), (phase, now)


def wait_in_barrier(heartbeats, *, block, seconds, pace=PACE):
    """Wait in a barrier where worker 1 is not done for so long.

    `heartbeats`: what the switch says at a time; None: nothing. Returns the time that passed, by a
    clock that moves on only while the worker waits, and how often the worker repeated `done`.
    """
    clock = HandClock(1000.0)
    link, asked = SimpleNamespace(name="model:0"), []
    link.send = lambda frame: asked.append(bytes(frame))

    def receive(longest):
        passed = clock.seconds - 1000.0
        over = passed > seconds
        if not asked or (heartbeats is None and not over):
            clock.seconds += longest + 1e-9
            return None
        asked.clear()
        clock.seconds += STEP
        body = BarrierBody(
            plan=5,
            round=1,
            workers=0b11 if over else 0b01,
            heartbeats=None if over else heartbeats(passed),
        )
        kind = Kind.ADVANCE if over else Kind.WAITING
        header = Header(kind=kind, session=SESSION, round=1, block_id=block, fragment=0)
        return memoryview(ADDRESSES.frame(header.pack(body.pack())))

    link.receive = receive
    endpoint = Endpoint(0, SESSION, link, ADDRESSES, pace, clock=clock)
    barrier, inbox = Barrier(endpoint, workers=2, pools=1, plan_id=5), Inbox(endpoint, None, None)
    barrier.report(Unit(1, block, 0), opening(0))
    while barrier.pending:
        frame = link.receive(max(0.0, barrier.tend()))
        if frame is not None:
            barrier.heed(*inbox.open(frame))
    return clock.seconds - 1000.0, endpoint.counters.barriers_repeated


def test_a_done_without_answer_backs_off_and_one_that_is_answered_does_not():
    _, unanswered = wait_in_barrier(None, block=1, seconds=10.0)
    assert 1 < unanswered <= 8 + 10 / PACE.heartbeat_interval
    _, answered = wait_in_barrier(lambda _: 0, block=1, seconds=10.0)
    assert answered >= 10 / (8 * TIMEOUT)


@pytest.mark.parametrize("block", [0, 1])
def test_who_is_alive_is_waited_for(block):
    """Ten times the patience, with a sign of life that comes once in its half."""
    passed, _ = wait_in_barrier(lambda now: int(now / 10) % 2 << 1, block=block, seconds=200.0)
    assert 200.0 < passed < 202.0


@pytest.mark.parametrize(("block", "skew", "longest"), [(0, 0, 20), (0, 50, 70), (1, 50, 20)])
def test_who_is_silent_is_given_up(block, skew, longest):
    """From the last sign on; who may be computing has longer."""
    began = []

    def heartbeats(now):
        began.append(now)
        return (now > 5.0) << 1

    with pytest.raises(ExchangeTimeoutError, match=f"waited {longest} s, .* for worker 1[.]"):
        wait_in_barrier(
            heartbeats, block=block, seconds=900.0, pace=replace(PACE, skew=float(skew))
        )
    assert longest + 4.0 < began[-1] < longest + 7.0


@pytest.mark.parametrize("kind", [Kind.SUM, Kind.FEATURE, Kind.ACK])
@pytest.mark.parametrize("fragment", fragment_words(16, 8))
def test_what_overtakes_the_advance_is_kept(kind, fragment):
    """The others have gone on; what comes for the next fragment comes only once."""
    endpoint = Endpoint(0, SESSION, Recorder(), ADDRESSES, PACE)
    inbox = Inbox(endpoint, None, None)
    barrier = Barrier(endpoint, workers=2, pools=1, plan_id=1)
    units = UnitExchange(endpoint, inbox, barrier=barrier, pools=1)
    units._newest = UNIT
    packet = Header(kind=kind, round=1, block_id=1, fragment=fragment), memoryview(b"")
    assert not units._take(packet, 1.0)
    assert bool(inbox.take_kept()) == (fragment > 0 and kind is not Kind.ACK)


def test_a_unit_begins_when_the_older_ones_are_sent():
    """Repetitions of the older one leave room in the window, which its other features need."""
    endpoint = Endpoint(0, 1, Recorder(), ADDRESSES, Pace(window=2 * GROUP))
    barrier = Barrier(endpoint, workers=2, pools=2, plan_id=1)
    units = UnitExchange(endpoint, Inbox(endpoint, None, None), barrier=barrier, pools=2)
    older, later = (
        SimpleNamespace(sender=FeatureSender(endpoint, rows_of(3 * GROUP, block)))
        for block in (1, 2)
    )
    units._in_flight = [older, later]
    units._send_some(1.0)
    older.sender.take_ack(0, GROUP - 1, 1.1)
    older.sender.take_ack(1, GROUP, 1.1)
    units._send_some(1.1)
    assert (older.sender.unconfirmed, later.sender.in_flight) == (2 * GROUP, 0)
    older.sender.take_ack(0, GROUP, 1.2)
    units._send_some(1.2)
    assert (older.sender.all_sent, later.sender.in_flight) == (True, GROUP)
