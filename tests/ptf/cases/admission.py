"""session.p4: what a port may bring in."""

from scapy.layers.inet import UDP, IPOption_Router_Alert
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw

from switchgnn.controller import Outcome
from switchgnn.host.scapy_host.layers import WaitingLayer as Waiting
from switchgnn.host.wire.header import BODY_AT, ETHERNET_BYTES, HEADER_AT, PROTOCOL, Kind
from tests.ptf.switchgnn_ptf.packets import (
    NETWORK,
    barrier_answer,
    done,
    feature,
    ordinary,
    random_lanes,
    recall,
    resigned,
    station,
)
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

SOURCES = {101: 0, 102: 1}
FEATURE = feature(101, random_lanes(1), port=1)
DONE = done(0, block=0)
BARE = recall(900, port=1)


class KindsOfTheSwitchAreDropped(SwitchTest):
    """SUM, ADVANCE, WAITING, ACK, MISSING and kinds that do not exist are not a worker's."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        frames = [resigned(FEATURE, Kind=Kind.SUM), resigned(BARE, Kind=Kind.ACK, Is_ACK=1)]
        frames += [resigned(DONE, Kind=Kind.ADVANCE), resigned(DONE / Waiting(), Kind=Kind.WAITING)]
        frames += [
            resigned(BARE, Kind=kind) for kind in (0, Kind.MISSING, *range(max(Kind) + 1, 16))
        ]
        for frame in frames:
            self.check_unanswered(Outcome.UNKNOWN_KIND, 1, frame)
        self.check_sum(900, SOURCES)


class OneVersionOnly(SwitchTest):
    """A frame of another version is malformed even if its checksum is right."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        frames: list[Packet] = [
            resigned(packet, Version=version)
            for packet in (FEATURE, DONE, BARE)
            for version in (0, 1, 2, 3, 4, 6, 15)
        ]
        self.check_unanswered(Outcome.MALFORMED, 1, *frames, passes={})
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
        self.check_unanswered(Outcome.MALFORMED, 1, *frames, passes={})
        self.check_sum(900, SOURCES)


class OtherWrappingsAreMalformed(SwitchTest):
    """A host must not take it for the switch's word: ours with options, or in fragments."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        to, body = station(2).mac, Raw(bytes(FEATURE)[HEADER_AT:])
        options = [IPOption_Router_Alert()]
        wrappings = (
            {"options": options},
            {"options": options * 10},
            {"flags": "MF"},
            {"flags": "MF", "frag": 1},
            {"frag": 0x1FFF},
        )
        with self.counted(Outcome.MALFORMED, 2 * len(wrappings), passes={}):
            for wrapping in wrappings:
                for address in (to, NETWORK.switch.mac):
                    self.send(1, ordinary(1, address, body, proto=PROTOCOL, **wrapping))
        other = ordinary(1, to, body)
        self.exchange(Outcome.FORWARDED, 1, other, {2: other})
        self.check_sum(900, SOURCES)


class VlanTagsAreMalformed(SwitchTest):
    """A tagged frame is dropped; without the tag it is forwarded."""

    def runTest(self) -> None:
        plain = ordinary(1, station(2).mac, UDP(dport=99), Raw(bytes(64)))
        frames = [
            Ether(src=packet.src, dst=packet.dst, type=ethertype) / Dot1Q(vlan=7) / packet.payload
            for packet in (plain, FEATURE)
            for ethertype in (0x8100, 0x88A8)
        ]
        self.check_unanswered(Outcome.MALFORMED, 1, *frames, passes={})
        self.exchange(Outcome.FORWARDED, 1, plain, {2: plain})


class MagnitudesAreFinite(SwitchTest):
    """Infinity, NaN and negative magnitudes open nothing; the largest float does."""

    def runTest(self) -> None:
        impossible = (0x7F800000, 0x7F800001, 0x7FC00000, 0x80000000, 0xBF800000, 0xFFFFFFFF)
        with self.counted(Outcome.MALFORMED, len(impossible)):
            self.send(1, *(done(0, block=0, magnitude=magnitude) for magnitude in impossible))
        largest = {"magnitude": 0x7F7FFFFF}
        asked = done(0, block=0, **largest)
        with self.counted({Outcome.DONE_COLLECTED: 1, Outcome.DONE_REPEATED: 1}):
            self.send(1, asked, asked)
            self.expect(1, barrier_answer(Kind.WAITING, asked, to=1, workers=0b001, **largest))
