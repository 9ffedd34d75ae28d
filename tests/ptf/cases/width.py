"""Frames of 8 to 256 lanes, and slots of several banks (payload.p4, banks.p4)."""

from collections.abc import Iterable, Mapping
from typing import Any

from scapy.packet import Packet

from switchgnn.controller import Outcome
from switchgnn.host.wire.header import BODY_AT
from tests.ptf.switchgnn_ptf.bases import BarrierTest
from tests.ptf.switchgnn_ptf.entries import BANKS
from tests.ptf.switchgnn_ptf.packets import WIDTHS, done, feature, random_lanes, recall
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

SOURCES = {101: 0, 102: 1}
# BMv2 has room for 512 bytes more than a packet had when it came, and ends when it grows by more:
# so it cannot answer a recall, which has no body, with 256 lanes.
WIDEST_ANSWER = {"bmv2": 128}
FRAME_BYTES = {lanes: 60 + 4 * lanes for lanes in (8, 16, 24, 32, 40, 64, 112, 128, 200, 256)}
WIDE = (64, 72, 128, 232, 256)


def banks_of(lanes: int) -> int:
    return next(banks for banks in (1, 2, 4, 8) if lanes <= 32 * banks)


class WidthTest(SwitchTest):
    """Cases with sessions of other widths."""

    def begin(self, lanes: int) -> None:
        self.serve(session=self.session + 1, lanes=lanes)

    def fitting(self, widths: Iterable[int]) -> list[int]:
        """Return the widths that the program has room for."""
        return [lanes for lanes in widths if lanes <= (64 if self.entries.one_bank else 256)]

    def meet(self, sources: Mapping[int, int], slots: Mapping[int, int], **entry: Any) -> None:
        """Let sources meet in the slots, a number for each bank; the sum of bank b is 900 + b."""
        for source in sources:
            both = {bank: (slot, len(sources)) for bank, slot in slots.items()}
            self.entries.add_fanout(block=entry.get("block", 1), source=source, slots=both)
        for bank, slot in slots.items():
            place = {"slot": slot, "bank": bank, "expected": len(sources)}
            self.add_destination(900 + bank, worker=2, **place, **entry)


class NarrowFramesInWideSlots(WidthTest):
    """The last fragment may be narrower than the slot; the next round's first one is wide again."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        for lanes in self.fitting((16, 32, *WIDE)):
            self.begin(lanes)
            for narrow in {8, lanes // 16 * 8}:
                for round_, numbers in enumerate((lanes, narrow, lanes), 1 + 3 * WIDTHS[narrow]):
                    tag = {"round_": round_, "numbers": numbers}
                    self.check_sum(900, SOURCES, passes={1: 2}, **tag)


class NeighboursAreLeftAlone(WidthTest):
    """Slots of the same number in all groups of banks keep their own sums."""

    def runTest(self) -> None:
        self.add_owners(SOURCES)
        for block, lanes in enumerate(self.fitting(FRAME_BYTES), 1):
            self.meet(SOURCES, dict.fromkeys(range(0, BANKS, banks_of(lanes)), 5), block=block)
        for block, lanes in enumerate(self.fitting(FRAME_BYTES), 1):
            self.begin(lanes)
            firsts = range(0, BANKS, banks_of(lanes))
            passes = {len(firsts): 1, 1: len(firsts)} if len(firsts) > 1 else {1: 2}
            completed = dict.fromkeys(firsts, 1)
            with self.counted(Outcome.AGGREGATED, 2, passes=passes, completed=completed):
                sent = self.send_features(SOURCES, numbers=lanes, block=block)
                for bank in firsts:
                    self.expect_sum(900 + bank, sent)


class SeveralHopsOfAWideFrame(WidthTest):
    """A frame that goes around is as wide in all its passes."""

    def runTest(self) -> None:
        self.add_owners(SOURCES)
        for lanes in self.fitting(WIDE):
            block = WIDTHS[lanes]
            for source in SOURCES:
                for hop in (0, 1):
                    way = {"slots": {0: (5 + hop, 2)}, "hop": hop, "last_hop": bool(hop)}
                    self.entries.add_fanout(block=block, source=source, **way)
            for hop in (0, 1):
                self.add_destination(900 + hop, worker=2, slot=5 + hop, block=block)
            self.begin(lanes)
            with self.counted(Outcome.AGGREGATED, 2, passes={1: 4}, completed={0: 2}):
                sent = self.send_features(SOURCES, numbers=lanes, block=block)
                for hop in (0, 1):
                    self.expect_sum(900 + hop, sent)


class WiderThanTheSessionIsMalformed(WidthTest):
    """In any kind."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        for lanes in self.fitting(FRAME_BYTES):
            self.begin(lanes)
            wider = [
                packet
                for more in FRAME_BYTES
                if more > lanes
                for packet in (
                    feature(101, random_lanes(1, more), port=1),
                    recall(900, port=1, Width=WIDTHS[more]),
                    done(0, block=1, lanes=more),
                )
            ]
            self.check_unanswered(Outcome.MALFORMED, 1, *wider, passes={})
            self.check_sum(900, SOURCES, numbers=lanes)


class TruncatedAndDamagedFramesAreMalformed(WidthTest):
    """A payload of every width must be whole, and is verified to its last byte."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        for lanes in self.fitting(FRAME_BYTES):
            self.begin(lanes)
            packet = feature(101, random_lanes(1, lanes), port=1)
            self.stamp(packet)
            whole = bytes(packet)
            ends = (BODY_AT, BODY_AT + 4, BODY_AT + 2 * lanes, len(whole) - 4, len(whole) - 1)
            frames: list[Packet | bytes] = [whole[:end] for end in ends]
            for at in range(BODY_AT, len(whole), 31):
                frames.append(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            frames.append(whole[:-1] + bytes([whole[-1] ^ 0x80]))
            self.check_unanswered(Outcome.MALFORMED, 1, *frames, passes={})
            self.check_sum(900, SOURCES, numbers=lanes)


class WidthIsPartOfTheTurn(BarrierTest):
    """A fragment of another width than the one that the workers have named is out of turn."""

    def runTest(self) -> None:
        self.serve(session=self.session + 1, lanes=64)
        self.add_sum(900, SOURCES)
        self.open(lanes=32)
        with self.counted(Outcome.WRONG_TAG, passes={}):
            self.send(1, feature(101, random_lanes(1, 64), port=1))
        self.check_sum(900, SOURCES)
