"""session.p4: the install, the tier among several switches, the workers of the ports."""

from switchgnn.base.network import mac_number
from switchgnn.controller import Outcome
from switchgnn.host.wire.header import SESSION_MASK, Kind
from tests.ptf.switchgnn_ptf import bases
from tests.ptf.switchgnn_ptf.entries import HOME
from tests.ptf.switchgnn_ptf.packets import (
    barrier_answer,
    done,
    feature,
    fetch,
    notice,
    ordinary,
    port_of,
    random_lanes,
    recall,
    relayed,
    resigned,
)
from tests.ptf.switchgnn_ptf.switch_test import MEMBERS, SwitchTest

SOURCES = {101: 0, 102: 1}
PORTS_BELOW = (1, 2, 3)


class NewSessionStartsAfresh(SwitchTest):
    """The same round, block and fragment start over; half sums are forgotten."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        with self.counted(Outcome.AGGREGATED, 3):
            self.send_sum(900, SOURCES)
            self.send_feature(101, worker=0, round_=2)
        self.serve(session=self.session + 1)
        for round_ in (1, 2):
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


class ClosedSessionServesNoPlan(SwitchTest):
    """While entries change, workers must wait."""

    def runTest(self) -> None:
        opening = done(0, block=0, magnitude=5)
        self.check_unanswered(Outcome.DONE_COLLECTED, 1, opening)
        self.serve(plan=0)
        answer = barrier_answer(Kind.WAITING, opening, to=1, workers=0, round_=0, plan=0)
        self.exchange(Outcome.WRONG_PLAN, 1, opening, answer)


class OtherSessionsAreRefused(SwitchTest):
    """Packets of another install change nothing and get no answer."""

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
        self.check_sum(900, SOURCES)


class DoneOfAnotherSessionIsToldTheRightOne(SwitchTest):
    """Its worker learns which session there is, and is not counted."""

    def runTest(self) -> None:
        for session in (self.session - 1, self.session + 1):
            asked = done(1, block=0, magnitude=7)
            asked["SwitchGNN"].Session = session & SESSION_MASK
            answer = barrier_answer(Kind.WAITING, asked, to=2, workers=0, round_=0)
            answer["SwitchGNN"].Session = self.session & SESSION_MASK
            self.exchange(Outcome.WRONG_SESSION, 2, asked, answer)
        asked = done(0, block=0, magnitude=3)
        with self.counted({Outcome.DONE_COLLECTED: 1, Outcome.DONE_REPEATED: 1}):
            self.send(1, asked, asked)
            self.expect(1, barrier_answer(Kind.WAITING, asked, to=1, workers=0b001, magnitude=3))


class LeafReportsWhenItsWorkersAreDone(bases.LeafTest):
    """To the spine, in its own name, with the maximum; no answer goes down yet."""

    def runTest(self) -> None:
        for round_, block in ((1, 0), (1, 1), (2, 0)):
            with self.counted(Outcome.DONE_COLLECTED, 2):
                for worker, magnitude in ((0, 5), (1, 9)):
                    asked = done(worker, block=block, round_=round_, magnitude=magnitude)
                    self.send(port_of(worker), asked)
            last = done(2, block=block, round_=round_, magnitude=7)
            answers = {bases.ABOVE: bases.report(last, magnitude=9, largest=1)}
            self.exchange(Outcome.DONE_COLLECTED, 3, last, answers)


class LeafReportsAgainWhenAsked(bases.LeafTest):
    """It never decides that all are done, not even for an earlier block."""

    def runTest(self) -> None:
        for block in (0, 1):
            self.report_all(block=block)
        for block in (1, 0):
            again = done(1, block=block)
            self.exchange(Outcome.DONE_REPEATED, 2, again, {bases.ABOVE: bases.report(again)})


class ReportOfAnEarlierRoundKeepsItsMagnitude(bases.LeafTest):
    """The maximum of a later round is not that of the round that is asked about."""

    def runTest(self) -> None:
        self.check_unanswered(Outcome.DONE_COLLECTED, 1, done(0, block=0, round_=2, magnitude=99))
        again = done(1, block=4, round_=1, magnitude=3)
        answers = {bases.ABOVE: bases.report(again, magnitude=3, largest=1)}
        self.exchange(Outcome.DONE_REPEATED, 2, again, answers)


class LeafNamesItsOwnWorkersOnly(bases.LeafTest):
    """Of the others it knows nothing, so it does not say that they are missing."""

    def runTest(self) -> None:
        asked = done(1, block=0)
        self.check_unanswered(Outcome.DONE_COLLECTED, 2, asked)
        answer = barrier_answer(
            Kind.WAITING, asked, to=2, workers=0b10 | bases.ELSEWHERE, largest=1
        )
        self.exchange(Outcome.DONE_REPEATED, 2, asked, answer)


class WordsOfTheSpineReachAllWorkers(bases.LeafTest):
    """ADVANCE and WAITING, as they are."""

    def runTest(self) -> None:
        for kind in (Kind.ADVANCE, Kind.WAITING):
            word = bases.answer_from_above(kind, done(0, block=3), workers=MEMBERS, magnitude=8)
            answers = {port: relayed(word, to=port) for port in PORTS_BELOW}
            self.exchange(Outcome.PASSED_ON, bases.ABOVE, word, answers, passes={}, completed={})
            self.check_unanswered(Outcome.UNKNOWN_KIND, 1, word)


class SpineCollectsTheWorkersOfItsLeaves(bases.LeavesTest):
    """A leaf's DONE counts for all its workers; missing ones are named one by one."""

    def runTest(self) -> None:
        first, last = done(0, block=0, magnitude=4), done(1, block=0, magnitude=6)
        self.check_unanswered(Outcome.DONE_COLLECTED, 1, first)
        answer = barrier_answer(Kind.WAITING, first, to=1, workers=0b0011, magnitude=4)
        self.exchange(Outcome.DONE_REPEATED, 1, first, answer)
        with self.counted(Outcome.DONE_COLLECTED):
            self.send(2, last)
            for port in (1, 2):
                body = {"workers": 0b1111, "magnitude": 6}
                self.expect(port, barrier_answer(Kind.ADVANCE, last, to=port, **body))


class NoticeGoesUpAndComesBackForAll(bases.LeafTest):
    """In the name of the leaf; the spine notifies all leaves, and they their workers."""

    def runTest(self) -> None:
        sent = notice(1, block=4)
        answers = {bases.ABOVE: relayed(resigned(sent, Src_id=bases.LEAF), to=bases.ABOVE)}
        self.exchange(Outcome.NOTICED, 2, sent, answers, passes={})
        word = notice(0)
        answers = {port: relayed(word, to=port) for port in PORTS_BELOW}
        self.exchange(Outcome.PASSED_ON, bases.ABOVE, word, answers, passes={})


class BroadcastReachesAllStations(bases.LeafTest):
    """All but the one that it came from: the spine among them, or the workers."""

    def runTest(self) -> None:
        other = "33:33:00:00:00:01"
        self.entries.add("station", "flood_stations", dst_addr=mac_number(other))
        self.entries.add_group(HOME.workers_group + 1, [1, 2, 3, bases.ABOVE])
        for port in (1, bases.ABOVE):
            frame = ordinary(port, other)
            answers = dict.fromkeys({1, 2, 3, bases.ABOVE} - {port}, frame)
            self.exchange(Outcome.FLOODED, port, frame, answers)
