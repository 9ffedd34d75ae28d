# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A sum leaves for its destination only, whole, and once unless it is asked for again."""

from switchgnn.host.wire.header import Kind
from switchgnn.virtual.checks.packets.packet import Packet
from switchgnn.virtual.checks.packets.packet_check import PacketCheck
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.scene import Scene


class SumsLeaveOnce(PacketCheck):
    """Compares the SUMs for workers with the plan, and with those before."""

    gives = frozenset({Kind.SUM})

    def begin(self, scene: Scene) -> None:
        """Look at a scene from now on."""
        super().begin(scene)
        self._expected: dict[tuple[int, int], tuple[int, int]] = {}
        for part in scene.subject.plan.workers:
            rows = zip(part.receive_vertex.tolist(), part.receive_count.tolist(), strict=True)
            ends = part.receive_indptr.tolist()
            block = 1
            for row, (vertex, count) in enumerate(rows):
                while row >= ends[block]:
                    block += 1
                self._expected[block, vertex] = part.worker, count
        # A leaf passes on what comes from above as often as the cable brings it.
        self._once = not scene.scenario.leaves
        self._left: set[tuple[tuple[int, int, int], int]] = set()

    def session_begins(self) -> None:
        """Forget the sums of the last session."""
        self._left.clear()

    def ends(self, switch: VirtualSwitch) -> None:
        """Forget what the switch forgets."""
        self._left.clear()

    def gave(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Compare a SUM.

        Args:
            switch: where.
            worker: whose port it leaves through.
            packet: it.
        """
        vertex, place = packet.destination, packet.place
        owner, count = self._expected.get((packet.block, vertex), (None, 0))
        if owner != worker:
            self._tell(packet, f"for worker {worker}")
        elif packet.number != count:
            self._tell(packet, f"with {packet.number} of {count} contributions")
        elif self._once and not packet.on_request:
            # Who is mad may ask for its sums so that the answers do not look like some.
            if (place, vertex) in self._left and self.scene.honest(worker):
                self._tell(packet, "again unasked")
            self._left.add((place, vertex))

    def _tell(self, packet: Packet, how: str) -> None:
        self.scene.violated(
            "sums leave once",
            f"the sum of vertex {packet.destination} in round {packet.place[0]}, block "
            f"{packet.block} leaves {how}",
        )
