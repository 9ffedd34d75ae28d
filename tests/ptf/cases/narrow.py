"""payload.p4: features and sums with lanes of fewer than 32 bits, or without a body."""

import math
from typing import Any

import numpy as np
from ptf.testutils import test_param_get
from scapy.packet import Packet, Raw

from switchgnn.controller import Outcome
from switchgnn.host.scapy_host.layers import Fragment, SwitchGNN
from switchgnn.host.wire.header import BODY_AT, Kind
from tests.ptf.cases.width import FRAME_BYTES, WIDEST_ANSWER, WidthTest
from tests.ptf.switchgnn_ptf import bases, packets

PAIR = {101: 0, 102: 1}
QUIET: dict[str, Any] = {"passes": {}, "completed": {}}
# Bits of the lanes, by their number.
NARROW = {
    lanes: (*(bits for bits, least in ((8, 24), (16, 16)) if lanes >= least), 0)
    for lanes in FRAME_BYTES
}


def lanes_of(bits: int, number: int = 32, seed: int = 1) -> packets.Lanes:
    """Return lanes over half the range of some bits, so that the sum of two has them as well."""
    if bits == 0:
        return np.zeros(number, np.int32)
    lanes = packets.random_lanes(seed, number) >> (33 - bits)
    lanes[:2] = -(2 ** (bits - 2)), 2 ** (bits - 2) - 1
    return lanes


def with_one(value: int, at: int, number: int = 32) -> packets.Lanes:
    lanes = np.zeros(number, np.int32)
    lanes[at] = value
    return lanes


def body_bytes(lanes: int, bits: int) -> int:
    """Return the bytes of a body: groups of 8 words."""
    return 32 * math.ceil(lanes * bits / 256)


def too_wide_for_bmv2(lanes: int, bits: int) -> bool:
    return 4 * lanes - body_bytes(lanes, bits) > 4 * WIDEST_ANSWER.get(
        test_param_get("setting"), 256
    )


class NarrowTest(bases.RecoveryTest, WidthTest):
    """Cases with one sum of two sources, in slot 7 of bank 0, for worker 2."""

    def setUp(self) -> None:
        super().setUp()
        self.add_sum(900, PAIR)

    def add_up(self, *features: tuple[packets.Lanes, int], **fields: Any) -> None:
        """Send features of lanes and bits; the last completes the exact sum."""
        with self.counted(Outcome.AGGREGATED, len(features), completed={0: 1}):
            sent = [
                self.send_lanes(source, *each, worker=own, **fields)
                for (source, own), each in zip(PAIR.items(), features, strict=True)
            ]
            self.expect_sum(900, sent)


class WideAndNarrowMeetInOneSlot(NarrowTest):
    """The sum is exact in each lane; the packet that completes it decides whether it is narrow."""

    def runTest(self) -> None:
        for lanes, narrow in NARROW.items():
            self.begin(lanes)
            orders = [(first, last) for first in (32, *narrow) for last in (32, *narrow)]
            for round_, (first, last) in enumerate(orders, 1):
                if too_wide_for_bmv2(lanes, min(first, last)):
                    continue
                # A wide packet may have small numbers.
                features = [
                    (lanes_of(8 if bits == 32 else bits, lanes, bits + 1), bits)
                    for bits in (first, last)
                ]
                packet = packets.feature(101, features[0][0], port=1, bits=first)
                self.assertEqual(len(packet), BODY_AT + body_bytes(lanes, first))
                self.add_up(*features, round_=round_)


class TheBodyHoldsTheWholeRange(NarrowTest):
    """The least and the largest number of 8 and 16 bits in every lane."""

    def runTest(self) -> None:
        round_ = 0
        for bits in (8, 16):
            corners = np.array([-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, -1, 0, 1], np.int32)
            for shift in range(len(corners)):
                round_ += 1
                lanes = corners[(np.arange(32) + shift) % len(corners)]
                self.add_up((lanes, bits), (lanes_of(0), 0), round_=round_)


class TheFewestBitsThatHoldTheSum(NarrowTest):
    """One lane decides, whichever it is, by the last number that fits and the next one."""

    def runTest(self) -> None:
        edges = [value for bits in (8, 16) for value in (2 ** (bits - 1), -(2 ** (bits - 1)) - 1)]
        values = [near for edge in edges for near in (edge, edge - np.sign(edge))]
        round_ = 0
        for value in (*values, 1, -1, 2**31 - 1, -(2**31)):
            for at in (0, 7, 8, 16, 31):
                round_ += 1
                bits = 16 if abs(value) < 2**15 else 32
                self.add_up((with_one(value, at), bits), (lanes_of(0), 0), round_=round_)


class EveryBankDecides(NarrowTest):
    """A number that does not fit may be in any bank of a wide frame."""

    def runTest(self) -> None:
        for lanes in (64, 128, 256):
            if too_wide_for_bmv2(lanes, 8):
                continue
            self.begin(lanes)
            round_ = 0
            for bank in range(lanes // 32):
                for value in (-129, 128, -32769, 32768):
                    round_ += 1
                    first = with_one(value, 32 * bank + 5, lanes)
                    self.add_up((first, 32), (lanes_of(8, lanes, bank), 8), round_=round_)


class ASumOfZerosHasNoBody(NarrowTest):
    """If contributions without a body add up to it, or others cancel out; not if all are wide."""

    def runTest(self) -> None:
        lanes = lanes_of(8)
        zeros = lanes_of(0)
        self.add_up((zeros, 0), (zeros, 0), round_=1)
        self.add_up((lanes, 8), (-lanes, 8), round_=2)
        self.add_up((packets.random_lanes(1), 32), (-packets.random_lanes(1), 32), round_=3)


class ABodylessFeatureCounts(NarrowTest):
    """It is acknowledged, a repetition is not added, and a partial sum counts as Count says."""

    def runTest(self) -> None:
        lanes, whole = lanes_of(16), self.entries.one_bank  # has lanes of 32 bits, and no others
        with self.counted(Outcome.AGGREGATED, completed={}):
            packet, _ = self.send_lanes(101, lanes_of(0), 0, worker=0, Echo=1)
            self.expect(1, packets.ack_of(packet, accepted=1))
        self.exchange(Outcome.DUPLICATE, 1, packet, packets.ack_of(packet, accepted=1), **QUIET)
        self.check_missing(900, count=1)
        with self.counted(Outcome.AGGREGATED, completed={0: 1}):
            last = self.send_lanes(102, lanes, 32 if whole else 16, worker=1)
            self.expect_sum(900, [(packet, lanes_of(0)), last])
        self.add_source(packets.PARTIAL, worker=0)
        self.add_destination(901, worker=2, slot=8, expected=5, senders=[0])
        with self.counted(Outcome.AGGREGATED, completed={0: 1}):
            packet, lanes = self.send_lanes(
                packets.PARTIAL, lanes_of(0), 0, worker=0, Dst_id=901, count=5
            )
            by = packets.resigned(packet, Bits=0) if whole else packet
            self.expect(3, packets.sum_to(3, 901, lanes, count=5, completed_by=by))


class ANarrowFeatureGoesAround(NarrowTest):
    """Its later passes add the same lanes, its later sums are narrow, and its ACK follows."""

    def runTest(self) -> None:
        for block, bits in enumerate((8, 16, 0), 2):
            for source in PAIR:
                for hop in (0, 1):
                    slots = dict.fromkeys((0, 3), (10 + hop, 2))
                    entry = {"hop": hop, "last_hop": bool(hop)}
                    self.entries.add_fanout(block=block, source=source, slots=slots, **entry)
            for number, (hop, bank) in enumerate(((0, 0), (0, 3), (1, 0), (1, 3))):
                self.add_destination(910 + number, worker=2, slot=10 + hop, bank=bank, block=block)
            with self.counted(Outcome.AGGREGATED, 2, completed={0: 2, 3: 2}):
                sent = [
                    self.send_lanes(source, lanes_of(bits, 32, own), bits, worker=own, **fields)
                    for (source, own), fields in zip(
                        PAIR.items(), ({"block": block}, {"block": block, "Echo": 1}), strict=True
                    )
                ]
                for number in range(4):
                    self.expect_sum(910 + number, sent)
                self.expect(2, packets.ack_of(sent[1][0], accepted=1))


class RecallAsks(NarrowTest):
    """A recall with Bits gets the fewest bits, one without gets 32; MISSING keeps its Bits."""

    def runTest(self) -> None:
        for lanes, narrow in NARROW.items():
            if too_wide_for_bmv2(lanes, 0):
                continue
            self.begin(lanes)
            for round_, bits in enumerate(narrow, 1):
                tag = {"round_": round_, "Width": packets.WIDTHS[lanes]}
                for code in packets.BITS.values():
                    self.check_missing(900, count=0, Bits=code, **tag)
                numbers = [lanes_of(bits, lanes, seed) for seed in (1, 2)]
                self.add_up(*((each, bits) for each in numbers), round_=round_)
                sent = [(SwitchGNN(), each) for each in numbers]
                for code in packets.BITS.values():
                    self.check_recalled(900, sent, Bits=code, **tag)


class NoSuchBits(NarrowTest):
    """Fewer bits make a body shorter, or do not exist; those of an all-reduce have 32."""

    def runTest(self) -> None:
        self.entries.set_expected(2)
        self.begin(256)
        frames: list[Packet | bytes] = []
        for lanes, codes in {8: (1, 2), 16: (2,)}.items():
            # Bytes enough for any body.
            whole = packets.feature(101, packets.random_lanes(1, 256), port=1)
            wrong = [
                packets.resigned(whole, Width=packets.WIDTHS[lanes], Bits=code) for code in codes
            ]
            bare = packets.feature(101, lanes_of(0, lanes), port=1, bits=0)
            frames += [*wrong, *(packets.resigned(bare, Bits=code) for code in codes)]
        for lanes in FRAME_BYTES:
            for code in (1, 2, 3):
                for kind in (Kind.REDUCE, Kind.REDUCED):
                    whole = packets.reduce_(0, 1, packets.random_lanes(1, 256))
                    fields = {"Width": packets.WIDTHS[lanes], "Kind": int(kind), "Resend": 1}
                    frames.append(packets.resigned(whole, Bits=code, **fields))
        for bits in (8, 16):
            packet = packets.feature(101, lanes_of(bits), port=1, bits=bits)
            self.stamp(packet)
            whole_bytes = bytes(packet)
            frames += [whole_bytes[:end] for end in (BODY_AT, len(whole_bytes) - 1)]
            frames.append(whole_bytes[:-1] + bytes([whole_bytes[-1] ^ 1]))
        with self.counted(Outcome.MALFORMED, len(frames), **QUIET):
            self.send(1, *(_truly_signed(frame) for frame in frames))
        self.begin(32)
        self.add_up((lanes_of(8), 8), (lanes_of(16), 16))


def _truly_signed(frame: Packet | bytes) -> Packet | bytes:
    """Return a packet with a checksum over the body that its Width and Bits would have."""
    if isinstance(frame, bytes) or Fragment not in frame:
        return frame
    header = frame[SwitchGNN]
    size = body_bytes(8 * (header.Width + 1), (32, 16, 8, 0)[header.Bits])
    body = bytes(header.payload)[:size]
    header.remove_payload()
    return frame / Raw(body)


class TheTrailerStays(NarrowTest):
    """Bytes after a body of any bits are no lanes."""

    def runTest(self) -> None:
        for round_, bits in enumerate((32, 8, 16, 0), 1):
            lanes = lanes_of(bits)
            with self.counted(Outcome.AGGREGATED, 2, completed={0: 1}):
                self.send_lanes(101, lanes, bits, worker=0, round_=round_)
                packet = packets.feature(102, lanes, port=2, bits=bits, round_=round_)
                self.stamp(packet)
                self.send(2, bytes(packet) + b"trailer")
                total = packets.sum_to(
                    3, 900, packets.sum_of([lanes, lanes]), count=2, completed_by=packet
                )
                self.expect(3, type(total)(bytes(total) + b"trailer"))


class APartGoesUpNarrow(bases.LeafTest):
    """In the fewest bits, if the packet that completes or recalls it is narrow."""

    def runTest(self) -> None:
        self.add_part(PAIR)
        for round_, bits in enumerate((8, 16, 0, 32), 1):
            numbers = [lanes_of(bits, 32, seed) for seed in (1, 2)]
            with self.counted(Outcome.AGGREGATED, 2, completed={0: 1}):
                sent = [
                    self.send_lanes(source, lanes, bits, worker=own, round_=round_)
                    for (source, own), lanes in zip(PAIR.items(), numbers, strict=True)
                ]
                self.expect(bases.ABOVE, self.part(sent, sent[-1][0]))
            for code in packets.BITS.values():
                fields = {"round_": round_, "Bits": code, "Resend": 1}
                asked = bases.from_above(Kind.RECALL, 900, **fields)
                answer = self.part(sent, asked)
                self.exchange(
                    Outcome.RECALLED, bases.ABOVE, asked, answer, passes={}, completed={0: 1}
                )
                word = bases.from_above(Kind.MISSING, 900, Count=17, **fields)
                answers = {bases.ABOVE: self.part(sent, word), 3: packets.relayed(word, to=3)}
                self.exchange(
                    Outcome.PASSED_ON, bases.ABOVE, word, answers, passes={}, completed={0: 1}
                )


class TheStrawmanWidensToo(bases.ShelfTest):
    """Its sums are narrow as well; a feature that finds no slot leaves in the fewest bits."""

    def runTest(self) -> None:
        first, second = bases.FAN_IN[900]
        for round_, bits in enumerate((8, 16, 0), 1):
            with self.counted(Outcome.AGGREGATED, completed={}):
                sent = [self.send_lanes(first, lanes_of(bits), bits, worker=0, round_=round_)]
            with self.counted(Outcome.AGGREGATED, completed={}, overflowed={0: 1}):
                packet, _ = self.send_lanes(121, lanes_of(bits), bits, worker=0, round_=round_)
                self.expect_overflow(packet, 920)
            with self.counted(Outcome.AGGREGATED, completed={0: 1}):
                sent.append(self.send_lanes(second, lanes_of(bits), bits, worker=1, round_=round_))
                self.expect_part(900, sent)
