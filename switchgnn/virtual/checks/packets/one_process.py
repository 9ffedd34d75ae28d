# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""In a round that one process of a worker has been in, no other one takes its place."""

from switchgnn.host.wire.header import OPENING_BLOCK, Kind
from switchgnn.virtual.checks.packets.packet import Packet
from switchgnn.virtual.checks.packets.packet_check import PacketCheck
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.parts.worker import Done

# A worker and a round.
Where = tuple[int, int]


class OneProcess(PacketCheck):
    """Compares who has opened a round, as the switch knows, with who has its sums.

    Sums that another process is given may be right, as its features may be those of the first one.
    """

    takes = frozenset({Kind.DONE})
    gives = frozenset({Kind.ADVANCE})

    def session_begins(self) -> None:
        """Forget the last session."""
        self._said: dict[Where, set[int]] = {}
        self._known: dict[Where, int] = {}

    def ends(self, switch: VirtualSwitch) -> None:
        """Forget the processes that a switch forgets."""
        if self.scene.job is None:
            return
        places = self.scene.subject.site.places
        for known in (self._said, self._known):
            for where in [each for each in known if places[each[0]][0] == switch.number]:
                del known[where]

    def took(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Note which process opens a round.

        Args:
            switch: where.
            worker: whose port it comes through.
            packet: it.
        """
        if packet.block == OPENING_BLOCK and packet.source == worker:
            where = worker, packet.place[0]
            self._said.setdefault(where, set()).add(packet.destination)

    def gave(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Note that all have opened a round; of two processes nobody knows which one has.

        Args:
            switch: where.
            worker: whose port it leaves through.
            packet: it.
        """
        where = worker, packet.place[0]
        said = self._said.get(where, ())
        if packet.block == OPENING_BLOCK and len(said) == 1:
            (self._known[where],) = said

    def done(self, done: Done) -> None:
        """Compare the process that has the sums of a round."""
        if not self.scene.honest(done.worker) or self.scene.lawless:
            return
        own = self.scene.workers[done.worker].incarnation
        if self._known.get((done.worker, done.opened), own) != own:
            self.scene.violated(
                "one process",
                f"another process of worker {done.worker} has the sums of round {done.round}, "
                "which the one before it had opened together with all others",
            )
