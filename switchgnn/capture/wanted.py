# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Which packets somebody wants to see."""

from dataclasses import dataclass

from switchgnn.capture.packet import Packet


@dataclass(frozen=True)
class Wanted:
    """A filter; what is None, or empty, lets all packets pass.

    Attributes:
        kinds: numbers of kinds.
        rounds: their numbers.
        blocks: their numbers; packets between hosts have none.
        workers: their numbers; one of them sends or receives the packet.
    """

    kinds: frozenset[int] = frozenset()
    rounds: frozenset[int] = frozenset()
    blocks: frozenset[int] = frozenset()
    workers: frozenset[int] = frozenset()

    def takes(self, packet: Packet) -> bool:
        """Tell whether a packet is wanted."""
        if self.workers and not self._of_workers(packet):
            return False
        fields = packet.fields
        if fields is None:
            return not (self.kinds or self.rounds or self.blocks)
        if self.kinds and fields.kind not in self.kinds:
            return False
        if self.rounds and fields.round not in self.rounds:
            return False
        return not self.blocks or (not packet.direct and fields.block_id in self.blocks)

    def _of_workers(self, packet: Packet) -> bool:
        ends = (packet.sender, packet.receiver)
        return any(f"w{worker}" in ends for worker in self.workers)
