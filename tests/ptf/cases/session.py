# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""session.p4: a new install makes all that earlier ones left in the registers old."""

from switchgnn.controller import Outcome
from switchgnn.host.wire.header import SESSION_MASK, Kind
from tests.ptf.switchgnn_ptf.packets import (
    barrier_answer,
    done,
    feature,
    fetch,
    notice,
    random_lanes,
    recall,
)
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

SOURCES = {101: 0, 102: 1}


class NewSessionStartsAfresh(SwitchTest):
    """The same round, block and fragment count anew; what was half done is forgotten."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        with self.counted(Outcome.AGGREGATED, 3):
            self.check_sum(900, SOURCES)
            self.send_feature(101, worker=0, round_=2)
        self.serve(session=self.session + 1)
        for round_ in (1, 2):
            with self.counted(Outcome.AGGREGATED, 2, completed={0: 1}):
                self.check_sum(900, SOURCES, round_=round_)


class NewSessionOpensAfresh(SwitchTest):
    """Neither the bits nor the magnitude of the barrier outlive a session."""

    def runTest(self) -> None:
        with self.counted(Outcome.DONE_COLLECTED, 2):
            self.send(1, done(0, block=0, round_=9, magnitude=99))
            self.send(2, done(1, block=0, round_=9, magnitude=98))
        self.serve(session=self.session + 1)
        asked = done(2, block=0, magnitude=3)
        with self.counted({Outcome.DONE_COLLECTED: 1, Outcome.DONE_REPEATED: 1}):
            self.send(3, asked, asked)
            body = {"workers": 0b100, "magnitude": 3, "largest": 2}
            self.expect(3, barrier_answer(Kind.WAITING, asked, to=3, **body))


class OlderSessionIsStale(SwitchTest):
    """Under a lower number everything is old: that is why loading anew must come first."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        with self.counted(Outcome.AGGREGATED):
            first = self.send_feature(101, worker=0)
        self.serve(session=self.session - 1)
        with self.counted({Outcome.STALE: 1, Outcome.AGGREGATED: 1}, stale={0: 1}):
            self.send_feature(101, worker=0, round_=2)
            self.send_feature(102, worker=1)
        self.serve(session=self.session + 1)
        with self.counted(Outcome.AGGREGATED):
            self.expect_sum(900, [first, self.send_feature(102, worker=1)])


class ClosedSessionServesNoPlan(SwitchTest):
    """While entries change, workers are told to wait."""

    def runTest(self) -> None:
        opening = done(0, block=0, magnitude=5)
        with self.counted(Outcome.DONE_COLLECTED):
            self.send(1, opening)
        self.serve(plan=0)
        with self.counted(Outcome.WRONG_PLAN):
            self.send(1, opening)
            self.expect(1, barrier_answer(Kind.WAITING, opening, to=1, workers=0, round_=0, plan=0))


class OtherSessionsAreRefused(SwitchTest):
    """What is left over from another install changes nothing, and nobody answers it."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        packets = [
            feature(101, random_lanes(1), port=1, Echo=1),
            feature(101, random_lanes(1), port=1, Resend=1, Dst_id=900),
            recall(900, port=3),
            fetch(101, 900, port=3),
            notice(0),
        ]
        for session in (self.session - 1, self.session + 1, self.session + 128):
            for packet in packets:
                packet["SwitchGNN"].Session = session & SESSION_MASK
                with self.counted(Outcome.WRONG_SESSION, passes={}):
                    self.send(3 if packet["SwitchGNN"].Dst_id == 900 else 1, packet)
        with self.counted(Outcome.AGGREGATED, 2):
            self.check_sum(900, SOURCES)


class DoneOfAnotherSessionIsToldTheRightOne(SwitchTest):
    """Its worker learns which session there is, and is not counted."""

    def runTest(self) -> None:
        for session in (self.session - 1, self.session + 1):
            asked = done(1, block=0, magnitude=7)
            asked["SwitchGNN"].Session = session & SESSION_MASK
            answer = barrier_answer(Kind.WAITING, asked, to=2, workers=0, round_=0)
            answer["SwitchGNN"].Session = self.session & SESSION_MASK
            with self.counted(Outcome.WRONG_SESSION):
                self.send(2, asked)
                self.expect(2, answer)
        asked = done(0, block=0, magnitude=3)
        with self.counted({Outcome.DONE_COLLECTED: 1, Outcome.DONE_REPEATED: 1}):
            self.send(1, asked, asked)
            self.expect(1, barrier_answer(Kind.WAITING, asked, to=1, workers=0b001, magnitude=3))
