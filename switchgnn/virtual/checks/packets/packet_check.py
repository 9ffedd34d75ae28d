# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of packets between workers and switches: each frame is read once for all."""

from collections.abc import Sequence

from switchgnn.host.wire.header import SESSION_MASK, Kind
from switchgnn.virtual.checks.check import Check, SwitchCheck
from switchgnn.virtual.checks.packets.packet import Packet, is_sound, kind_in, read_packet
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.scene import Scene

_SESSION_SHIFT = 24


class PacketCheck(Check):
    """Looks at packets of this session, where switches take them from workers and give them.

    Attributes:
        takes, gives: the kinds that it looks at.
    """

    takes: frozenset[Kind] = frozenset()
    gives: frozenset[Kind] = frozenset()

    def took(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Note a sound packet that comes from a worker.

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


class PacketReader(SwitchCheck):
    """Reads packets, and hands them to those who look at their kinds.

    Args:
        checks: all checks that look at packets.
    """

    def __init__(self, checks: Sequence[PacketCheck]) -> None:
        self._checks = checks
        self._takes = {kind: [each for each in checks if kind in each.takes] for kind in Kind}
        self._gives = {kind: [each for each in checks if kind in each.gives] for kind in Kind}
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
        if worker is None:
            return
        takes, session = self._takes, self._session
        for frame in frames:
            checks = takes.get(kind_in(frame))  # type: ignore[call-overload]  # an IntEnum's number
            if checks:
                packet = read_packet(frame)
                if packet.session_and_round >> _SESSION_SHIFT == session and is_sound(packet):
                    for check in checks:
                        check.took(switch, worker, packet)

    def given(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        """Read what leaves for a worker.

        Args:
            switch: where.
            port: its port.
            frames: all of them.
        """
        worker = self._ends.get((switch.number, port))
        if worker is None:
            return
        gives, session = self._gives, self._session
        for frame in frames:
            checks = gives.get(kind_in(frame))  # type: ignore[call-overload]  # an IntEnum's number
            if checks:
                packet = read_packet(frame)
                if packet.session_and_round >> _SESSION_SHIFT == session:
                    for check in checks:
                        check.gave(switch, worker, packet)

    def ends(self, switch: VirtualSwitch) -> None:
        """Say that a switch is about to forget all."""
        for check in self._checks:
            check.ends(switch)
