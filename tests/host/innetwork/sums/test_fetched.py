# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A feature that was fetched serves all sums of its round, and of no other."""

import numpy as np
import pytest

from switchgnn.host.innetwork.endpoint import new_endpoint
from switchgnn.host.innetwork.receiver import FetchedFeatures, SumReceiver
from switchgnn.host.innetwork.schedule import block_schedules
from switchgnn.host.pace import Pace
from switchgnn.host.wire.header import LANES, Header, Kind, fragment_words, unpack_header
from switchgnn.planner.build import build_plan
from switchgnn.planner.graphs.load import load_graph
from tests.host.addresses import ADDRESSES, SESSION

WORDS = fragment_words(2 * LANES, LANES)


class Owners:
    """A link to workers who answer each fetch at once, unless their answer is lost."""

    name = "owners"

    def __init__(self, fragment):
        self.fetches = []
        self.answers = []
        self._fragment = fragment

    def send(self, frame):
        header = unpack_header(frame)
        if header.kind is Kind.FETCH:
            self.fetches.append(header.src_id)
            answer = Header(
                kind=Kind.FEATURE, src_id=header.src_id, resend=True, fragment=header.fragment
            )
            body = feature(header.src_id, self._fragment).astype(">i4").tobytes()
            self.answers.append((answer, memoryview(ADDRESSES.frame(answer.pack(body)))))


def feature(source, fragment):
    return np.arange(LANES, dtype=np.int32) * (source + 1) + 1000 * fragment


@pytest.fixture(scope="module")
def schedules():
    """Blocks of one worker; some source has sums in several."""
    plan = build_plan(load_graph("karate"), workers=2, slots=6, program="ab" * 32, blocks="mlgp")
    return [
        schedule
        for schedule in block_schedules(plan.workers[0], ADDRESSES, 4, SESSION)
        if len(schedule.receive_vertex)
    ]


def fetch_all(schedule, fetched, *, round_number=1, fragment=0):
    """No sum comes, so all are made of features; return which were fetched, and the sums."""
    link = Owners(fragment)
    receiver = SumReceiver(
        new_endpoint(0, SESSION, link, ADDRESSES, Pace()),
        schedule,
        place=(round_number, schedule.block_id, WORDS[fragment]),
        began=1.0,
        fetched=fetched.of(round_number, fragment),
    )
    for vertex in list(receiver.missing_vertices):
        answer = Header(kind=Kind.MISSING, dst_id=vertex, count=1)
        receiver.take_missing(answer, 9.0)
        receiver.take_missing(answer, 99.0)
    asked = len(link.answers)
    for answer in link.answers:
        receiver.take_feature(*answer, 99.1)
    assert receiver.done
    assert len(link.answers) == asked
    return link.fetches, receiver.sums()


def expected(schedule, fragment):
    places = range(len(schedule.receive_vertex))
    return np.array(
        [
            sum(feature(source, fragment) for source in schedule.neighbours_of(place))
            for place in places
        ]
    )


def sources_of(schedule):
    return {
        source
        for place in range(len(schedule.receive_vertex))
        for source in schedule.neighbours_of(place)
    }


def test_later_blocks_fetch_only_what_earlier_ones_did_not(schedules):
    fetched, here = FetchedFeatures(), set()
    fewer = 0
    for schedule in schedules:
        asked, sums = fetch_all(schedule, fetched)
        assert np.array_equal(sums, expected(schedule, 0))
        # What is here already is asked for once per sum at most, to have its slot released.
        for source in here & set(asked):
            assert asked.count(source) <= len(schedule.receive_vertex)
        assert sources_of(schedule) - here <= set(asked)
        fewer += len(sources_of(schedule) & here)
        here |= sources_of(schedule)
    assert fewer > 0, "no source has sums in two blocks"


def test_a_sum_whose_features_are_all_here_is_made_at_once(schedules):
    fetched = FetchedFeatures()
    fetch_all(schedules[0], fetched)
    asked, sums = fetch_all(schedules[0], fetched)
    assert np.array_equal(sums, expected(schedules[0], 0))
    # One for each slot, which is released by it.
    assert len(asked) == len(schedules[0].receive_vertex)


def test_other_fragments_and_rounds_are_other_features(schedules):
    fetched, schedule = FetchedFeatures(), schedules[0]
    fetch_all(schedule, fetched)
    asked, sums = fetch_all(schedule, fetched, fragment=1)
    assert set(asked) == sources_of(schedule)
    assert np.array_equal(sums, expected(schedule, 1))
    asked, _ = fetch_all(schedule, fetched, round_number=2)
    assert set(asked) == sources_of(schedule)


def test_what_a_round_has_fetched_goes_with_it():
    fetched = FetchedFeatures()
    fetched.of(1, 0)[3] = np.zeros(LANES, np.int32)
    fetched.of(1, 1)[3] = np.ones(LANES, np.int32)
    assert list(fetched.of(1, 0)) == [3]
    assert not fetched.of(2, 0)
    assert not fetched.of(2, 1)
