"""Pools: parts of the slots, in each of which a unit is in flight, with a barrier of its own."""

from switchgnn.controller import Outcome
from switchgnn.host.wire.header import NOBODY, Refusal
from tests.ptf.switchgnn_ptf.bases import POOLED_SOURCES as SOURCES
from tests.ptf.switchgnn_ptf.bases import PooledTest
from tests.ptf.switchgnn_ptf.packets import NEXT_ROUND, ack_of, feature, random_lanes


class UnitsOfTwoPoolsAreInFlight(PooledTest):
    """Their contributions alternate, and each sum is exact."""

    def runTest(self) -> None:
        self.open_pools()
        with self.counted(Outcome.AGGREGATED, 4, completed={0: 2}):
            first = [self.feature_of(101, pool) for pool in (0, 1)]
            for pool in (1, 0):
                self.expect_sum(900, [first[pool], self.feature_of(102, pool)])


class AnOlderUnitIsNotStale(PooledTest):
    """A source whose feature of the later unit is here may still send that of the older one."""

    def runTest(self) -> None:
        self.open_pools()
        with self.counted({Outcome.AGGREGATED: 2, Outcome.DUPLICATE: 1}):
            for pool, accepted in ((1, 1), (0, 1)):
                packet, _ = self.feature_of(101, pool, Echo=1)
                self.expect(1, ack_of(packet, accepted=accepted))
            packet, _ = self.feature_of(101, 1, Echo=1)
            self.expect(1, ack_of(packet, accepted=1))


class APoolGoesOnByItself(PooledTest):
    """Its barrier lets the next unit of its own in, and nothing into the other pool."""

    def runTest(self) -> None:
        self.open_pools()
        last = {"block": 1, "fragment": 1, "pool": 1}
        self.collect(0, 2, following=(1, 3), **last)
        self.complete(1, following=(1, 3), **last)
        with self.counted(Outcome.WRONG_TAG, 2, passes={}):
            for fragment in (2, 4):
                self.feature_of(101, 0, fragment=fragment)
        self.check_sum(900, SOURCES, fragment=3, Pool=1)
        self.check_sum(900, SOURCES, fragment=0)


class FeaturesOfAPoolMayBeEarly(PooledTest):
    """They come while the round is opened, in that pool only."""

    def runTest(self) -> None:
        self.open_pools()
        for pool, early in ((0, True), (1, False)):
            unit = {"block": 1, "fragment": pool, "pool": pool, "early": early}
            following = (1, 0) if early else NEXT_ROUND
            self.collect(0, 2, following=following, **unit)
            self.complete(1, following=following, **unit)
        with self.counted(Outcome.WRONG_TAG, passes={}):
            self.feature_of(101, 1, round_=2)
        self.check_sum(900, SOURCES, round_=2)


class PoolsThatThePlanLacksAreRefused(PooledTest):
    """Their slots are those of others."""

    def runTest(self) -> None:
        self.open_pools()
        with self.counted(Outcome.WRONG_TAG, 2, passes={}):
            for pool in (2, 3):
                self.send(1, feature(101, random_lanes(7), port=1, Pool=pool))
        self.check_refusal(Refusal.TAG, {"block": 0, "pool": 2}, largest=NOBODY, round_=0)


class TheMagnitudeGrowsUntilAPoolIsOpen(PooledTest):
    """All have the answer of that pool, so a larger one in another pool comes too late."""

    def runTest(self) -> None:
        self.serve(any_tag=0, pools=2, pool_slots=8)
        self.open(pool=0, magnitude=50)
        self.collect(0, 1, block=0, pool=1, magnitude=50)
        with self.counted(Outcome.DONE_COLLECTED):
            self.expect_advance(self.report(2, block=0, pool=1, magnitude=99), magnitude=50)


class AnAllReduceHasNoPool(PooledTest):
    """With one, it would have another tag."""

    def runTest(self) -> None:
        self.open_pools()
        packet = feature(101, random_lanes(7), port=1)
        packet["SwitchGNN"].Kind, packet["SwitchGNN"].Pool = 11, 1
        self.check_unanswered(Outcome.MALFORMED, 1, packet)
