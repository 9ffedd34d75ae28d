# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How many sums are recalled at once, and when partial sums of leaves are asked for."""

import pytest

from switchgnn.host.innetwork.endpoint import new_endpoint
from switchgnn.host.innetwork.receiver import SumReceiver
from switchgnn.host.innetwork.schedule import block_schedules
from switchgnn.host.pace import Pace
from switchgnn.host.wire.header import FEATURE_FRAME_BYTES, Header, Kind, unpack_header
from switchgnn.planner.build import build_plan
from switchgnn.planner.graphs.load import load_graph
from tests.host.addresses import ADDRESSES, SESSION

AT_ONCE = 16


class Recalls:
    """A link that keeps the recalls."""

    name = "nowhere"

    def __init__(self):
        self.sent = []

    def send(self, frame):
        header = unpack_header(frame)
        assert header.kind is Kind.RECALL
        self.sent.append(header)


@pytest.fixture(scope="module")
def schedule():
    plan = build_plan(load_graph("digits"), workers=2, slots=512, program="ab" * 32)
    return max(
        block_schedules(plan.workers[0], ADDRESSES, 4, SESSION),
        key=lambda each: len(each.receive_vertex),
    )


class Asking:
    """A receiver that nothing comes to by itself, and a clock."""

    def __init__(self, schedule):
        self.now = 1.0
        self.link = Recalls()
        self.schedule = schedule
        self.receiver = SumReceiver(
            new_endpoint(0, SESSION, self.link, ADDRESSES, Pace()),
            schedule,
            place=(1, schedule.block_id, 0),
            began=self.now,
        )

    def time_out(self):
        """Let the next time-out pass; return what is asked for."""
        before = len(self.link.sent)
        while not self.receiver.ask_for_what_is_late(self.now):
            self.now += 0.001
        return self.link.sent[before:]

    def missing(self, asked, *, count=0):
        """Answer that a sum is not complete; return what is asked for then."""
        before = len(self.link.sent)
        self.receiver.take_missing(
            Header(kind=Kind.MISSING, dst_id=asked.dst_id, count=count), self.now
        )
        return self.link.sent[before:]

    def sum(self, asked, *, is_fetch=True):
        """Bring a sum, on request or by itself; return what is asked for then."""
        before = len(self.link.sent)
        count = self.schedule.receive_count[self.schedule.receive_place[asked.dst_id]]
        header = Header(kind=Kind.SUM, dst_id=asked.dst_id, count=int(count), is_fetch=is_fetch)
        assert self.receiver.take_sum(header, memoryview(bytes(FEATURE_FRAME_BYTES)), self.now)
        return self.link.sent[before:]


@pytest.fixture
def asking(schedule):
    assert len(schedule.receive_vertex) > 4 * AT_ONCE
    return Asking(schedule)


def test_one_is_asked_for_first(asking):
    (asked,) = asking.time_out()
    assert asking.missing(asked) == []
    assert len(asking.time_out()) == AT_ONCE


def test_a_lost_sum_lets_two_more_be_asked_for(asking):
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
        asking.sum(Header(kind=Kind.RECALL, dst_id=vertex), is_fetch=False)
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
