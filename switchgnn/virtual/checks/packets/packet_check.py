# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of packets between workers and switches: each frame is read once for all."""

from collections.abc import Iterator, Mapping, Sequence

from switchgnn.host.wire.header import SESSION_MASK, Kind
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


# Who looks at packets, by their kinds.
Looking = Mapping[int, list[PacketCheck]]


class PacketReader(SwitchCheck):
    """Reads packets, and hands them to those who look at their kinds.

    Args:
        checks: all checks that look at packets.
    """

    def __init__(self, checks: Sequence[PacketCheck]) -> None:
        self._checks = checks
        self._takes = {int(kind): [c for c in checks if kind in c.takes] for kind in Kind}
        self._gives = {int(kind): [c for c in checks if kind in c.gives] for kind in Kind}
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
        for worker, packet, checks in self._read(self._takes, switch, port, frames):
            if is_sound(packet):
                for check in checks:
                    check.took(switch, worker, packet)

    def given(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        """Read what leaves for a worker.

        Args:
            switch: where.
            port: its port.
            frames: all of them.
        """
        for worker, packet, checks in self._read(self._gives, switch, port, frames):
            # What another worker has wrapped otherwise is forwarded, and heeded by nobody.
            if not is_wrapped(packet):
                continue
            for check in checks:
                check.gave(switch, worker, packet)

    def _read(
        self, looking: Looking, switch: VirtualSwitch, port: int, frames: list[bytes]
    ) -> Iterator[tuple[int, Packet, list[PacketCheck]]]:
        """Yield the worker, the packet and who looks at it, of this session's packets."""
        worker = self._ends.get((switch.number, port))
        if worker is None:
            return
        for frame in frames:
            if checks := looking.get(kind_in(frame)):
                packet = read_packet(frame)
                if packet.session_and_round >> _SESSION_SHIFT == self._session:
                    yield worker, packet, checks

    def ends(self, switch: VirtualSwitch) -> None:
        """Say that a switch is about to forget all."""
        for check in self._checks:
            check.ends(switch)
