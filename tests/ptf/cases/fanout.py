"""fanout.p4: the slots that a packet adds to."""

from switchgnn.controller import Outcome
from tests.ptf.switchgnn_ptf.bases import RecoveryTest
from tests.ptf.switchgnn_ptf.entries import BANKS
from tests.ptf.switchgnn_ptf.packets import PARTIAL, ack_of, sum_to
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

SOURCES = {101: 0, 102: 1}


class UnknownBlockIsDropped(SwitchTest):
    """A source that the block does not have changes nothing and is not remembered."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        with self.counted(Outcome.UNKNOWN_BLOCK, 2, passes={}):
            self.send_feature(101, worker=0, block=2)
            self.send_feature(101, worker=0, block=2, round_=2, Echo=1)
        self.check_sum(900, SOURCES)


class WrongCountIsDropped(SwitchTest):
    """The feature of a vertex that claims to be none, or several, is not remembered."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        with self.counted(Outcome.WRONG_COUNT, 3, passes={}):
            for count in (0, 2, 0xFFFF):
                self.send_feature(101, worker=0, count=count, Echo=1)
        self.check_sum(900, SOURCES)


class MissingHopEndsTheWay(SwitchTest):
    """A hole in the hops: earlier hops count, later ones do not, and there is no ACK."""

    def runTest(self) -> None:
        self.add_source(101, worker=0)
        self.entries.add_fanout(source=101, slots={0: (7, 1)}, last_hop=False)
        self.add_destination(900, worker=2, slot=7)
        with self.counted(Outcome.AGGREGATED, passes={1: 1}, completed={0: 1}):
            self.expect_sum(900, [self.send_feature(101, worker=0, Echo=1)])


class EveryBankIsFound(RecoveryTest):
    """The same slot number in each bank: a recall and a fetch touch their own bank only."""

    def runTest(self) -> None:
        for bank in range(BANKS):
            self.add_sum(900 + bank, SOURCES, bank=bank, block=1 + bank, known=bank != 0)
        for bank in range(BANKS):
            with self.counted(Outcome.AGGREGATED, 2, completed={bank: 1}):
                sent = self.send_features(SOURCES, block=1 + bank)
                self.expect_sum(900 + bank, sent)
            self.check_recalled(900 + bank, sent, bank=bank, block=1 + bank)
            for fetched in (101, 102):
                self.check_fetch(
                    fetched,
                    900 + bank,
                    owner=SOURCES[fetched],
                    events={"released": {bank: 1}},
                    block=1 + bank,
                )


class FirstAndLastSlotAreFound(RecoveryTest):
    """All bits of a slot's number count."""

    def runTest(self) -> None:
        state = "state" if self.entries.one_bank else "bank0.state"
        last = self.client.get_layout().registers[state].size - 1
        self.add_sum(900, SOURCES, slot=0, block=1)
        self.add_sum(901, SOURCES, slot=last, block=2, known=True)
        for block in (1, 2):
            with self.counted(Outcome.AGGREGATED):
                self.send_feature(101, worker=0, block=block)
            self.check_missing(899 + block, count=1, block=block)


class PartialSumsFindEveryBank(RecoveryTest):
    """The same slot number in each bank: a partial sum touches one, in one pass, and is done."""

    def runTest(self) -> None:
        self.add_source(PARTIAL, worker=0)
        for bank in range(BANKS):
            entry = {"slot": 7, "bank": bank, "expected": 3, "senders": [0]}
            self.add_destination(900 + bank, worker=2, **entry)
        for bank in range(BANKS):
            tag = {"round_": 1 + bank, "Dst_id": 900 + bank}
            with self.counted(Outcome.AGGREGATED, passes={1: 1}, completed={bank: 1}):
                packet, lanes = self.send_feature(PARTIAL, worker=0, count=3, Echo=1, **tag)
                self.expect(3, sum_to(3, 900 + bank, lanes, count=3, completed_by=packet))
                self.expect(1, ack_of(packet, accepted=1))
