"""access.p4: recalls, fetches and resent features (invariant 2)."""

from switchgnn.controller import Outcome
from tests.ptf.switchgnn_ptf.bases import GIVEN_BACK, SOURCES, RecoveryTest, SumTest
from tests.ptf.switchgnn_ptf.packets import MAXIMUM, RELEASED, ack_of

STALE = {"stale": {0: 1}}


class RecallOfAnOlderTag(SumTest):
    """The slot belongs to a newer tag: nothing of the older sum is left, the newer is safe."""

    def runTest(self) -> None:
        self.complete(*SOURCES, round_=2, fragment=2)
        sent = self.contribute(101, 102, round_=2, fragment=3)
        for older in ({"round_": 1, "fragment": 3}, {"round_": 2, "fragment": 2}):
            self.check_missing(900, count=0, events=STALE, **older)
        self.check_missing(900, count=2, round_=2, fragment=3)
        self.complete(103, before=sent, round_=2, fragment=3)


class RecallOfANewerTag(SumTest):
    """A slot of an older tag, half full, complete or released, is taken over with nothing in it."""

    def runTest(self) -> None:
        self.complete(*SOURCES, fragment=0)
        self.check_missing(900, count=0, fragment=1)
        sent = self.contribute(101, fragment=1)
        self.check_missing(900, count=1, fragment=1)
        self.complete(103, 102, before=sent, fragment=1)
        self.contribute(101, 102, fragment=2)
        self.check_missing(900, count=0, round_=2)
        # This one is late.
        with self.counted(Outcome.AGGREGATED, completed={}, stale={0: 1}):
            self.send_feature(103, worker=2, fragment=2)
        self.check_recalled(900, self.complete(*SOURCES, round_=2), round_=2)
        self.check_fetch(101, 900, owner=0, round_=3)
        self.check_missing(900, count=0, round_=4)
        self.complete(*SOURCES, round_=4)


class RecallAndFetchOfAMaximum(SumTest):
    """They touch its slot without numbers, and all answers are of the same fragment."""

    def runTest(self) -> None:
        sent = self.contribute(101, 102, fragment=MAXIMUM)
        self.check_missing(900, count=2, fragment=MAXIMUM)
        sent = self.complete(103, before=sent, fragment=MAXIMUM)
        self.check_recalled(900, sent, fragment=MAXIMUM)
        self.check_fetch(101, 900, owner=0, fragment=MAXIMUM)
        self.check_resent(900, owner=2, fragment=MAXIMUM)
        self.complete(*SOURCES, round_=2)


class ReleasedSlotNeverCompletes(SumTest):
    """After a fetch the sum is the worker's own: late contributions complete nothing."""

    def runTest(self) -> None:
        self.contribute(101)
        self.check_fetch(102, 900, owner=1)
        self.contribute(102, 103, released=2)
        for _ in range(2):
            self.check_missing(900, count=RELEASED, events=GIVEN_BACK)


class FetchBeforeAllOthers(SumTest):
    """A slot that was empty, or of an older tag, is released all the same."""

    def runTest(self) -> None:
        self.check_fetch(101, 900, owner=0)
        self.contribute(*SOURCES, released=3)
        self.contribute(101, round_=2)
        self.check_fetch(101, 900, owner=0, round_=3)
        with self.counted(Outcome.AGGREGATED, completed={}, stale={0: 1}):
            self.send_feature(102, worker=1, round_=2)
        self.contribute(*SOURCES, released=3, round_=3)
        self.check_missing(900, count=RELEASED, events=GIVEN_BACK, round_=3)


class FetchOfAnOlderTag(SumTest):
    """It is relayed, as its owner may still have the feature; the newer sum is not released."""

    def runTest(self) -> None:
        sent = self.contribute(101, 102, fragment=3)
        fields = {"Level": 1, "Feature_group": 9, "Echo": 1, "fragment": 2}
        self.check_fetch(103, 900, owner=2, events=STALE, **fields)
        self.check_missing(900, count=2, fragment=3)
        self.complete(103, before=sent, fragment=3)


class FetchReleasesOneSlotOnly(RecoveryTest):
    """A source's other sums go on, in the pass that finds one of its slots released."""

    def runTest(self) -> None:
        for source in (101, 102):
            self.add_source(source, worker=source - 101)
            self.entries.add_fanout(source=source, slots={0: (7, 2), 3: (7, 2)})
        for vertex, bank in ((900, 0), (901, 3)):
            self.add_destination(vertex, worker=2, slot=7, bank=bank, expected=2)
        self.check_fetch(102, 900, owner=1)
        with self.counted(Outcome.AGGREGATED, 2, completed={3: 1}, released={0: 2}):
            sent = [self.send_feature(101, worker=0), self.send_feature(102, worker=1, Echo=1)]
            self.expect_sum(901, sent)
            self.expect(2, ack_of(sent[1][0], accepted=1))


class ResentGoesToItsDestination(SumTest):
    """Past the slots, to the destination's worker alone, as often as it comes."""

    def runTest(self) -> None:
        self.add_destination(901, worker=1, slot=8, expected=3)
        sent = self.contribute(102)
        for _ in range(2):
            self.check_resent(900, owner=2, Level=1, Feature_group=6)
            self.check_resent(901, owner=1)
        self.check_missing(900, count=1)
        self.complete(101, 103, before=sent)


class ResentIsNotRemembered(SumTest):
    """Nor acknowledged: before or after the source's ordinary feature, it is only passed on."""

    def runTest(self) -> None:
        self.check_resent(900, owner=2, round_=5)
        sent = self.contribute(101)
        self.check_resent(900, owner=2)
        with self.counted(Outcome.DUPLICATE):
            packet, _ = self.send_feature(101, worker=0, Echo=1)
            self.expect(1, ack_of(packet, accepted=1))
        self.check_resent(900, owner=2, fragment=0, round_=0, Echo=1)
        self.complete(102, 103, before=sent)
