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
    """And of a RECALL and a FETCH: one wrong bit in any byte of header, checksum or lanes."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        whole = {1: [feature(101, random_lanes(1), port=1)]}
        whole[3] = [recall(900, port=3), fetch(101, 900, port=3)]
        for port, packets in whole.items():
            for frames in map(damaged, packets):
                self.check_unanswered(Outcome.MALFORMED, port, *frames, passes={})
        self.check_sum(900, SOURCES)


class EveryByteOfADoneIsChecked(SwitchTest):
    """One wrong bit in any byte of a DONE sets no worker's bit and opens nothing."""

    def runTest(self) -> None:
        self.check_unanswered(Outcome.DONE_COLLECTED, 1, done(0, block=0, magnitude=5))
        frames = damaged(done(1, block=0, magnitude=0x3F800000))
        self.check_unanswered(Outcome.MALFORMED, 2, *frames)
        asked = done(0, block=0, magnitude=5)
        answer = barrier_answer(Kind.WAITING, asked, to=1, workers=0b001, magnitude=5)
        self.exchange(Outcome.DONE_REPEATED, 1, asked, answer)
