# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""partial.p4: what a partial sum may do."""

from switchgnn.controller import Outcome
from tests.ptf.switchgnn_ptf.packets import (
    PARTIAL,
    RELEASED,
    feature,
    port_of,
    random_lanes,
    sum_of,
    sum_to,
)
from tests.ptf.switchgnn_ptf.recovery_test import RecoveryTest
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

SOURCES = {101: 0, 102: 1}


class PartialSumsCountAsMany(SwitchTest):
    """A partial sum of three and a raw feature complete a slot that expects four."""

    def runTest(self) -> None:
        self.add_source(PARTIAL, worker=0)
        self.add_source(102, worker=1)
        self.entries.add_fanout(block=1, source=102, slots={0: (7, 4)})
        self.add_destination(900, worker=2, slot=7, expected=4, senders=[0])
        lanes = [random_lanes(1), random_lanes(2)]
        last = feature(102, lanes[1], port=port_of(1))
        with self.counted(Outcome.AGGREGATED, 2, passes={1: 2}, completed={0: 1}):
            self.send(1, feature(PARTIAL, lanes[0], port=1, count=3, Dst_id=900))
            self.send(2, last)
            self.expect(3, sum_to(3, 900, sum_of(lanes), count=4, completed_by=last))


class LargestPartialSum(SwitchTest):
    """One partial sum of 65,534 contributions completes a slot by itself."""

    def runTest(self) -> None:
        largest = RELEASED - 1
        self.add_source(PARTIAL, worker=0)
        self.add_destination(900, worker=2, slot=7, expected=largest, senders=[0])
        with self.counted(Outcome.AGGREGATED, completed={0: 1}):
            packet, lanes = self.send_feature(PARTIAL, worker=0, count=largest, Dst_id=900)
            self.expect(3, sum_to(3, 900, lanes, count=largest, completed_by=packet))


class ImpossibleCountIsDropped(RecoveryTest):
    """Nothing, more than the whole sum, and the count that releases a slot are not remembered."""

    def runTest(self) -> None:
        self.add_source(PARTIAL, worker=0)
        self.add_destination(900, worker=2, slot=7, expected=4, senders=[0])
        with self.counted(Outcome.WRONG_COUNT, 3, passes={}):
            for count in (0, 5, RELEASED):
                self.send_feature(PARTIAL, worker=0, count=count, Dst_id=900, Echo=1)
        self.check_missing(900, count=0)
        with self.counted(Outcome.AGGREGATED, completed={0: 1}):
            packet, lanes = self.send_feature(PARTIAL, worker=0, count=4, Dst_id=900)
            self.expect(3, sum_to(3, 900, lanes, count=4, completed_by=packet))


class OnlyWhoIsAwaitedSends(RecoveryTest):
    """A worker spoils no sum that awaits none of its partial sums, though the id is its own."""

    def runTest(self) -> None:
        for worker in (0, 1):
            self.add_source(PARTIAL + worker, worker=worker)
        self.add_sum(900, SOURCES)
        self.add_destination(901, worker=2, slot=8, expected=2, senders=[1])
        with self.counted(Outcome.WRONG_PORT, 4, passes={}):
            for worker, vertex in ((0, 900), (1, 900), (0, 901)):
                self.send_feature(PARTIAL + worker, worker=worker, Dst_id=vertex, Echo=1)
            # Of another worker, for one who may.
            self.send_feature(PARTIAL, worker=1, Dst_id=901)
        for vertex in (900, 901):
            self.check_missing(vertex, count=0)
        with self.counted(Outcome.AGGREGATED, 3, completed={0: 2}):
            self.check_sum(900, SOURCES)
            packet, lanes = self.send_feature(PARTIAL + 1, worker=1, count=2, Dst_id=901)
            self.expect(3, sum_to(3, 901, lanes, count=2, completed_by=packet))


class PartialSumOfNobody(SwitchTest):
    """Neither an unknown id nor an unknown destination, nor one of another block, adds anything."""

    def runTest(self) -> None:
        self.add_source(PARTIAL, worker=0)
        self.add_destination(900, worker=2, slot=7, expected=2, senders=[0])
        with self.counted(Outcome.UNKNOWN_VERTEX, 3, passes={}):
            self.send_feature(PARTIAL + 1, worker=0, Dst_id=900)
            self.send_feature(PARTIAL, worker=0, Dst_id=901)
            self.send_feature(PARTIAL, worker=0, Dst_id=900, block=2)


class DestinationIsTheBlocks(SwitchTest):
    """The same id stands for other rows in another block, of another destination."""

    def runTest(self) -> None:
        self.add_source(PARTIAL, worker=0)
        for block, count in ((1, 3), (2, 2)):
            place = {"slot": 6 + block, "block": block, "expected": count, "senders": [0]}
            self.add_destination(899 + block, worker=2, **place)
        for block, count in ((1, 3), (2, 2)):
            with self.counted(Outcome.AGGREGATED, passes={1: 1}, completed={0: 1}):
                fields = {"block": block, "count": count, "Dst_id": 899 + block}
                packet, lanes = self.send_feature(PARTIAL, worker=0, **fields)
                self.expect(3, sum_to(3, 899 + block, lanes, count=count, completed_by=packet))


class OnceForEachTag(SwitchTest):
    """An id is let through once, whatever destination it names the second time."""

    def runTest(self) -> None:
        self.add_source(PARTIAL, worker=0)
        for vertex in (900, 901):
            self.add_destination(vertex, worker=2, slot=vertex - 890, expected=2, senders=[0])
        with self.counted({Outcome.AGGREGATED: 1, Outcome.DUPLICATE: 2}, passes={1: 1}):
            for vertex in (900, 900, 901):
                self.send_feature(PARTIAL, worker=0, Dst_id=vertex)
