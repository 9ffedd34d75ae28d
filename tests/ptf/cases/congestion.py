"""congestion.p4: who waits behind a long queue is marked, once it leaves.

A queue is built without timing: a multicast group that names one port many times
puts all copies into its queue at once. BMv2 takes packets out meanwhile, so how
many copies find a long queue is not known, but each mark must be counted.
"""

from typing import ClassVar

from scapy.layers.inet import UDP, IPOption_Router_Alert
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from switchgnn.controller import Outcome
from switchgnn.controller.controls.forward import BROADCAST
from switchgnn.controller.controls.loop import LOOP_LANES, result_group
from switchgnn.host.wire.header import KIND_AT
from tests.ptf.switchgnn_ptf import packets
from tests.ptf.switchgnn_ptf.bases import ABOVE, LeafTest
from tests.ptf.switchgnn_ptf.entries import HOME
from tests.ptf.switchgnn_ptf.switch_test import PORTS, SwitchTest

COPIES = 40
TRIES = 50
CONGESTION_EXPERIENCED = 3
MARK = 0x20
# The barrier whose copies all come when even the largest weight of others, 1,055, is below 256.
LAST = 22
WORKER_PORTS = (1, 2, 3)
PAIR = {101: 0, 102: 1}


class CongestionTest(SwitchTest):
    """Cases that send many copies of a frame to port 2 at once."""

    def mark_from(self, beside_others: int, alone: int) -> None:
        marking = {"beside_others": beside_others, "alone": alone}
        for port in (*PORTS, *HOME.loop_ports):
            self.entries.put("threshold", "set_threshold", port=port, **marking)

    def crowd(self, threshold: int) -> None:
        """Send multicasts for all workers to port 2, many times."""
        self.mark_from(threshold, threshold)
        self.entries.change_group(HOME.workers_group, [2] * COPIES)

    def copies(self, port: int, frame: Packet, outcome: Outcome) -> list[bytes]:
        with self.counted(outcome, marked=None):
            self.send(port, frame)
            return [self.receive(2) for _ in range(COPIES)]

    def check_copies(self, copies: list[bytes], plain: Packet, marked: Packet, before: int) -> int:
        """Check that every copy is plain or marked, and counted; return how many are marked."""
        number = copies.count(bytes(marked))
        self.assertEqual(COPIES - number, copies.count(bytes(plain)), "Other frames came, too.")
        self.assertEqual(number, self.counters().marked - before, "Not each mark was counted.")
        return number


class FloodTest(CongestionTest):
    """Cases that broadcast ordinary frames."""

    def check_never_marked(self, frame: Packet) -> None:
        before = self.counters().marked
        self.assertEqual([bytes(frame)] * COPIES, self.copies(1, frame, Outcome.FLOODED))
        self.assertEqual(before, self.counters().marked)

    def check_marked(self, frame: Packet, marked: Packet) -> None:
        """Broadcast a frame until some copy is marked; the first one never is."""
        for _ in range(TRIES):
            before = self.counters().marked
            copies = self.copies(1, frame, Outcome.FLOODED)
            number = self.check_copies(copies, frame, marked, before)
            self.assertLess(number, COPIES)
            if number:
                return
        self.fail(f"No queue was long in {TRIES} tries.")


class CapableIpv4IsMarked(FloodTest):
    """Both ECN-capable codepoints become "congestion experienced", with a right checksum."""

    def runTest(self) -> None:
        self.crowd(threshold=0)
        for ecn in (1, 2):
            frame, marked = (_broadcast(tos=0xB8 | bits) for bits in (ecn, CONGESTION_EXPERIENCED))
            self.check_marked(frame, marked)


class NotCapableIsNotMarked(FloodTest):
    """Without a threshold; senders without ECN, IPv4 with options, and other protocols."""

    def runTest(self) -> None:
        self.entries.change_group(HOME.workers_group, [2] * COPIES)
        self.check_never_marked(_broadcast(tos=2))
        self.crowd(threshold=0)
        self.check_never_marked(_broadcast(tos=0xB8))
        self.check_never_marked(_broadcast(tos=0xB8 | 2, options=[IPOption_Router_Alert()]))
        self.check_never_marked(Ether(dst=BROADCAST, type=0x1234) / Raw(bytes(64)))


class QueuesAreCountedByLength(FloodTest):
    """Every copy counts once, under the queue that it found: those above a threshold are marked."""

    def runTest(self) -> None:
        threshold = 5
        self.crowd(threshold)
        for _ in range(TRIES):
            before = self.counters()
            self.copies(1, _broadcast(tos=2), Outcome.FLOODED)
            after = self.counters()
            cells = zip(before.port_queue, after.port_queue, strict=True)
            found = [late - early for early, late in cells]
            # The markers that end a case count as well.
            self.assertEqual(COPIES + len(PORTS), sum(found))
            self.assertEqual(0, sum(found[COPIES:]))
            self.assertEqual(after.marked - before.marked, sum(found[threshold + 1 :]))
            if after.marked > before.marked:
                return
        self.fail(f"No queue was long in {TRIES} tries.")


class OrdinaryTrafficLowersTheThreshold(CongestionTest):
    """On a port with twenty long ordinary frames it holds for some of ours, and then no longer."""

    def runTest(self) -> None:
        self.mark_from(0, alone=1000)
        self.entries.change_group(HOME.workers_group, [2] * COPIES)
        stranger = packets.ordinary(1, "02:00:00:00:00:02", UDP(), Raw(bytes(600)))
        block = -1
        for _ in range(TRIES):
            for _ in range(20):
                self.send(1, stranger)
                self.expect(2, stranger)
            marks = []
            for _ in range(LAST):
                block += 1
                for worker, port in enumerate(WORKER_PORTS):
                    self.send(port, packets.done(worker, block=block))
                copies = [self.receive(2) for _ in range(COPIES)]
                marks.append(sum(copy[KIND_AT] & MARK > 0 for copy in copies))
            self.assertEqual(0, marks[-1])
            if any(marks):
                return
        self.fail(f"No queue was long in {TRIES} tries.")


class TheLoopHasNoPortQueue(SwitchTest):
    """A packet that goes around is counted when it leaves, and not before."""

    def runTest(self) -> None:
        self.add_source(101, worker=0)
        self.entries.add_fanout(source=101, slots={0: (7, 1), 1: (7, 1)})
        self.add_destination(900, worker=1, slot=7, bank=0)
        self.add_destination(901, worker=2, slot=7, bank=1)
        before = sum(self.counters().port_queue)
        with self.counted(Outcome.AGGREGATED, passes={1: 2}, completed={0: 1, 1: 1}):
            packet, lanes = self.send_feature(101, worker=0)
            self.expect_sum(900, [(packet, lanes)], worker=1)
            self.expect_sum(901, [(packet, lanes)])
        self.assertEqual(2 + len(PORTS), sum(self.counters().port_queue) - before)


class SumIsMarked(CongestionTest):
    """A sum carries the mark in its own header; the copy in the loop sums on unharmed."""

    slots: ClassVar = {0: (7, 1), 1: (7, 1)}
    echo = 0

    def runTest(self) -> None:
        self.mark_from(0, 0)
        self.add_source(101, worker=0)
        self.entries.add_fanout(source=101, slots=self.slots)
        lane = 101 % LOOP_LANES
        self.add_destination(900, worker=1, slot=7, bank=0)
        self.add_destination(901, worker=2, slot=7, bank=1)
        self.entries.change_group(result_group(2) + lane, [2] * COPIES + [HOME.loop_ports[lane]])
        for round_ in range(1, TRIES + 1):
            if self._one_round(round_):
                return
        self.fail(f"No queue was long in {TRIES} tries.")

    def _one_round(self, round_: int) -> int:
        before = self.counters().marked
        with self.counted(Outcome.AGGREGATED, passes={1: len(self.slots)}, marked=None):
            packet, lanes = self.send_feature(101, worker=0, round_=round_, Echo=self.echo)
            copies = [self.receive(2) for _ in range(COPIES)]
            self.expect_what_follows(packet, lanes)
        plain, marked = (
            packets.sum_to(2, 900, lanes, count=1, completed_by=packet, ECN=ecn) for ecn in (0, 1)
        )
        return self.check_copies(copies, plain, marked, before)

    def expect_what_follows(self, packet: Packet, lanes: packets.Lanes) -> None:
        self.expect_sum(901, [(packet, lanes)])


class TheLastSumIsMarked(SumIsMarked):
    """The copy in the loop becomes an unmarked ACK."""

    slots: ClassVar = {0: (7, 1)}
    echo = 1

    def runTest(self) -> None:
        super().runTest()

    def expect_what_follows(self, packet: Packet, lanes: packets.Lanes) -> None:
        self.expect(1, packets.ack_of(packet, accepted=1))


class MarkOfTheSenderStays(SwitchTest):
    """A mark that a feature brings with it leaves with the sum that it completes."""

    def runTest(self) -> None:
        self.add_sum(900, {101: 0})
        with self.counted(Outcome.AGGREGATED):
            packet, lanes = self.send_feature(101, worker=0, ECN=1)
            self.expect(3, packets.sum_to(3, 900, lanes, count=1, completed_by=packet, ECN=1))


class AnyMarkStaysInTheSlot(LeafTest):
    """A sum, a part for above and a recalled sum are marked if any contribution was."""

    def runTest(self) -> None:
        self.add_owners(PAIR)
        for source in PAIR:
            self.entries.add_fanout(source=source, slots={0: (7, 2), 1: (9, 2)})
        self.add_partial(900, slot=7, source=packets.PARTIAL)
        self.add_destination(901, worker=2, slot=9, bank=1, expected=2)
        for round_, marks in enumerate(((1, 0), (0, 0), (0, 1)), 1):
            mark = int(any(marks))
            with self.counted(Outcome.AGGREGATED, 2, completed={0: 1, 1: 1}):
                sent = [
                    self.send_feature(source, worker=worker, round_=round_, ECN=ecn)
                    for (source, worker), ecn in zip(PAIR.items(), marks, strict=True)
                ]
                last, total = sent[-1][0], packets.combined(sent)
                self.expect(ABOVE, packets.resigned(self.part(sent, last), ECN=mark))
                self.expect(3, packets.sum_to(3, 901, total, count=2, completed_by=last, ECN=mark))
            asked = packets.recall(901, port=3, round_=round_)
            answer = packets.sum_to(3, 901, total, count=2, completed_by=asked, ECN=mark)
            self.exchange(Outcome.RECALLED, 3, asked, answer, completed={1: 1})


def _broadcast(**ip: object) -> Packet:
    return packets.ordinary(1, BROADCAST, UDP(), Raw(bytes(64)), **ip)


class NoticeInAnothersName(SwitchTest):
    """A worker with another's number, and a host that is no worker, are not passed on."""

    def runTest(self) -> None:
        with self.counted({Outcome.WRONG_PORT: 2, Outcome.NO_JOB: 1}):
            self.send(2, packets.notice(0))
            self.send(1, packets.resigned(packets.notice(0), Src_id=0x10000))
            self.send(packets.STRANGER_PORT, packets.resigned(packets.notice(3), Src_id=0))
