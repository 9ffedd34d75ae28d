# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The base classes of the cases that recall, fetch and resend."""

from typing import Any

from scapy.packet import Packet

from switchgnn.controller import Outcome
from tests.ptf.switchgnn_ptf.packets import (
    Lanes,
    fetch,
    missing,
    port_of,
    recall,
    relayed,
    relayed_fetch,
    sum_of,
    sum_to,
)
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

SOURCES = {101: 0, 102: 1, 103: 2}
"""The workers of the sources of ``SumTest``."""

GIVEN_BACK = {"released": {0: 1}}
"""The event of a contribution to a released slot of bank 0."""


class RecoveryTest(SwitchTest):
    """Cases that recover a sum; unless told otherwise it is in bank 0, for worker 2."""

    def check_recalled(
        self,
        vertex: int,
        sent: list[tuple[Packet, Lanes]],
        *,
        worker: int = 2,
        bank: int = 0,
        count: int | None = None,
        **fields: int,
    ) -> None:
        """Recall a complete sum: it must come again, to the asker alone."""
        port, total = port_of(worker), sum_of(lanes for _, lanes in sent)
        packet = recall(vertex, port=port, **fields)
        number = len(sent) if count is None else count
        with self.counted(Outcome.RECALLED, passes={}, completed={bank: 1}):
            self.send(port, packet)
            self.expect(port, sum_to(port, vertex, total, count=number, completed_by=packet))

    def check_missing(
        self, vertex: int, *, count: int, worker: int = 2, events: Any = None, **fields: int
    ) -> None:
        """Recall an incomplete sum: the asker alone must get ``count``."""
        port = port_of(worker)
        packet = recall(vertex, port=port, **fields)
        with self.counted(Outcome.RECALLED, passes={}, completed={}, **(events or {})):
            self.send(port, packet)
            self.expect(port, missing(packet, count=count))

    def check_fetch(
        self,
        source: int,
        vertex: int,
        *,
        owner: int,
        worker: int = 2,
        events: Any = None,
        **fields: int,
    ) -> None:
        """Fetch a feature: its owner alone must get the request, and the slot is released."""
        port, to = port_of(worker), port_of(owner)
        packet = fetch(source, vertex, port=port, **fields)
        happens = {"released": {0: 1}} if events is None else events
        with self.counted(Outcome.FETCHED, passes={}, completed={}, **happens):
            self.send(port, packet)
            self.expect(to, relayed_fetch(packet, to=to))

    def check_resent(
        self, source: int, vertex: int, *, worker: int, owner: int, **fields: Any
    ) -> None:
        """Resend a feature: the destination's worker alone must get it; no slot changes."""
        with self.counted(Outcome.RESENT, passes={}, completed={}):
            packet, _ = self.send_feature(source, worker=worker, Resend=1, Dst_id=vertex, **fields)
            self.expect(port_of(owner), relayed(packet, to=port_of(owner)))


class SumTest(RecoveryTest):
    """Cases with one sum of three sources, in slot 7 of bank 0, for worker 2."""

    def setUp(self) -> None:
        super().setUp()
        self.add_sum(900, SOURCES)

    def contribute(self, *sources: int, released: int = 0, **fields: int) -> list:
        """Send features that complete nothing, ``released`` of them to a released slot."""
        happens = {0: released} if released else {}
        with self.counted(Outcome.AGGREGATED, len(sources), completed={}, released=happens):
            return [
                self.send_feature(source, worker=SOURCES[source], **fields) for source in sources
            ]

    def complete(self, *sources: int, before: list | None = None, **fields: int) -> list:
        """Send features of which the last completes the sum of these and ``before``."""
        with self.counted(Outcome.AGGREGATED, len(sources), completed={0: 1}):
            sent = list(before or [])
            sent += [self.send_feature(s, worker=SOURCES[s], **fields) for s in sources]
            self.expect_sum(900, sent)
            return sent
