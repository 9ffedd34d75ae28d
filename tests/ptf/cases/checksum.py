"""parser.p4: a corrupted packet is dropped and never summed; packets leave with a right one."""

from scapy.packet import Packet

from switchgnn.controller import Outcome
from switchgnn.host.wire.header import BODY_AT, HEADER_AT, Kind
from tests.ptf.switchgnn_ptf.packets import (
    barrier_answer,
    done,
    feature,
    fetch,
    random_lanes,
    recall,
)
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

SOURCES = {101: 0, 102: 1}
KIND_AT = HEADER_AT + 12  # flags and kind
CHECKSUM_AT = BODY_AT - 4


def damaged(packet: Packet) -> list[bytes]:
    """Return the frame once for every byte of header and body, with one bit of it flipped."""
    whole = bytes(packet)
    return [
        whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :]
        for at in range(HEADER_AT, len(whole))
        # The low half is the kind: with another kind it is another packet (session.p4).
        for bit in [0x80 if at == KIND_AT else 1 << at % 8]
    ]


class EveryByteOfAFeatureIsChecked(SwitchTest):
    """One wrong bit in any byte of header, checksum or lanes; then the right frame counts."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        frames = damaged(feature(101, random_lanes(1), port=1))
        with self.counted(Outcome.MALFORMED, len(frames), passes={}):
            self.send(1, *frames)
        self.check_sum(900, SOURCES)


class EveryByteOfABarePacketIsChecked(SwitchTest):
    """One wrong bit in any byte of a RECALL or a FETCH: no answer, and nothing is released."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        for packet in (recall(900, port=3), fetch(101, 900, port=3)):
            frames = damaged(packet)
            with self.counted(Outcome.MALFORMED, len(frames), passes={}):
                self.send(3, *frames)
        self.check_sum(900, SOURCES)


class EveryByteOfADoneIsChecked(SwitchTest):
    """One wrong bit in any byte of a DONE sets no worker's bit and opens nothing."""

    def runTest(self) -> None:
        with self.counted(Outcome.DONE_COLLECTED):
            self.send(1, done(0, block=0, magnitude=5))
        frames = damaged(done(1, block=0, magnitude=0x3F800000))
        with self.counted(Outcome.MALFORMED, len(frames)):
            self.send(2, *frames)
        asked = done(0, block=0, magnitude=5)
        with self.counted(Outcome.DONE_REPEATED):
            self.send(1, asked)
            self.expect(1, barrier_answer(Kind.WAITING, asked, to=1, workers=0b001, magnitude=5))
