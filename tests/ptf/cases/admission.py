# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""admission.p4: what a port may bring in."""

from scapy.packet import Packet

from switchgnn.controller import Outcome
from switchgnn.host.header import BODY_AT, ETHERNET_BYTES, HEADER_AT, Kind
from switchgnn_ptf.packets import done, feature, random_lanes, recall, resigned
from switchgnn_ptf.switch_test import SwitchTest

SOURCES = {101: 0, 102: 1}
FEATURE = feature(101, random_lanes(1), port=1)
DONE = done(0, block=0)
BARE = recall(900, port=1)


class KindsOfTheSwitchAreDropped(SwitchTest):
    """SUM, ADVANCE, WAITING, ACK, MISSING and kinds that do not exist are not a worker's."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        frames = [resigned(FEATURE, Kind=Kind.SUM), resigned(BARE, Kind=Kind.ACK, Is_ACK=1)]
        frames += [resigned(DONE, Kind=kind) for kind in (Kind.ADVANCE, Kind.WAITING)]
        frames += [resigned(BARE, Kind=kind) for kind in (0, Kind.MISSING, *range(10, 16))]
        for frame in frames:
            with self.counted(Outcome.UNKNOWN_KIND):
                self.send(1, frame)
        with self.counted(Outcome.AGGREGATED, 2):
            self.check_sum(900, SOURCES)


class OneVersionOnly(SwitchTest):
    """A frame of another version is malformed even if its checksum is right."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        frames: list[Packet] = [
            resigned(packet, Version=version)
            for packet in (FEATURE, DONE, BARE)
            for version in (0, 2, 3, 15)
        ]
        with self.counted(Outcome.MALFORMED, len(frames), passes={}):
            self.send(1, *frames)
        with self.counted(Outcome.AGGREGATED, 2):
            self.check_sum(900, SOURCES)


class TruncatedFramesAreMalformed(SwitchTest):
    """A frame that ends inside IPv4, the SwitchGNN header or its body is dropped."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        whole, barrier = bytes(FEATURE), bytes(DONE)
        ends = (ETHERNET_BYTES + 1, HEADER_AT - 1, HEADER_AT, HEADER_AT + 7, BODY_AT - 1)
        frames: list[Packet | bytes] = [whole[:end] for end in ends]
        frames += [whole[:BODY_AT], whole[: BODY_AT + 4], whole[:-1]]
        frames += [barrier[:BODY_AT], barrier[: BODY_AT + 4], barrier[:-1]]
        with self.counted(Outcome.MALFORMED, len(frames), passes={}):
            self.send(1, *frames)
        with self.counted(Outcome.AGGREGATED, 2):
            self.check_sum(900, SOURCES)
