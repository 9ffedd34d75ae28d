"""reduce.p4: the all-reduce, a stream of fragments of which every worker gets the sum."""

from collections.abc import Iterable

from scapy.layers.inet import IP
from scapy.packet import Packet

from switchgnn.controller import Outcome
from switchgnn.host.scapy_host.layers import SwitchGNN
from switchgnn.host.wire.header import Kind
from tests.ptf.switchgnn_ptf.bases import ABOVE, LEAF, LeafTest, LeavesTest
from tests.ptf.switchgnn_ptf.packets import (
    EARLY,
    FULL,
    LATE,
    REDUCE_SLOTS,
    STRANGER_PORT,
    WIDTHS,
    WORKERS,
    Lanes,
    contributors,
    port_of,
    random_lanes,
    reduce_,
    reduced,
    reducing,
    relayed,
    resigned,
    sum_of,
)
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

LAST_NUMBER = 2**40 - 1


def numbers(worker: int, fragment: int, lanes: int = FULL) -> Lanes:
    return random_lanes(1000 * fragment % 2**31 + worker, lanes)


def total(fragment: int, lanes: int = FULL) -> Lanes:
    return sum_of(numbers(worker, fragment, lanes) for worker in WORKERS)


def expecting(case: SwitchTest, contributions: int, *, answers: dict[int, int]) -> None:
    """Set up an all-reduce; forget heartbeats of other cases, which outlive a session."""
    case.entries.set_expected(contributions)
    for worker, port in answers.items():
        case.send(port_of(worker), reducing(worker, 0))
        case.receive(port)


class ReduceTest(SwitchTest):
    """Cases of three workers that reduce."""

    def setUp(self) -> None:
        super().setUp()
        expecting(self, len(WORKERS), answers={worker: port_of(worker) for worker in WORKERS})

    def contribute(self, worker: int, fragment: int, *, lanes: int = FULL, **fields: int) -> Packet:
        packet = reduce_(worker, fragment, numbers(worker, fragment, lanes), **fields)
        self.send(port_of(worker), packet)
        return packet

    def expect_reduced(
        self, fragment: int, *, to: Iterable[int] = WORKERS, lanes: int = FULL, exponent: int = 0
    ) -> None:
        for worker in to:
            port, sums = port_of(worker), total(fragment, lanes=lanes)
            wanted = reduced(port, fragment, sums, session=self.session, exponent=exponent)
            self.expect(port, wanted)

    def reduce(self, fragment: int, *, lanes: int = FULL) -> None:
        """Let all workers contribute to a fragment, and expect the sum at all of them."""
        with self.counted(Outcome.REDUCE_ADDED, 3, completed={0: 1}):
            for worker in WORKERS:
                self.contribute(worker, fragment, lanes=lanes)
            self.expect_reduced(fragment, lanes=lanes)


class SlotsGoRound(ReduceTest):
    """A fragment takes the slot of the one before it that had it, and others lose nothing."""

    def runTest(self) -> None:
        self.contribute(0, 513)
        for fragment in (1024, 1024 + REDUCE_SLOTS, 1024 + 2 * REDUCE_SLOTS):
            self.reduce(fragment)
        self.contribute(1, 513)
        with self.counted(Outcome.REDUCE_ADDED, completed={0: 1}):
            self.contribute(2, 513)
            self.expect_reduced(513)


class EveryWidthReduces(ReduceTest):
    """Whatever the width of the slots of the plan."""

    def runTest(self) -> None:
        self.serve(lanes=32)
        for number, lanes in enumerate(WIDTHS, 600):
            if lanes <= FULL or not self.entries.one_bank:
                self.reduce(number, lanes=lanes)


class RepeatedContributionIsAddedOnce(ReduceTest):
    """Its sender hears who has contributed, and gets the sum again once there is one."""

    def runTest(self) -> None:
        self.contribute(0, 700)
        with self.counted(Outcome.REDUCE_REPEATED, completed={}):
            self.expect(1, contributors(self.contribute(0, 700), to=1, workers=0b001, newest=700))
        self.contribute(1, 700)
        with self.counted(Outcome.REDUCE_ADDED, completed={0: 1}):
            self.contribute(2, 700)
            self.expect_reduced(700)
        for worker in WORKERS:
            with self.counted(Outcome.REDUCE_REPEATED, completed={0: 1}):
                self.contribute(worker, 700)
                self.expect_reduced(700, to=[worker])


class LateContributionChangesNothing(ReduceTest):
    """A copy of a fragment that comes after the next one of its slot is told the newest."""

    def runTest(self) -> None:
        newest = 600 + REDUCE_SLOTS
        self.reduce(600)
        self.contribute(0, newest)
        for worker in (0, 1):
            with self.counted(Outcome.REDUCE_STALE, completed={}):
                packet = self.contribute(worker, 600)
                port = port_of(worker)
                self.expect(port, contributors(packet, to=port, workers=0, newest=newest))
        self.contribute(1, newest)
        with self.counted(Outcome.REDUCE_ADDED, completed={0: 1}):
            self.contribute(2, newest)
            self.expect_reduced(newest)


class TheLargestExponentIsTold(ReduceTest):
    """Of all workers, with the sum, and of this fragment only."""

    def runTest(self) -> None:
        for fragment, exponents in ((700, (3, 255, 0)), (700 + REDUCE_SLOTS, (7, 2, 5))):
            with self.counted(Outcome.REDUCE_ADDED, 3, completed={0: 1}):
                for worker, exponent in zip(WORKERS, exponents, strict=True):
                    self.contribute(worker, fragment, exponent=exponent)
                self.expect_reduced(fragment, exponent=max(exponents))
            with self.counted(Outcome.REDUCE_REPEATED, completed={0: 1}):
                self.contribute(1, fragment, exponent=exponents[1])
                self.expect_reduced(fragment, to=[1], exponent=max(exponents))


class ASumHasTheClassOfItsLastPart(ReduceTest):
    """Late parts make late sums, also again; any other DSCP is early."""

    def runTest(self) -> None:
        for number, tos in enumerate((LATE, EARLY, 0xC2), 700):
            self.contribute(0, number)
            self.contribute(1, number)
            part = reduce_(2, number, numbers(2, number))
            part[IP].tos = tos
            receivers = {Outcome.REDUCE_ADDED: (1, 2, 3), Outcome.REDUCE_REPEATED: (3,)}
            for outcome, ports in receivers.items():
                with self.counted(outcome, completed={0: 1}):
                    self.send(3, part)
                    for port in ports:
                        sums = reduced(port, number, total(number), session=self.session)
                        sums[IP].tos = LATE if tos == LATE else EARLY
                        self.expect(port, sums)


class QuestionsAreAnswered(ReduceTest):
    """With who has contributed, the newest fragment of the session, and the latest heartbeats."""

    def runTest(self) -> None:
        asked = reducing(1, 0)
        answer = contributors(asked, to=2, workers=0, newest=0)
        self.exchange(Outcome.REDUCE_ASKED, 2, asked, answer)
        last = LAST_NUMBER
        self.contribute(2, last)
        self.contribute(0, last)
        with self.counted(Outcome.REDUCE_ASKED, 2):
            first, second = reducing(1, last, heartbeat=1), reducing(0, 9, heartbeat=1)
            self.send(2, first)
            self.expect(2, contributors(first, to=2, workers=0b101, newest=last, heartbeats=0b010))
            self.send(1, second)
            self.expect(1, contributors(second, to=1, workers=0, newest=last, heartbeats=0b011))
        self.serve(session=self.session + 1)
        third = reducing(0, last)
        answer = contributors(third, to=1, workers=0, newest=0, heartbeats=0b010)
        self.exchange(Outcome.REDUCE_ASKED, 1, third, answer)


class AnAskReachesAll(ReduceTest):
    """A worker cannot get a sum from a switch that forgot it; the others can repeat it."""

    def runTest(self) -> None:
        newest = 600 + REDUCE_SLOTS
        self.contribute(0, newest)
        with self.counted(Outcome.REDUCE_STALE):
            packet = self.contribute(2, 600, Resend=1)
            for worker in WORKERS:
                port = port_of(worker)
                self.expect(port, contributors(packet, to=port, workers=0, newest=newest))
        repeated = resigned(reduce_(0, 600, total(600)), Kind=int(Kind.REDUCED), Resend=1)
        answers = {port_of(worker): relayed(repeated, to=port_of(worker)) for worker in WORKERS}
        self.exchange(Outcome.PASSED_ON, 1, repeated, answers)


class WhoMayContribute(ReduceTest):
    """A worker for itself, once, with one contribution, and no sums unasked."""

    def runTest(self) -> None:
        lanes = numbers(0, 700)
        wrong = {
            Outcome.WRONG_PORT: reduce_(1, 700, lanes),
            Outcome.WRONG_COUNT: reduce_(0, 700, lanes, count=2),
            Outcome.UNKNOWN_KIND: resigned(reduce_(0, 700, lanes), Kind=int(Kind.REDUCED)),
            Outcome.WRONG_SESSION: reduce_(0, 700, lanes, Session=self.session + 1 & 0xFF),
        }
        for outcome, packet in wrong.items():
            self.check_unanswered(outcome, 1, packet)
        self.check_unanswered(Outcome.NO_JOB, STRANGER_PORT, reduce_(0, 701, lanes))
        self.check_unanswered(Outcome.WRONG_COUNT, 1, reduce_(0, 702, lanes, count=0))
        self.reduce(700)


class UnknownWidthsAreMalformed(ReduceTest):
    """They would take the slot of a fragment without bringing numbers."""

    def runTest(self) -> None:
        for width in (6, 7):
            packet = resigned(reduce_(0, 700, numbers(0, 700)), Width=width)
            packet[SwitchGNN].remove_payload()
            self.check_unanswered(Outcome.MALFORMED, 1, packet)
        self.reduce(700)


class NoAllReduceIsExpected(ReduceTest):
    """Without a setting nothing is added, and nobody is answered."""

    def runTest(self) -> None:
        self.entries.set_expected(0)
        with self.counted(Outcome.UNKNOWN_KIND, 2):
            self.contribute(0, 700)
            self.send(1, reducing(0, 700))


class SumsOfVerticesAreNotTouched(ReduceTest):
    """The slots of the all-reduce are behind those of the plan."""

    def runTest(self) -> None:
        self.add_sum(900, {101: 0, 102: 1}, slot=188)
        with self.counted(Outcome.AGGREGATED):
            first = self.send_feature(101, worker=0)
        self.reduce(188 + REDUCE_SLOTS)
        with self.counted(Outcome.AGGREGATED, completed={0: 1}):
            self.expect_sum(900, [first, self.send_feature(102, worker=1)])


class LeafOfReduce(LeafTest):
    """A leaf sends its sum up once it has it, again when asked, and passes on what comes down."""

    def setUp(self) -> None:
        super().setUp()
        expecting(self, len(WORKERS), answers=dict.fromkeys(WORKERS, ABOVE))

    def runTest(self) -> None:
        parts = {worker: numbers(worker, 700) for worker in WORKERS}
        sums = reduce_(0, 700, total(700), exponent=9, count=3)
        up = relayed(resigned(sums, Src_id=LEAF, Session=self.session & 0xFF), to=ABOVE)
        with self.counted(Outcome.REDUCE_ADDED, 3, completed={0: 1}):
            for worker, exponent in zip(WORKERS, (4, 9, 2), strict=True):
                self.send(port_of(worker), reduce_(worker, 700, parts[worker], exponent=exponent))
            self.expect(ABOVE, up)
        with self.counted(Outcome.REDUCE_REPEATED, completed={0: 1}):
            self.send(1, reduce_(0, 700, parts[0], exponent=4))
            self.expect(ABOVE, up)
        self.check_questions()
        self.check_passed_on()

    def check_questions(self) -> None:
        """What the leaf cannot answer goes up with what it knows."""
        packet = reduce_(1, 800, numbers(1, 800))
        with self.counted({Outcome.REDUCE_ADDED: 1, Outcome.REDUCE_REPEATED: 1}, completed={}):
            self.send(2, packet, packet)
            known = {"workers": 0b010, "newest": 800, "Src_id": LEAF}
            self.expect(ABOVE, contributors(packet, to=ABOVE, **known))
        with self.counted(Outcome.REDUCE_ASKED):
            asked = reducing(0, 800, heartbeat=1, workers=0b1111)
            self.send(1, asked)
            known |= {"workers": 0b011, "heartbeats": 0b001}
            self.expect(ABOVE, contributors(asked, to=ABOVE, **known))

    def check_passed_on(self) -> None:
        """To all workers what comes from above, where no contribution comes from."""
        sums = reduce_(0, 700, total(700))
        for packet in (resigned(sums, Kind=int(Kind.REDUCED)), reducing(0, 700)):
            answers = {port_of(worker): relayed(packet, to=port_of(worker)) for worker in WORKERS}
            self.exchange(Outcome.PASSED_ON, ABOVE, packet, answers)
        self.check_unanswered(Outcome.UNKNOWN_KIND, ABOVE, sums)
        repeated = resigned(reduce_(2, 700, total(700)), Kind=int(Kind.REDUCED), Resend=1)
        answers = {ABOVE: relayed(resigned(repeated, Src_id=LEAF), to=ABOVE)}
        self.exchange(Outcome.PASSED_ON, 3, repeated, answers)


class SpineOfReduce(LeavesTest):
    """A spine adds up the sums of leaves, each with the number of its workers."""

    def setUp(self) -> None:
        super().setUp()
        expecting(self, 4, answers={0: 1, 1: 2})

    def runTest(self) -> None:
        parts = [numbers(leaf, 700) for leaf in (0, 1)]
        with self.counted(Outcome.REDUCE_ADDED):
            self.send(2, reduce_(1, 700, parts[1], count=2, exponent=5))
        again = reduce_(1, 700, parts[1], count=2, exponent=5)
        answer = contributors(again, to=2, workers=0b1100, newest=700)
        self.exchange(Outcome.REDUCE_REPEATED, 2, again, answer, completed={})
        with self.counted(Outcome.REDUCE_ADDED, completed={0: 1}):
            self.send(1, reduce_(0, 700, parts[0], count=2))
            for port in (1, 2):
                fields = {"session": self.session, "exponent": 5, "count": 4}
                self.expect(port, reduced(port, 700, sum_of(parts), **fields))
        # A leaf knows only its own workers.
        asked = reducing(1, 900, workers=0b0110)
        answer = contributors(asked, to=2, workers=0b0100, newest=700)
        self.exchange(Outcome.REDUCE_ASKED, 2, asked, answer)
