# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""loop.p4: what follows a pass, over recirculation through the virtual ports."""

from switchgnn.controller import Outcome
from switchgnn.controller.controls.aggregation import LOOP_LANES
from tests.ptf.switchgnn_ptf.entries import BANKS
from tests.ptf.switchgnn_ptf.packets import Lanes, ack_of, feature, random_lanes, sum_to
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

SOURCES = {101: 0, 102: 1}


class SeveralHops(SwitchTest):
    """Hops that complete nothing follow one another, and then some do."""

    def runTest(self) -> None:
        for source, worker in SOURCES.items():
            self.add_source(source, worker=worker)
            for hop in range(5):
                self.entries.add_fanout(
                    block=1,
                    source=source,
                    hop=hop,
                    slots={0: (hop, 3), 3: (hop, 2)} if hop % 2 else {5: (hop, 3)},
                    last_hop=hop == 4,
                )
        for hop in (1, 3):
            self.add_destination(900 + hop, worker=2, slot=hop, bank=3)
        with self.counted(Outcome.AGGREGATED, passes={1: 3, 2: 2}, completed={}):
            sent = [self.send_feature(101, worker=0)]
        with self.counted(Outcome.AGGREGATED, passes={1: 3, 2: 2}, completed={3: 2}):
            sent.append(self.send_feature(102, worker=1))
            self.expect_sum(901, sent)
            self.expect_sum(903, sent)


class HundredDestinations(SwitchTest):
    """Thirteen hops, a hundred sums by one source: all arrive, in order, each exactly once."""

    def runTest(self) -> None:
        places = [divmod(number, BANKS) for number in range(100)]
        for source, worker in SOURCES.items():
            self.add_source(source, worker=worker)
            for hop in range(13):
                slots = {bank: (hop, 2) for own, bank in places if own == hop}
                self.entries.add_fanout(
                    block=1, source=source, hop=hop, slots=slots, last_hop=hop == 12
                )
        for number, (hop, bank) in enumerate(places):
            self.add_destination(900 + number, worker=number % 3, slot=hop, bank=bank)
        with self.counted(Outcome.AGGREGATED, passes={8: 12, 4: 1}, completed={}):
            sent = [self.send_feature(101, worker=0)]
        completed = {bank: 13 if bank < 4 else 12 for bank in range(BANKS)}
        # A pass ends at its first completion.
        with self.counted(Outcome.AGGREGATED, passes={1: 100}, completed=completed):
            sent.append(self.send_feature(102, worker=1))
            for number in range(100):
                self.expect_sum(900 + number, sent, worker=number % 3)


class EveryLane(SwitchTest):
    """Sources of all 32 loop ports: each makes its way through three hops."""

    def runTest(self) -> None:
        vertices = range(64, 64 + LOOP_LANES)
        expected: list = []
        frames: list = []
        for number, vertex in enumerate(vertices):
            self.add_source(vertex, worker=0)
            lanes = random_lanes(vertex)
            frames.append(feature(vertex, lanes, port=1))
            self.stamp(frames[-1])
            for hop in range(3):
                slots = {hop: (number, 1)}
                self.entries.add_fanout(
                    block=1, source=vertex, hop=hop, slots=slots, last_hop=hop == 2
                )
                self.add_destination(vertex + 1000 * hop, worker=2, slot=number, bank=hop)
                expected.append(self._sum(vertex + 1000 * hop, lanes, frames[-1]))
        completed = dict.fromkeys(range(3), LOOP_LANES)
        total = 3 * LOOP_LANES
        with self.counted(Outcome.AGGREGATED, LOOP_LANES, passes={1: total}, completed=completed):
            self.send(1, *frames)
            self.expect_all(3, expected)

    @staticmethod
    def _sum(vertex: int, lanes: Lanes, completed_by: object) -> object:
        return sum_to(3, vertex, lanes, count=1, completed_by=completed_by)


class EchoAfterTheLastHop(SwitchTest):
    """One ACK, when the feature has been through all its hops; none without Echo."""

    def runTest(self) -> None:
        self.add_source(101, worker=0)
        for hop in range(3):
            self.entries.add_fanout(
                block=1, source=101, hop=hop, slots={hop: (7, 2)}, last_hop=hop == 2
            )
        with self.counted(Outcome.AGGREGATED, passes={1: 3}, completed={}):
            packet, _ = self.send_feature(101, worker=0, Echo=1)
            self.expect(1, ack_of(packet, accepted=1))
        with self.counted(Outcome.AGGREGATED, passes={1: 3}, completed={}):
            self.send_feature(101, worker=0, round_=2)


class EchoAfterALastSum(SwitchTest):
    """When the last pass completes a sum the ACK comes one round of the loop later, once."""

    def runTest(self) -> None:
        self.add_source(101, worker=0)
        for hop in range(2):
            slots = {0: (hop, 1), 5: (hop, 1)}
            self.entries.add_fanout(block=1, source=101, hop=hop, slots=slots, last_hop=hop == 1)
            for bank in slots:
                # To the sender itself, so that the order of sums and ACK shows.
                self.add_destination(900 + 10 * hop + bank, worker=0, slot=hop, bank=bank)
        with self.counted(Outcome.AGGREGATED, passes={1: 4}, completed={0: 2, 5: 2}):
            sent = self.send_feature(101, worker=0, Echo=1)
            for vertex in (900, 905, 910, 915):
                self.expect_sum(vertex, [sent], worker=0)
            self.expect(1, ack_of(sent[0], accepted=1))


class EchoOfEverySource(SwitchTest):
    """Every sender gets its own ACK, also the one whose feature completes the sum."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        with self.counted(Outcome.AGGREGATED, 2, passes={1: 2}, completed={0: 1}):
            sent = [self.send_feature(s, worker=own, Echo=1) for s, own in SOURCES.items()]
            self.expect(1, ack_of(sent[0][0], accepted=1))
            self.expect(2, ack_of(sent[1][0], accepted=1))
            self.expect_sum(900, sent)
