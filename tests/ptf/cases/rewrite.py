"""rewrite.p4 and rewrite.p4: the contents and addresses of packets that leave."""

from scapy.layers.inet import IP
from scapy.layers.l2 import Ether

from switchgnn.controller import Outcome
from tests.ptf.switchgnn_ptf import packets
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest


class WorkersChecksumIsNotBelieved(SwitchTest):
    """The switch makes IPv4's checksum of a sum and an ACK; a wrong length is malformed."""

    def runTest(self) -> None:
        self.add_sum(900, {101: 0})
        lanes = packets.random_lanes(1)
        packet = packets.feature(101, lanes, port=1, Echo=1)
        for length in (0, 45, 46, 46 + 128 - 32, 46 + 128 + 1, 999):
            packet[IP].len = length
            self.check_unanswered(Outcome.MALFORMED, 1, packet, passes={})
        packet[IP].len, packet[IP].chksum = 46 + 128, 0x0BAD
        with self.counted(Outcome.AGGREGATED):
            self.send(1, packet)
            self.expect(3, packets.sum_to(3, 900, lanes, count=1, completed_by=packet))
            self.expect(1, packets.ack_of(packet, accepted=1))


class PortWithoutEntryKeepsAddresses(SwitchTest):
    """Without an entry the sender's addresses stay; the rest is done all the same."""

    def runTest(self) -> None:
        self.add_sum(900, {101: 0}, worker=packets.STRANGER_PORT - 1)
        self.entries.add_result_groups(packets.STRANGER_PORT)
        with self.counted(Outcome.AGGREGATED):
            packet, lanes = self.send_feature(101, worker=0)
            expected = packets.sum_to(
                packets.STRANGER_PORT, 900, lanes, count=1, completed_by=packet
            )
            for layer in (Ether, IP):
                expected[layer].src, expected[layer].dst = packet[layer].src, packet[layer].dst
            self.expect(packets.STRANGER_PORT, packets.resigned(expected))
