# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of packets between workers and switches: each frame is read once for all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from switchgnn.host.wire.header import OPENING_BLOCK, SESSION_MASK, Kind
from switchgnn.virtual.checks.check import Check, SwitchCheck
from switchgnn.virtual.checks.packets.packet import (
    Packet,
    is_sound,
    is_wrapped,
    kind_in,
    read_packet,
)
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.scene import Scene

_SESSION_SHIFT = 24


class PacketCheck(Check):
    """Looks at packets of this session, where switches take them from workers and give them.

    Attributes:
        takes, gives: the kinds that it looks at.
        takes_of_others: the kinds of packets of other sessions that it looks at.
    """

    takes: frozenset[Kind] = frozenset()
    gives: frozenset[Kind] = frozenset()
    takes_of_others: frozenset[Kind] = frozenset()

    def took(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Note a sound packet that comes from a worker.

        Args:
            switch: where.
            worker: whose port it comes through.
            packet: it.
        """

    def took_of_another_session(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Note a sound packet of another session that comes from a worker.

        Args:
            switch: where.
            worker: whose port it comes through.
            packet: it.
        """

    def gave(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Note a packet that leaves for a worker.

        Args:
            switch: where.
            worker: whose port it leaves through.
            packet: it.
        """

    def ends(self, switch: VirtualSwitch) -> None:
        """Note that a switch is about to forget all."""

    def opened_unheard(self, worker: int, place: tuple[int, int, int]) -> bool:
        """Tell whether a worker may have opened a round before packets were looked at.

        Switches know a session a moment before workers begin, and somebody mad may guess it.

        Args:
            worker: which one.
            place: round, block and fragment.
        """
        return place[1] == OPENING_BLOCK and not self.scene.honest(worker)


# What looks at packets, by their kinds.
Looks = dict[int, list[Callable[[VirtualSwitch, int, Packet], None]]]


@dataclass(frozen=True)
class _Reading:
    """How packets of one direction are read.

    Attributes:
        this_session, other_sessions: who looks at them.
        heeded: whether anybody but a check heeds one.
    """

    this_session: Looks
    other_sessions: Looks
    heeded: Callable[[Packet], bool]


class PacketReader(SwitchCheck):
    """Reads packets, and hands them to those who look at their kinds.

    Args:
        checks: all checks that look at packets.
    """

    def __init__(self, checks: Sequence[PacketCheck]) -> None:
        self._checks = checks
        taken: Looks = {int(kind): [c.took for c in checks if kind in c.takes] for kind in Kind}
        of_others: Looks = {
            int(kind): [c.took_of_another_session for c in checks if kind in c.takes_of_others]
            for kind in Kind
        }
        given: Looks = {int(kind): [c.gave for c in checks if kind in c.gives] for kind in Kind}
        self._taken = _Reading(taken, of_others, is_sound)
        # What another worker has wrapped otherwise is forwarded, and heeded by nobody.
        self._given = _Reading(given, {}, is_wrapped)
        self._session = -1

    def begin(self, scene: Scene) -> None:
        """Look at a scene from now on."""
        super().begin(scene)
        site = scene.subject.site
        self._ends = {
            (site.places[worker][0], site.port(worker)): worker
            for worker in range(len(scene.workers))
        }

    def session_begins(self) -> None:
        """Look at packets of the new session only."""
        if self.scene.job is not None:
            self._session = self.scene.job.session & SESSION_MASK

    def taken(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        """Read what comes from a worker.

        Args:
            switch: where.
            port: its port.
            frames: all of them.
        """
        worker = self._ends.get((switch.number, port))
        if worker is not None:
            self._read(self._taken, switch, worker, frames)

    def given(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        """Read what leaves for a worker.

        Args:
            switch: where.
            port: its port.
            frames: all of them.
        """
        worker = self._ends.get((switch.number, port))
        if worker is not None:
            self._read(self._given, switch, worker, frames)

    def _read(
        self, reading: _Reading, switch: VirtualSwitch, worker: int, frames: list[bytes]
    ) -> None:
        """Let those look at packets who look at their kinds, most at this session's only."""
        for frame in frames:
            kind = kind_in(frame)
            if looking := reading.this_session.get(kind):
                packet = read_packet(frame)
                if packet.session_and_round >> _SESSION_SHIFT != self._session:
                    looking = reading.other_sessions.get(kind, [])
                if looking and reading.heeded(packet):
                    for look in looking:
                        look(switch, worker, packet)

    def ends(self, switch: VirtualSwitch) -> None:
        """Say that a switch is about to forget all."""
        for check in self._checks:
            check.ends(switch)
