# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a sender learns from answers to repeated questions."""

import numpy as np
import pytest

from switchgnn.host.innetwork.block import FeatureSender
from switchgnn.host.innetwork.endpoint import new_endpoint
from switchgnn.host.innetwork.schedule import FeatureFrames
from switchgnn.host.pace import Pace
from switchgnn.host.wire.header import LANES, fragment_words
from tests.host.addresses import ADDRESSES

GROUP = 4
# Of the first group: all of its features are through.
ACK = (0, GROUP)


class Sink:
    name = "nowhere"

    def send(self, frame):
        pass

    def send_rows(self, rows, first, count):
        pass


class Talk:
    """A sender that has asked about its first groups and, nobody answering, asked again."""

    def __init__(self, groups=1, *, asked_again=True):
        size = groups * GROUP
        frames = FeatureFrames(ADDRESSES, 1, np.arange(size, dtype=np.uint32), GROUP, session=1)
        rows = frames.fill(
            1, *fragment_words(LANES, LANES), np.zeros((size, LANES), dtype=np.int32)
        )
        endpoint = new_endpoint(0, 1, Sink(), ADDRESSES, Pace(window=2 * GROUP))
        self.round_trip, self.tally = endpoint.round_trip, endpoint.tally
        self.round_trip.measured(0.005)
        self.sender = FeatureSender(endpoint, rows)
        self.asked = 1.0
        self.sender.send_some(self.asked)
        if asked_again:
            self.ask_again()

    def ask_again(self):
        self.sender.repeat_what_is_late(self.asked + 2 * self.round_trip.timeout)
        assert self.tally.probes == 1


@pytest.fixture
def talk():
    return Talk()


def test_two_answers_tell_how_long_the_first_one_took(talk):
    before = talk.round_trip.timeout
    assert talk.sender.take_ack(*ACK, talk.asked + 0.06)
    assert talk.round_trip.timeout == before  # it may be the answer to the repetition
    assert talk.sender.done
    assert not talk.sender.take_ack(*ACK, talk.asked + 0.08)
    assert talk.round_trip.timeout > 0.06


def test_one_answer_to_two_questions_tells_nothing(talk):
    """The first question, or its answer, was lost: Karn's rule."""
    before = talk.round_trip.timeout
    talk.sender.take_ack(*ACK, talk.asked + 0.06)
    assert talk.round_trip.timeout == before


def test_a_question_that_a_later_one_overtook_was_lost():
    """A network that loses packets may double some: the two answers are one."""
    talk = Talk(groups=2, asked_again=False)
    assert talk.sender.take_ack(1, GROUP, talk.asked + 0.005)
    talk.ask_again()
    before = talk.round_trip.timeout
    assert talk.sender.take_ack(*ACK, talk.asked + 0.06)
    assert not talk.sender.take_ack(*ACK, talk.asked + 0.06)
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


def test_a_third_answer_tells_nothing_more(talk):
    talk.sender.take_ack(*ACK, talk.asked + 0.06)
    talk.sender.take_ack(*ACK, talk.asked + 0.08)
    learned = talk.round_trip.timeout
    talk.sender.take_ack(*ACK, talk.asked + 0.50)
    assert talk.round_trip.timeout == learned
