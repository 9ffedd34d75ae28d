"""Which sums a receiver recalls, which features it fetches, and which fetches are answered."""

from functools import cache

import numpy as np
import pytest

from switchgnn.host.base.pace import Pace
from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.innetwork.receiver import FetchedFeatures, SumReceiver
from switchgnn.host.innetwork.responder import Responder
from switchgnn.host.innetwork.schedule import block_schedules
from switchgnn.host.wire import header as wire
from switchgnn.planner import build_plan, load_graph
from tests.host.addresses import ADDRESSES, SESSION, Recorder

AT_ONCE = 16
OTHER_POOL = wire.in_pool(0, 1)


@cache
def schedule_of(rows):
    options = {"workers": 2, "slots": 512, "program": "ab" * 32, "lanes": wire.LANES // rows}
    plan = build_plan(load_graph("digits"), **options, rows=rows)
    return max(
        block_schedules(plan.workers[0], ADDRESSES, 4, SESSION, rows),
        key=lambda each: len(each.receive_vertex),
    )


class Asking:
    """A receiver that nothing comes to by itself, and a clock."""

    def __init__(self, schedule):
        self.now = 1.0
        self.link = Recorder()
        self.schedule = schedule
        endpoint = Endpoint(0, SESSION, self.link, ADDRESSES, Pace())
        self.round_trip = endpoint.round_trip
        self.receiver = SumReceiver(
            endpoint, schedule, unit=wire.Unit(1, schedule.block_id, 0), began=self.now
        )

    def time_out(self):
        before = len(self.link.sent)
        while not self.receiver.ask_for_what_is_late(self.now):
            self.now += 0.001
        return self.link.sent[before:]

    def missing(self, asked, *, count=0):
        """Answer that a sum is not complete; return what is asked for then."""
        before = len(self.link.sent)
        self.receiver.take_missing(
            wire.Header(kind=wire.Kind.MISSING, dst_id=asked.dst_id, count=count), self.now
        )
        return self.link.sent[before:]

    def sum(self, asked, *, is_fetch=True):
        """Bring a sum, on request or by itself; return what is asked for then."""
        before = len(self.link.sent)
        index = self.schedule.receive_index[asked.dst_id]
        count, vertex = int(self.schedule.receive_count[index]), asked.dst_id
        body = np.zeros(wire.FEATURE_FRAME_BYTES, dtype=np.uint8)
        if self.schedule.rows > 1:
            places = np.array([index, *[wire.NO_PLACE] * (wire.PLACES - 1)], dtype=">u2")
            body[wire.BODY_AT : wire.BODY_AT + places.nbytes] = places.view(np.uint8)
            count, vertex = 1, wire.SUM_BUNDLES
        header = wire.Header(kind=wire.Kind.SUM, dst_id=vertex, count=count, is_fetch=is_fetch)
        assert self.receiver.take_sum(header, memoryview(body), self.now)
        return self.link.sent[before:]


@pytest.fixture
def asking():
    assert len(schedule_of(1).receive_vertex) > 4 * AT_ONCE
    return Asking(schedule_of(1))


def test_one_at_a_time_is_asked_for_until_sums_stand_still(asking):
    """Another worker that does not run for some milliseconds is no reason to ask for all."""
    asking.round_trip.measured(0.0005)
    began, asked = asking.now, set()
    while len(out := asking.time_out()) == 1:
        asked.add(out[0].dst_id)
        assert asking.missing(out[0]) == []
    assert len(out) == AT_ONCE
    assert 1 < len(asked) <= 8
    assert asking.now - began > 0.05


def test_an_unanswered_question_is_repeated(asking):
    asking.round_trip.measured(0.0005)
    assert len({asking.time_out()[0].dst_id for _ in range(3)}) == 1


@pytest.mark.parametrize("rows", [2, 4])
def test_as_many_sums_as_a_bundle_has_show_a_loss(rows):
    """Fewer may be complete and wait in the switch for the rest of their bundle."""
    asking = Asking(schedule_of(rows))
    asking.round_trip.measured(0.0005)
    for last in (rows - 1, rows - 1, rows):
        (asked,) = asking.time_out()
        out = [asked]
        for _ in range(last):
            out += asking.sum(out.pop(0))
        asking.sum(out[0], is_fetch=False)
    assert len(out) == AT_ONCE
    assert len(asking.time_out()) == AT_ONCE


def test_a_lost_sum_lets_the_others_be_asked_for(asking):
    out = list(asking.time_out())
    most, asked = 0, set()
    while out:
        most = max(most, len(out))
        answered = out.pop(0)
        asked.add(answered.dst_id)
        out += asking.sum(answered)
    assert most == AT_ONCE
    assert asking.receiver.done
    assert len(asked) == len(asking.link.sent) == len(asking.schedule.receive_vertex)


def test_a_sum_that_comes_by_itself_shows_nothing(asking):
    (asked,) = asking.time_out()
    assert asking.sum(asked, is_fetch=False) == []


def test_a_sum_that_is_here_is_not_asked_for(asking):
    (asked,) = asking.time_out()
    others = [vertex for vertex in asking.receiver.missing_vertices if vertex != asked.dst_id]
    for vertex in others[:-1]:
        asking.sum(wire.Header(kind=wire.Kind.RECALL, dst_id=vertex), is_fetch=False)
    assert [header.dst_id for header in asking.sum(asked)] == others[-1:]


def test_questions_out_are_at_most_sixteen(asking):
    """MISSING is no sum: who asked for parts waits for them before asking for more."""
    asking.time_out()
    out = asking.time_out()
    for asked in out:
        assert asking.missing(asked) == []
    assert len(asking.sum(out[0])) == 1
    assert len(asking.sum(out[1])) == 1


def test_losses_are_not_forgotten(asking):
    """In this block, packets get lost: from now on many are asked for at once, with their parts."""
    (asked,) = asking.time_out()
    assert not asked.resend
    assert all(header.resend for header in asking.sum(asked))
    later = asking.time_out()
    assert len(later) == AT_ONCE
    assert all(header.resend for header in later)


def test_parts_are_asked_for_when_a_question_was_in_vain(asking):
    (asked,) = asking.time_out()
    asking.missing(asked)
    assert all(header.resend for header in asking.time_out())


def test_progress_makes_the_next_question_a_first_one(asking):
    for asked in asking.time_out():
        asking.missing(asked)
    asking.sum(asking.time_out()[0], is_fetch=False)
    (asked,) = asking.time_out()
    assert not asked.resend


WORDS = wire.fragment_words(2 * wire.LANES, wire.LANES)


def feature(source, fragment):
    return np.arange(wire.LANES, dtype=np.int32) * (source + 1) + 1000 * fragment


@pytest.fixture(scope="module")
def small_blocks():
    """Blocks of one worker; some source has sums in several."""
    plan = build_plan(load_graph("karate"), workers=2, slots=6, program="ab" * 32, blocks="mlgp")
    return [
        schedule
        for schedule in block_schedules(plan.workers[0], ADDRESSES, 4, SESSION)
        if len(schedule.receive_vertex)
    ]


def fetch_all(schedule, fetched, *, round_number=1, fragment=0):
    """No sum comes, so all are made of features; return which were fetched, and the sums."""
    link = Recorder()
    receiver = SumReceiver(
        Endpoint(0, SESSION, link, ADDRESSES, Pace()),
        schedule,
        unit=wire.Unit(round_number, schedule.block_id, WORDS[fragment]),
        began=1.0,
        fetched=fetched.of(round_number, fragment),
    )
    for vertex in list(receiver.missing_vertices):
        answer = wire.Header(kind=wire.Kind.MISSING, dst_id=vertex, count=1)
        receiver.take_missing(answer, 9.0)
        receiver.take_missing(answer, 99.0)
    fetches = [header.src_id for header in link.sent if header.kind is wire.Kind.FETCH]
    for source in fetches:
        answer = wire.Header(
            kind=wire.Kind.FEATURE, src_id=source, resend=True, fragment=WORDS[fragment]
        )
        frame = ADDRESSES.frame(answer.pack(feature(source, fragment).astype(">i4").tobytes()))
        receiver.take_feature(answer, memoryview(frame), 99.1)
    assert receiver.done
    assert fetches == [header.src_id for header in link.sent if header.kind is wire.Kind.FETCH]
    return fetches, receiver.sums()


def neighbours(schedule):
    return [schedule.neighbours_of(index) for index in range(len(schedule.receive_vertex))]


def expected(schedule, fragment):
    sums = [sum(feature(source, fragment) for source in each) for each in neighbours(schedule)]
    return np.array(sums)


def sources_of(schedule):
    return set().union(*neighbours(schedule))


def test_later_blocks_fetch_only_what_earlier_ones_did_not(small_blocks):
    fetched, here = FetchedFeatures(), set()
    fewer = 0
    for schedule in small_blocks:
        asked, sums = fetch_all(schedule, fetched)
        assert np.array_equal(sums, expected(schedule, 0))
        # What is here already is asked for once per sum at most, to have its slot released.
        for source in here & set(asked):
            assert asked.count(source) <= len(schedule.receive_vertex)
        assert sources_of(schedule) - here <= set(asked)
        fewer += len(sources_of(schedule) & here)
        here |= sources_of(schedule)
    assert fewer > 0, "no source has sums in two blocks"


def test_a_sum_whose_features_are_all_here_is_made_at_once(small_blocks):
    fetched = FetchedFeatures()
    fetch_all(small_blocks[0], fetched)
    asked, sums = fetch_all(small_blocks[0], fetched)
    assert np.array_equal(sums, expected(small_blocks[0], 0))
    # One for each slot, which is released by it.
    assert len(asked) == len(small_blocks[0].receive_vertex)


def test_other_fragments_and_rounds_are_other_features(small_blocks):
    fetched, schedule = FetchedFeatures(), small_blocks[0]
    fetch_all(schedule, fetched)
    asked, sums = fetch_all(schedule, fetched, fragment=1)
    assert set(asked) == sources_of(schedule)
    assert np.array_equal(sums, expected(schedule, 1))
    asked, _ = fetch_all(schedule, fetched, round_number=2)
    assert set(asked) == sources_of(schedule)


@pytest.mark.parametrize(
    "asked",
    [{}, {"round": 1}, {"round": 3}, {"block_id": 2}, {"fragment": OTHER_POOL}, {"fragment": 1}],
    ids=["this", "earlier", "later", "block", "pool", "width"],
)
def test_only_fetches_of_a_unit_of_the_round_are_answered(asked):
    """Rows of another round would become a wrong sum; no unit of the round has another pool."""
    link = Recorder()
    responder = Responder(Endpoint(0, SESSION, link, ADDRESSES, Pace()), np.array([5]))
    for served in (1, 2):
        responder.serve(served, {(1, 0)}, lambda _request, _row: np.zeros(8, np.int32))
    fetch = wire.Header(kind=wire.Kind.FETCH, src_id=5, dst_id=7, block_id=1, round=2)
    responder.answer(fetch._replace(**asked))
    assert len(link.sent) == (not asked)
