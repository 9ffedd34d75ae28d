"""banks.p4: all banks in one pass, and the contributions of a slot."""

import itertools

import numpy as np

from switchgnn.controller import Outcome
from switchgnn.host.wire.header import LANES
from tests.ptf.switchgnn_ptf.packets import LAST_MAXIMUM, MAXIMUM, PARTIAL, combined, sum_to
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

SOURCES = {101: 0, 102: 1}
CORNERS = np.array(
    [0, 1, -1, 2, -2, 2**31 - 1, -(2**31), -(2**31) + 1, 0x55555555, -0x55555556, 0xFFFF, -0x10000],
    np.int32,
)


class CompletionInTheMiddle(SwitchTest):
    """A sum leaves from a middle bank, and the loop resumes after it."""

    def runTest(self) -> None:
        self.add_owners({101: 0, 102: 1, 103: 2})
        # 103 is no neighbour of bank 1's destination.
        for source, banks in {101: (0, 1, 2), 102: (0, 1, 2), 103: (0, 2)}.items():
            slots = {bank: (5, 2 if bank == 1 else 3) for bank in banks}
            self.entries.add_fanout(source=source, slots=slots)
        for bank, worker in enumerate((2, 0, 1)):
            self.add_destination(900 + bank, worker=worker, slot=5, bank=bank)
        with self.counted(Outcome.AGGREGATED, passes={3: 1}, completed={}):
            sent = [self.send_feature(101, worker=0)]
        with self.counted(Outcome.AGGREGATED, passes={2: 1, 1: 1}, completed={1: 1}):
            sent.append(self.send_feature(102, worker=1))
            self.expect_sum(901, sent, worker=0)
        with self.counted(Outcome.AGGREGATED, passes={1: 2}, completed={0: 1, 2: 1}):
            sent.append(self.send_feature(103, worker=2))
            self.expect_sum(900, sent, worker=2)
            self.expect_sum(902, sent, worker=1)


class StaleBankDoesNotStopTheWay(SwitchTest):
    """One bank's slot is newer already; the others still count the contribution."""

    def runTest(self) -> None:
        self.add_sum(900, {103: 2}, slot=5, bank=1, block=2)
        for source, worker in SOURCES.items():
            self.add_source(source, worker=worker)
            self.entries.add_fanout(source=source, slots=dict.fromkeys(range(3), (5, 2)))
        for bank in (0, 2):
            self.add_destination(910 + bank, worker=bank, slot=5, bank=bank)
        self.check_sum(900, {103: 2}, bank=1, block=2)
        events = {"completed": {0: 1, 2: 1}, "stale": {1: 2}}
        with self.counted(Outcome.AGGREGATED, 2, passes={3: 1, 1: 1, 2: 1}, **events):
            sent = self.send_features(SOURCES)
            self.expect_sum(910, sent, worker=0)
            self.expect_sum(912, sent, worker=2)


class EveryLaneWraps(SwitchTest):
    """Every pair of corner values in every lane, beside every other: NumPy's int32 sum."""

    first = 0

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        pairs = list(itertools.product(CORNERS, repeat=2))
        rounds = -(-len(pairs) // LANES)
        pairs += pairs[: rounds * LANES - len(pairs)]
        lanes = np.array(pairs, np.int32).reshape(rounds, LANES, 2)
        with self.counted(Outcome.AGGREGATED, 4 * rounds, completed={0: 2 * rounds}):
            for number, part in enumerate(np.concatenate([lanes, lanes[:, ::-1]]), self.first):
                sent = [
                    self.send_lanes(source, part[:, own], 32, worker=own, fragment=number)
                    for source, own in SOURCES.items()
                ]
                self.expect_sum(900, sent)


class EveryLaneHasTheLarger(EveryLaneWraps):
    """The same pairs, and random ones: NumPy's maximum of uint32."""

    first = MAXIMUM

    def runTest(self) -> None:
        super().runTest()
        for number in range(4):
            self.check_sum(900, SOURCES, fragment=LAST_MAXIMUM, round_=2 + number)


class AMaximumDoesNotGrowTwice(SwitchTest):
    """A feature that meets itself in a slot is counted again, but changes no number."""

    def runTest(self) -> None:
        self.add_owners(SOURCES)
        for source, hops in ((101, 2), (102, 1)):
            for hop in range(hops):
                entry = {"hop": hop, "last_hop": hop == hops - 1}
                self.entries.add_fanout(source=source, slots={0: (7, 3)}, **entry)
        self.add_destination(900, worker=2, slot=7)
        for fragment, times in ((0, 2), (MAXIMUM, 1)):
            with self.counted(Outcome.AGGREGATED, 2, passes={1: 3}, completed={0: 1}):
                tag = {"fragment": fragment}
                first, last = (self.send_feature(s, worker=w, **tag) for s, w in SOURCES.items())
                total = combined([first] * times + [last])
                self.expect(3, sum_to(3, 900, total, count=3, completed_by=last[0]))


class SlotIsReusedWithoutClearing(SwitchTest):
    """Next fragment, block and round overwrite the slot, complete or not (invariant 4)."""

    def runTest(self) -> None:
        for block in (1, 2):
            self.add_sum(900 + block, SOURCES, slot=7, block=block, known=block == 2)
        tags = [(1, 1, 0), (1, 2, 1), (1, 1, 3), (2, 1, 0), (2, 2, 4), (3, 1, 0)]
        for round_, block, fragment in tags:
            tag = {"round_": round_, "block": block}
            self.check_sum(900 + block, SOURCES, passes={1: 2}, fragment=fragment, **tag)
            # Half a sum that stays incomplete.
            with self.counted(Outcome.AGGREGATED, passes={1: 1}, completed={}):
                self.send_feature(101, worker=0, fragment=fragment + 1, **tag)


class StaleContributionChangesNothing(SwitchTest):
    """A late source reaches a slot that belongs to a newer tag (invariant 3)."""

    def runTest(self) -> None:
        newest = {"round_": 5, "block": 2, "fragment": 3}
        older = ({"round_": 4}, {"block": 1}, {"fragment": 2}, {"round_": 4, "block": 3})
        latecomers = {201 + number: change for number, change in enumerate(older)}
        for block in (1, 2, 3):
            self.add_sum(900 + block, SOURCES, slot=7, block=block, known=block != 1)
        for source, change in latecomers.items():
            self.add_source(source, worker=2)
            block = change.get("block", 2)
            self.entries.add_fanout(block=block, source=source, slots={0: (7, 2)})
        with self.counted(Outcome.AGGREGATED, passes={1: 1}, completed={}):
            first = self.send_feature(101, worker=0, **newest)
        with self.counted(Outcome.AGGREGATED, 4, passes={1: 4}, completed={}, stale={0: 4}):
            for source, change in latecomers.items():
                self.send_feature(source, worker=2, **{**newest, **change})
        with self.counted(Outcome.AGGREGATED, passes={1: 1}, completed={0: 1}):
            self.expect_sum(902, [first, self.send_feature(102, worker=1, **newest)])


class TooManyContributionsAreCounted(SwitchTest):
    """A plan that promises too few: the extra contribution sends nothing, the next tag works."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        self.add_source(103, worker=2)
        self.entries.add_fanout(source=103, slots={0: (7, 2)})
        with self.counted(Outcome.AGGREGATED, 3, completed={0: 1}, overfull={0: 1}):
            self.send_sum(900, SOURCES)
            self.send_feature(103, worker=2)
        self.check_sum(900, SOURCES, round_=2)


class TooManyTest(SwitchTest):
    """In block 2 each worker has a partial sum for vertex 901, which has the slot of 900."""

    def add_partial_sums(self, *, expected: int, workers: list[int]) -> None:
        self.add_owners({PARTIAL + worker: worker for worker in workers})
        entry = {"slot": 7, "block": 2, "expected": expected}
        self.add_destination(901, worker=2, senders=workers, **entry)


class PartialSumThatIsTooLarge(TooManyTest):
    """A slot that jumps over its expected count never completes, and is counted."""

    def runTest(self) -> None:
        self.add_sum(900, {101: 0})
        self.add_partial_sums(expected=3, workers=[0, 1])
        with self.counted(Outcome.AGGREGATED, 2, completed={}, overfull={0: 1}):
            for worker in (0, 1):
                self.send_feature(PARTIAL + worker, worker=worker, block=2, Dst_id=901, count=2)


class CountsSaturate(TooManyTest):
    """Counts beyond 16 bits do not wrap around to the expected one."""

    def runTest(self) -> None:
        expected, counts = 50_000, (40_000, 40_000, 35_536)
        self.assertEqual(expected, sum(counts) - 2**16)
        self.add_sum(900, {101: 0})
        self.add_partial_sums(expected=expected, workers=[0, 1, 2])
        with self.counted(Outcome.AGGREGATED, 3, completed={}, released={0: 2}):
            for worker, count in enumerate(counts):
                fields = {"block": 2, "Dst_id": 901, "count": count}
                self.send_feature(PARTIAL + worker, worker=worker, **fields)
        self.check_sum(900, {101: 0}, round_=2)
