"""barrier.p4, Turn: packets with a later tag than the current one are refused."""

import itertools
from typing import Any

from scapy.packet import Packet

from switchgnn.controller import Outcome
from switchgnn.host.wire.header import LAST_FRAGMENT, NOBODY, Kind, Refusal
from tests.ptf.switchgnn_ptf.bases import ABOVE, BarrierTest, LeafTest, answer_from_above
from tests.ptf.switchgnn_ptf.packets import (
    NEXT_ROUND,
    done,
    feature,
    fetch,
    port_of,
    random_lanes,
    recall,
    relayed,
)
from tests.ptf.switchgnn_ptf.switch_test import MEMBERS, SwitchTest

SOURCES = {101: 0, 102: 1}
LATER = ({"fragment": 1}, {"block": 2}, {"round_": 2})
# The first block of round 2, and later tags.
EARLY = {"round_": 2, "block": 1}
TOO_EARLY = ({**EARLY, "fragment": 1}, {"round_": 2, "block": 2}, {"round_": 3})


def packets_of(tag: dict[str, int]) -> list[tuple[int, Packet]]:
    """Everything but a DONE that workers 0 and 2 may send under a tag."""
    return [
        (1, feature(101, random_lanes(7), port=1, Echo=1, **tag)),
        (1, feature(101, random_lanes(7), port=1, Resend=1, Dst_id=900, **tag)),
        (3, recall(900, port=3, **tag)),
        (3, fetch(101, 900, port=3, **tag)),
    ]


def check_too_early(case: SwitchTest, *tags: dict[str, int]) -> None:
    """Send packets of later tags than the current one, which change nothing."""
    for tag in tags:
        for port, packet in packets_of(tag):
            with case.counted(Outcome.WRONG_TAG, passes={}, released={}):
                case.send(port, packet)


class LaterPacketsAreRefused(BarrierTest):
    """They change nothing: the sum of the current block completes."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        self.open(following=(1, 0))
        with self.counted(Outcome.AGGREGATED):
            first = self.send_feature(101, worker=0)
        check_too_early(self, *LATER)
        with self.counted(Outcome.AGGREGATED, completed={0: 1}):
            self.expect_sum(900, [first, self.send_feature(102, worker=1)])


class TheTurnGoesOn(BarrierTest):
    """To the fragment, block and round that the workers name, when all are done."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        self.serve(any_tag=0)
        steps = [(1, 0, 0), (1, 1, 0), (1, 3, 0), (1, 1, 1), (2, 0, 0), (2, 1, 0)]
        steps.append((2, 1, LAST_FRAGMENT))
        for unit, next_unit in itertools.pairwise(steps):
            round_, block, fragment = unit
            following = next_unit[1:]
            tag = {"round_": round_, "block": block, "fragment": fragment}
            self.collect(0, 2, following=following, **tag)
            if next_unit[1] == 1:
                later = dict(zip(("round_", "block", "fragment"), next_unit, strict=True))
                with self.counted(Outcome.WRONG_TAG, passes={}):
                    self.send(1, feature(101, random_lanes(7), port=1, **later))
            self.complete(1, following=following, **tag)
            if next_unit[1] == 1:
                self.check_sum(900, SOURCES, **later)


class NothingBeforeTheFirstOpening(BarrierTest):
    """Without a restart, no block has its turn yet."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        for session in (self.session, self.session + 1):
            self.serve(session=session, any_tag=0)
            check_too_early(self, {})
            self.check_refusal(Refusal.TAG, {"block": 1}, largest=NOBODY, round_=0)
            self.open(following=(1, 0))
            self.check_sum(900, SOURCES)


class OneOpeningAtATime(BarrierTest):
    """The first `done` of a session chooses the round; workers that open another are refused."""

    def runTest(self) -> None:
        for session in (self.session, self.session + 1):
            self.serve(session=session, any_tag=0)
            for tag in ({"fragment": 1}, {"round_": 0}):
                self.check_refusal(Refusal.TAG, {"block": 0, **tag}, largest=NOBODY, round_=0)
            self.collect(2, round_=3, block=0)
            for tag in ({"round_": 4}, {"round_": 2}, {"round_": 0}, {"round_": 3, "fragment": 1}):
                self.check_refusal(Refusal.TAG, {"block": 0, **tag}, largest=2, round_=3)
            self.collect(0, round_=3, block=0)
            self.complete(1, round_=3, block=0, largest=2)


class DoneOutOfTurnIsRefused(BarrierTest):
    """It advances nobody, and the answer has the current round."""

    def runTest(self) -> None:
        self.open(round_=3, following=(2, 0))
        self.collect(0, round_=3, block=2)
        for tag in ({"block": 2, "fragment": 1}, {"block": 3}, {"block": 0, "round_": 4}):
            self.check_refusal(Refusal.TAG, {"round_": 3, **tag}, largest=NOBODY, round_=3)
        self.collect(1, round_=3, block=2)
        self.complete(2, round_=3, block=2)


class WorkersMustAgreeOnWhatIsNext(BarrierTest):
    """A worker that differs is refused, and the answer names the first worker."""

    def runTest(self) -> None:
        for session, early in ((self.session, False), (self.session + 1, True)):
            self.serve(session=session)
            self.open()
            agreed: dict[str, Any] = {"block": 1, "following": (2, 1), "early": early}
            self.collect(2, **agreed)
            others = (((2, 1), not early), ((1, 1), early), ((2, 0), early), (NEXT_ROUND, early))
            for following, said in others:
                wrong = {"block": 1, "following": following, "early": said}
                self.check_refusal(Refusal.NEXT, wrong, largest=2)
            self.collect(1, **agreed)
            self.complete(0, **agreed)


class EarlyTest(BarrierTest):
    """Cases in which the first block of round 2 comes early."""

    def end_the_round(self, **early: Any) -> None:
        self.open(following=(1, 0))
        self.collect(0, 2, block=1, **early)
        self.complete(1, block=1, **early)


class FeaturesComeWhileTheirRoundIsOpened(EarlyTest):
    """Those of its first block, after the last barrier; their sums precede the ADVANCE."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        last = {"block": 1, "following": (1, 0), "early": True}
        self.serve(any_tag=0)
        self.open(following=(1, 0))
        self.collect(0, 2, **last)
        check_too_early(self, EARLY)
        self.complete(1, **last)
        check_too_early(self, *TOO_EARLY)
        with self.counted(Outcome.AGGREGATED):
            first = self.send_feature(101, worker=0, **EARLY)
        self.collect(0, 2, block=0, round_=2)
        check_too_early(self, *TOO_EARLY)
        with self.counted(Outcome.AGGREGATED, completed={0: 1}):
            self.expect_sum(900, [first, self.send_feature(102, worker=1, **EARLY)])
        self.complete(1, block=0, round_=2)
        check_too_early(self, *TOO_EARLY)
        self.collect(0, 2, **EARLY)
        self.complete(1, **EARLY)


class NothingIsEarlyUnannounced(EarlyTest):
    """Without an announcement, features wait for the opening."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        self.end_the_round(following=NEXT_ROUND)
        check_too_early(self, EARLY)
        self.open(round_=2)
        self.check_sum(900, SOURCES, **EARLY)


class TheOpeningComesBeforeTheBlock(EarlyTest):
    """While a round is opened, a `done` of its first block is out of turn."""

    def runTest(self) -> None:
        self.end_the_round(following=(1, 0), early=True)
        for opened in ((), (0, 2)):
            self.collect(*opened, block=0, round_=2)
            for tag in (EARLY, *TOO_EARLY, {"round_": 3, "block": 0}):
                self.check_refusal(Refusal.TAG, {"block": 1, **tag}, largest=NOBODY, round_=2)
        self.complete(1, block=0, round_=2)
        self.collect(0, 2, **EARLY)
        self.complete(1, **EARLY)


class TheOpeningHasTheLastWord(EarlyTest):
    """The block that it names has its turn, earlier or later than the announced one."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES, block=1)
        self.add_sum(901, SOURCES, block=3, slot=8, known=True)
        for round_, said, vertex, then in ((1, 1, 901, 3), (2, 3, 900, 1)):
            following = {"following": (said, 0), "early": True}
            if round_ == 1:
                self.open(following=(1, 0))
            block = {"block": 1 if round_ == 1 else 3, "round_": round_}
            self.collect(0, 2, **block, **following)
            self.complete(1, **block, **following)
            self.open(round_=round_ + 1, following=(then, 0))
            now = {"round_": round_ + 1, "block": then}
            check_too_early(self, {**now, "block": 4}, {**now, "fragment": 1})
            if said > then:
                check_too_early(self, {**now, "block": said})
            self.check_sum(vertex, SOURCES, **now)
            later = {**now, "block": then + 1}
            self.check_refusal(Refusal.TAG, later, largest=NOBODY, round_=round_ + 1)


class ARestartForgetsWhatWasEarly(EarlyTest):
    """The switch accepts all tags until an opening is complete."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        self.end_the_round(following=(1, 0), early=True)
        self.restart()
        self.add_sum(900, SOURCES)
        with self.counted(Outcome.AGGREGATED):
            first = self.send_feature(101, worker=0, **EARLY)
        self.collect(0, 2, block=0, round_=2)
        with self.counted(Outcome.AGGREGATED, completed={0: 1}):
            self.expect_sum(900, [first, self.send_feature(102, worker=1, **EARLY)])
        self.complete(1, block=0, round_=2)
        check_too_early(self, *TOO_EARLY)


class ALeafLetsInEarlyWhatTheSpineConfirms(LeafTest):
    """It reports the announcement, and admits early features with the ADVANCE."""

    def hear(self, word: Packet) -> None:
        """Let an answer of the spine pass to all workers."""
        answers = {port_of(worker): relayed(word, to=port_of(worker)) for worker in (0, 1, 2)}
        self.exchange(Outcome.PASSED_ON, ABOVE, word, answers)

    def runTest(self) -> None:
        self.add_part(SOURCES)
        self.serve(any_tag=0)
        self.pass_barrier(block=0, following=(1, 0))
        asked = self.report_all(block=1, following=(1, 0), early=True)
        for heard in (
            None,
            answer_from_above(Kind.WAITING, asked, workers=1),
            answer_from_above(Kind.ADVANCE, done(0, block=4), workers=MEMBERS),
        ):
            if heard is not None:
                self.hear(heard)
            with self.counted(Outcome.WRONG_TAG, passes={}):
                self.send(1, feature(101, random_lanes(1), port=1, **EARLY))
        self.hear(answer_from_above(Kind.ADVANCE, asked, workers=MEMBERS))
        self.check_early()
        opening = self.report_all(block=0, round_=2, following=(2, 0))
        self.check_refused(EARLY)
        self.hear(answer_from_above(Kind.ADVANCE, opening, workers=MEMBERS, round_=2))
        with self.counted(Outcome.WRONG_TAG, passes={}):
            self.send(1, feature(101, random_lanes(1), port=1, round_=2, block=3))
        self.pass_barrier(block=2, round_=2)

    def check_early(self) -> None:
        """Send features of the first block, which are admitted, and others, which are not."""
        sent = []
        for source, worker in SOURCES.items():
            with self.counted(Outcome.AGGREGATED, completed={0: worker}):
                sent.append(self.send_feature(source, worker=worker, **EARLY))
                if worker:
                    self.expect(ABOVE, self.part(sent, by=sent[-1][0]))
        check_too_early(self, *TOO_EARLY)
        self.check_refused(EARLY)

    def check_refused(self, tag: dict[str, int]) -> None:
        """Report a `done` that is out of turn."""
        with self.counted(Outcome.WRONG_TAG):
            self.send(2, done(1, **tag))
            self.receive(2)

    def pass_barrier(self, **fields: Any) -> None:
        """Let all workers of the leaf report, and the spine say that all are done."""
        self.hear(answer_from_above(Kind.ADVANCE, self.report_all(**fields), workers=MEMBERS))
