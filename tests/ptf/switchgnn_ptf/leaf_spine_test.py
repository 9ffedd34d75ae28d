# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The base classes of the cases in which the switch is a leaf or a spine."""

from typing import Any

from scapy.packet import Packet

from switchgnn.controller.controls.loop import FIRST_LOOP_PORT, LOOP_LANES, result_group
from switchgnn.host.wire.header import Kind
from tests.ptf.switchgnn_ptf.packets import (
    NETWORK,
    PARTIAL,
    Lanes,
    port_of,
    random_lanes,
    recall,
    resigned,
    station,
    sum_of,
    sum_to,
)
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

ABOVE = 4  # the port to the spine
LEAF = 5  # what the spine calls this leaf
ELSEWHERE = 0b11 << 40  # workers of other leaves


class LeafTest(SwitchTest):
    """Three workers below on ports 1 to 3, a spine above on port 4."""

    def setUp(self) -> None:
        super().setUp()
        self.entries.add_above(port=ABOVE)
        self.entries.set_tier(above=ABOVE, number=LEAF, elsewhere=ELSEWHERE)
        self.entries.add_departure(port=ABOVE, network=NETWORK)
        for lane in range(LOOP_LANES):
            self.entries.add_group(result_group(3) + lane, [ABOVE, FIRST_LOOP_PORT + lane])
        self.entries.flush()

    def add_part(
        self,
        vertex: int,
        sources: dict[int, int],
        *,
        worker: int | None = 2,
        slot: int = 7,
        name: int = PARTIAL,
    ) -> None:
        """Let sources meet in a slot whose sum goes up; ``worker`` None: it is another leaf's."""
        for source, owner in sources.items():
            self.add_source(source, worker=owner)
            self.entries.add_fanout(block=1, source=source, slots={0: (slot, len(sources))})
        place = {"block": 1, "bank": 0, "slot": slot, "vertex": vertex}
        self.entries.add_partial(**place, source=name, port=ABOVE, group=result_group(3))
        port = ABOVE if worker is None else port_of(worker)
        self.entries.add_distant(**place, port=port, above=ABOVE, expected=len(sources))

    def part(
        self,
        sent: list[tuple[Packet, Lanes]],
        by: Packet,
        name: int = PARTIAL,
        *,
        vertex: int = 900,
    ) -> Packet:
        """Return what goes up when ``by`` completes, or recalls, these features' part."""
        total = sum_of(lanes for _, lanes in sent)
        packet = sum_to(ABOVE, vertex, total, count=len(sent), completed_by=by)
        fields = {"Level": 1, "Feature_group": 0, "Resend": 0}
        return resigned(packet, Kind=Kind.FEATURE, Src_id=name, **fields)


class SpineTest(SwitchTest):
    """Leaves 0 to 2 on ports 1 to 3, with the workers 2w and 2w + 1 below leaf w."""

    def _lay_network(self) -> None:
        super()._lay_network()
        self.entries.set_tier(leaves=1)


def from_above(kind: Kind, vertex: int, **fields: Any) -> Packet:
    """Return a packet of a spine without a body."""
    return recall(vertex, port=ABOVE, Kind=kind, **fields)


def sum_from_above(vertex: int, **fields: int) -> Packet:
    """Return the SUM of a spine."""
    asked = recall(vertex, port=ABOVE, Is_Fetch=0)
    packet = sum_to(ABOVE, vertex, random_lanes(vertex), count=9, completed_by=asked, **fields)
    packet["Ether"].src, packet["Ether"].dst = station(ABOVE).mac, NETWORK.switch.mac
    return packet
