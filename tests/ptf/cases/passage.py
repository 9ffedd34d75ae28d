# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""passage.p4: what goes between workers and a switch above this one."""

from switchgnn.controller import Outcome
from switchgnn.host.wire.header import Kind
from tests.ptf.switchgnn_ptf.leaf_spine_test import (
    ABOVE,
    LeafTest,
    from_above,
    sum_from_above,
)
from tests.ptf.switchgnn_ptf.packets import (
    PARTIAL,
    ack_of,
    done,
    feature,
    fetch,
    random_lanes,
    recall,
    relayed,
    relayed_fetch,
)

SOURCES = {101: 0, 102: 1}
QUIET = {"passes": {}, "completed": {}}


class PartOfASumGoesUp(LeafTest):
    """As the feature of a partial sum, with all that was added, once; the last one's ACK after.

    Its Level is the leaf's, whatever a worker says.
    """

    def runTest(self) -> None:
        self.add_part(900, SOURCES, worker=None)
        with self.counted(Outcome.AGGREGATED, 2, completed={0: 1}):
            sent = [
                self.send_feature(101, worker=0),
                self.send_feature(102, worker=1, Echo=1, Feature_group=3, Level=5),
            ]
            self.expect(ABOVE, self.part(sent, sent[-1][0]))
            self.expect(2, ack_of(sent[-1][0], accepted=1))


class PartAndWholeLeaveOnePacket(LeafTest):
    """A feature may complete a part, and behind it a sum of this leaf's own."""

    def runTest(self) -> None:
        self.add_part(900, {101: 0}, worker=None)
        self.add_destination(901, worker=1, slot=8, bank=1)
        self.add_source(105, worker=0)
        self.entries.add_fanout(block=1, source=105, slots={0: (9, 1), 1: (8, 1)})
        group = {"port": ABOVE, "group": 16 + 3 * 32}
        place = {"block": 1, "bank": 0, "slot": 9, "vertex": 902}
        self.entries.add_partial(**place, source=PARTIAL + 1, **group)
        with self.counted(Outcome.AGGREGATED, completed={0: 1, 1: 1}):
            sent = [self.send_feature(105, worker=0)]
            self.expect(ABOVE, self.part(sent, sent[0][0], PARTIAL + 1, vertex=902))
            self.expect_sum(901, sent, worker=1)


class RecallsAndFetchesGoUp(LeafTest):
    """Where a switch above completes the sum; of a worker's own destination only."""

    def runTest(self) -> None:
        self.add_part(900, SOURCES, worker=2)
        self.entries.add_distant(block=1, vertex=901, port=3, above=ABOVE)
        for asked, up in (
            (recall(900, port=3), relayed),
            (recall(901, port=3), relayed),
            # The source is of another leaf: here it is not known.
            (fetch(555, 901, port=3), relayed_fetch),
        ):
            with self.counted(Outcome.PASSED_ON, **QUIET):
                self.send(3, asked)
                self.expect(ABOVE, up(asked, to=ABOVE))
            with self.counted(Outcome.WRONG_PORT):
                self.send(1, asked)


class SumComesDown(LeafTest):
    """To the destination's worker, as it is; of an unknown one to nobody."""

    def runTest(self) -> None:
        self.entries.add_distant(block=1, vertex=900, port=3, above=ABOVE)
        packet = sum_from_above(900)
        with self.counted(Outcome.PASSED_ON, **QUIET):
            self.send(ABOVE, packet)
            self.expect(3, relayed(packet, to=3))
        with self.counted(Outcome.UNKNOWN_VERTEX):
            self.send(ABOVE, sum_from_above(901))
        with self.counted(Outcome.UNKNOWN_KIND):
            self.send(1, packet)


class MissingComesDown(LeafTest):
    """With its count. As long as the part here is not complete, that is all."""

    def runTest(self) -> None:
        self.add_part(900, SOURCES)
        self.entries.add_distant(block=1, vertex=901, port=2, above=ABOVE)
        for vertex, port in ((900, 3), (901, 2)):
            word = from_above(Kind.MISSING, vertex, Count=17, Resend=1)
            with self.counted(Outcome.PASSED_ON, **QUIET):
                self.send(ABOVE, word)
                self.expect(port, relayed(word, to=port))
        with self.counted(Outcome.AGGREGATED, completed={}):
            self.send_feature(101, worker=0)
        with self.counted(Outcome.PASSED_ON, **QUIET):
            word = from_above(Kind.MISSING, 900, Count=17, Resend=1)
            self.send(ABOVE, word)
            self.expect(3, relayed(word, to=3))


class FetchComesDownToTheSource(LeafTest):
    """And changes no slot here: what is released is above."""

    def runTest(self) -> None:
        self.add_part(900, SOURCES, worker=None)
        asked = from_above(Kind.FETCH, 900, Src_id=102)
        with self.counted(Outcome.PASSED_ON, **QUIET):
            self.send(ABOVE, asked)
            self.expect(2, relayed_fetch(asked, to=2))


class FetchedFeatureGoesUpAndDown(LeafTest):
    """Past all slots: up from its worker, down to the destination's."""

    def runTest(self) -> None:
        self.add_part(900, SOURCES, worker=None)
        self.entries.add_distant(block=1, vertex=901, port=3, above=ABOVE)
        with self.counted(Outcome.RESENT, **QUIET):
            sent, _ = self.send_feature(101, worker=0, Resend=1, Dst_id=900)
            self.expect(ABOVE, relayed(sent, to=ABOVE))
        coming = feature(555, random_lanes(3), port=ABOVE, Resend=1, Dst_id=901)
        with self.counted(Outcome.RESENT, **QUIET):
            self.send(ABOVE, coming)
            self.expect(3, relayed(coming, to=3))


class NothingElseComesDown(LeafTest):
    """A switch above sends no features of its own and is done with nothing."""

    def runTest(self) -> None:
        self.add_part(900, SOURCES)
        with self.counted(Outcome.UNKNOWN_KIND, 2):
            self.send(ABOVE, feature(101, random_lanes(1), port=ABOVE))
            self.send(ABOVE, done(0, block=1, port=ABOVE))
