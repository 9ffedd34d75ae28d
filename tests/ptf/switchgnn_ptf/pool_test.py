# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The base class of the cases with the program that hands its slots out itself."""

from collections.abc import Iterable
from typing import Any

from scapy.packet import Packet

from switchgnn.controller import Outcome
from tests.ptf.switchgnn_ptf.packets import Lanes, port_of, relayed, resigned, sum_of, sum_to
from tests.ptf.switchgnn_ptf.recovery_test import RecoveryTest

BANKS = 8
# Destination vertex to the workers of its sources, in the order of the sources' ids.
FAN_IN = {900: {101: 0, 102: 1}, 910: {111: 0, 112: 1, 113: 2}, 920: {121: 0, 122: 1}}


class PoolTest(RecoveryTest):
    """Three destinations in bank 0, all for worker 2, and one slot for each bank."""

    strawman = True

    def setUp(self) -> None:
        super().setUp()
        self.limit(BANKS)
        for number, (vertex, sources) in enumerate(FAN_IN.items()):
            self.add_sum(vertex, sources, slot=number)

    def limit(self, slots: int) -> None:
        """Split ``slots`` over the banks."""
        self.entries.set_limits(slots)

    def fill(self, *sources: int, **fields: Any) -> list[tuple[Packet, Lanes]]:
        """Send features that stay in the switch."""
        with self.counted(Outcome.AGGREGATED, len(sources), completed={}):
            return [self.feature(source, **fields) for source in sources]

    def overflow(self, *sources: int, **fields: Any) -> None:
        """Send features that find no slot: each must reach the worker as it came."""
        for source in sources:
            with self.counted(Outcome.AGGREGATED, completed={}, overflowed={0: 1}):
                packet, _ = self.feature(source, **fields)
                self.expect_overflow(packet, vertex_of(source))

    def complete(
        self, source: int, before: Iterable[tuple[Packet, Lanes]] = (), **fields: Any
    ) -> None:
        """Send the last feature for a destination: the part with those ``before`` must leave."""
        with self.counted(Outcome.AGGREGATED, completed={0: 1}):
            sent = [*before, self.feature(source, **fields)]
            self.expect_part(vertex_of(source), sent)

    def feature(self, source: int, **fields: Any) -> tuple[Packet, Lanes]:
        """Send a feature of random lanes from its worker."""
        return self.send_feature(source, worker=FAN_IN[vertex_of(source)][source], **fields)

    def expect_part(
        self, vertex: int, sent: list[tuple[Packet, Lanes]], *, worker: int = 2
    ) -> None:
        """Expect the sum of what was sent, with the ids of its sources."""
        port, total = port_of(worker), sum_of(lanes for _, lanes in sent)
        sources = sum(packet["SwitchGNN"].Src_id for packet, _ in sent)
        last = sent[-1][0]
        self.expect(
            port,
            sum_to(port, vertex, total, count=len(sent), completed_by=last, sources=sources),
        )

    def expect_overflow(self, packet: Packet, vertex: int, *, worker: int = 2) -> None:
        """Expect a feature on its way to the worker that adds it."""
        port = port_of(worker)
        self.expect(port, relayed(resigned(packet, Dst_id=vertex, Echo=0), to=port))


def vertex_of(source: int) -> int:
    """Return the destination of a source."""
    return next(vertex for vertex, sources in FAN_IN.items() if source in sources)
