# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""sum.p4: the packet that carries a sum."""

from switchgnn.controller import Outcome
from switchgnn.host.wire.header import Kind
from switchgnn.host.wire.layers import SwitchGNN
from tests.ptf.switchgnn_ptf.packets import ack_of, sum_of, sum_to
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

SOURCES = {101: 0, 102: 1}


class SumNamesItsDestination(SwitchTest):
    """And no source: whatever the feature that completes it says, also of a destination."""

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
