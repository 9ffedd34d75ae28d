# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""departure.p4 and sum.p4: the contents and addresses of packets that leave."""

from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from switchgnn.capture.layers import SwitchGNN
from switchgnn.controller import Outcome
from switchgnn.host.wire.header import Kind
from tests.ptf.switchgnn_ptf.packets import ack_of, feature, random_lanes, resigned, sum_of, sum_to
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

SOURCES = {101: 0, 102: 1}


class SumIsAddressedToItsWorker(SwitchTest):
    """Other addresses, a new time to live, the length of a sum; all else as it came."""

    def runTest(self) -> None:
        self.add_sum(900, {101: 0})
        with self.counted(Outcome.AGGREGATED):
            packet, lanes = self.send_feature(101, worker=0, Level=5, Feature_group=9)
            expected = sum_to(3, 900, lanes, count=1, completed_by=packet)
            self.assertEqual(IP(bytes(expected)[14:]).len, 174)
            self.expect(3, expected)


class AckIsAddressedToItsSender(SwitchTest):
    """The header alone, in the shortest frame that Ethernet has; all else as it came."""

    def runTest(self) -> None:
        self.add_source(101, worker=1)
        self.entries.add_fanout(block=1, source=101, slots={0: (7, 2)})
        with self.counted(Outcome.AGGREGATED):
            packet, _ = self.send_feature(101, worker=1, Echo=1, Level=3, Feature_group=9)
            expected = ack_of(packet, accepted=1)
            self.assertEqual((len(expected), expected[SwitchGNN].Is_ACK), (60, 1))
            self.expect(2, expected)


class WorkersLengthIsNotBelieved(SwitchTest):
    """IPv4's length in a sum and an ACK is the switch's own."""

    def runTest(self) -> None:
        self.add_sum(900, {101: 0})
        lanes = random_lanes(1)
        packet = feature(101, lanes, port=1, Echo=1)
        packet[IP].len = 999
        with self.counted(Outcome.AGGREGATED):
            self.send(1, packet)
            self.expect(3, sum_to(3, 900, lanes, count=1, completed_by=packet))
            self.expect(1, ack_of(packet, accepted=1))


class TrailerStays(SwitchTest):
    """Bytes after the fragment stay there, outside of IPv4."""

    def runTest(self) -> None:
        self.add_sum(900, {101: 0})
        lanes = random_lanes(1)
        whole = feature(101, lanes, port=1, Echo=1)
        self.stamp(whole)
        with self.counted(Outcome.AGGREGATED):
            self.send(1, bytes(whole) + b"trailer")
            self.expect(3, _with_trailer(sum_to(3, 900, lanes, count=1, completed_by=whole)))
            self.expect(1, _with_trailer(ack_of(whole, accepted=1)))


def _with_trailer(packet: Packet) -> Packet:
    return Ether(bytes(packet) + b"trailer")


class PortWithoutEntryKeepsAddresses(SwitchTest):
    """Without an entry the sender's addresses stay; the rest is done all the same."""

    def runTest(self) -> None:
        self.add_sum(900, {101: 0})
        self.entries.remove_departure(port=3)
        with self.counted(Outcome.AGGREGATED):
            packet, lanes = self.send_feature(101, worker=0)
            expected = sum_to(3, 900, lanes, count=1, completed_by=packet)
            for layer in (Ether, IP):
                expected[layer].src, expected[layer].dst = packet[layer].src, packet[layer].dst
            self.expect(3, resigned(expected))


class SumNamesItsDestination(SwitchTest):
    """And no source, whatever ids the feature that completes it has."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        with self.counted(Outcome.AGGREGATED, 2, completed={0: 1}):
            sent = [self.send_feature(101, worker=0)]
            sent.append(self.send_feature(102, worker=1, Dst_id=12345, Echo=1, Feature_group=7))
            total = sum_of(lanes for _, lanes in sent)
            packet = sum_to(3, 900, total, count=2, completed_by=sent[-1][0])
            fields = packet[SwitchGNN]
            self.assertEqual((fields.Kind, fields.Src_id, fields.Dst_id), (Kind.SUM, 0, 900))
            self.assertEqual((fields.Count, fields.Echo), (2, 0))
            self.expect(3, packet)
            self.expect(2, ack_of(sent[-1][0], accepted=1))
