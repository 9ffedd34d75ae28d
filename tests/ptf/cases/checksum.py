# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""checksum.p4: a corrupted packet is dropped and never summed; packets leave with a right one."""

from scapy.layers.inet import IP
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
    resigned,
    sum_to,
)
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

SOURCES = {101: 0, 102: 1}
KIND_AT = HEADER_AT + 12  # flags and kind
CHECKSUM_AT = BODY_AT - 4


def _damaged(packet: Packet, bit: int) -> list[bytes]:
    """Return the frame once for every byte of header and body, with one bit of it turned."""
    whole = bytes(packet)
    return [
        whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :]
        for at in range(HEADER_AT, len(whole))
        # The low half is the kind: with another kind it is another packet (admission.p4).
        if at != KIND_AT or bit >= 0x10
    ]


class EveryByteOfAFeatureIsChecked(SwitchTest):
    """One wrong bit in any byte of header, checksum or lanes; then the right frame counts."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        packet = feature(101, random_lanes(1), port=1)
        for bit in (0x80, 0x01):
            frames = _damaged(packet, bit)
            with self.counted(Outcome.MALFORMED, len(frames), passes={}):
                self.send(1, *frames)
        with self.counted(Outcome.AGGREGATED, 2, completed={0: 1}):
            self.check_sum(900, SOURCES)


class EveryByteOfABarePacketIsChecked(SwitchTest):
    """One wrong bit in any byte of a RECALL or a FETCH: no answer, and nothing is released."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        for packet in (recall(900, port=3), fetch(101, 900, port=3)):
            frames = [frame for bit in (0x80, 0x01) for frame in _damaged(packet, bit)]
            with self.counted(Outcome.MALFORMED, len(frames), passes={}):
                self.send(3, *frames)
        with self.counted(Outcome.AGGREGATED, 2, completed={0: 1}):
            self.check_sum(900, SOURCES)


class EveryByteOfADoneIsChecked(SwitchTest):
    """One wrong bit in any byte of a DONE sets no worker's bit and opens nothing."""

    def runTest(self) -> None:
        with self.counted(Outcome.DONE_COLLECTED):
            self.send(1, done(0, block=0, magnitude=5))
        packet = done(1, block=0, magnitude=0x3F800000)
        for bit in (0x80, 0x01):
            frames = _damaged(packet, bit)
            with self.counted(Outcome.MALFORMED, len(frames)):
                self.send(2, *frames)
        asked = done(0, block=0, magnitude=5)
        with self.counted(Outcome.DONE_REPEATED):
            self.send(1, asked)
            self.expect(1, barrier_answer(Kind.WAITING, asked, to=1, workers=0b001, magnitude=5))


class ChecksumOfAnotherFrame(SwitchTest):
    """Checksums of zeros, of ones, and of another feature are wrong."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        packet = feature(101, random_lanes(1), port=1)
        other_frame = bytes(feature(101, random_lanes(2), port=1))
        other = int.from_bytes(other_frame[CHECKSUM_AT:BODY_AT], "big")
        frames = []
        for checksum in (0, 0xFFFFFFFF, other):
            frame = resigned(packet)
            frame["SwitchGNN"].Checksum = checksum
            frames.append(frame)
        with self.counted(Outcome.MALFORMED, 3, passes={}):
            self.send(1, *frames)
        with self.counted(Outcome.AGGREGATED, 2):
            self.check_sum(900, SOURCES)


class Ipv4ChecksumIsMadeAnew(SwitchTest):
    """Packets leave with a right IPv4 checksum, which is not verified on arrival."""

    def runTest(self) -> None:
        self.add_sum(900, {101: 0})
        lanes = random_lanes(1)
        packet = feature(101, lanes, port=1)
        packet[IP].chksum = 0x0BAD
        with self.counted(Outcome.AGGREGATED):
            self.send(1, packet)
            self.expect(3, sum_to(3, 900, lanes, count=1, completed_by=packet))
