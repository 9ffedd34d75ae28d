# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A spine that cannot complete a sum asks the other leaves for their parts, if it shall."""

from collections import Counter

from switchgnn.host.wire.header import Kind
from switchgnn.virtual.checks.check import SwitchCheck
from switchgnn.virtual.checks.packets.packet import is_wrapped, kind_in, read_packet
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.scene import Scene

_RESEND = 0x10
Sum = tuple[tuple[int, int, int], int]


class PartsAskedFor(SwitchCheck):
    """Compares each MISSING with Resend that leaves a spine with the RECALLs beside it."""

    def begin(self, scene: Scene) -> None:
        """Look at a scene from now on."""
        super().begin(scene)
        scenario = scene.scenario
        # Where ports have limits some of what leaves together is lost, or leaves later.
        self._spines = () if scenario.queue_rate else range(scenario.leaves, scenario.switches)
        self._others = scenario.leaves - 1
        self._missing: Counter[Sum] = Counter()
        self._asked: Counter[Sum] = Counter()
        self._noted_at = 0

    def taken(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        """Compare what has left together, before anything else happens.

        Args:
            switch: where.
            port: its port.
            frames: all of them.
        """
        if self._missing:
            self._compare()

    def given(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        """Note what a spine says.

        Args:
            switch: where.
            port: its port.
            frames: all of them.
        """
        if switch.number not in self._spines:
            return
        for frame in frames:
            kind = kind_in(frame)
            if kind in (Kind.MISSING, Kind.RECALL):
                packet = read_packet(frame)
                if packet.flags & _RESEND and is_wrapped(packet):
                    noted = self._missing if kind == Kind.MISSING else self._asked
                    noted[packet.place, packet.destination] += 1
                    self._noted_at = self.scene.scheduler.now

    def ends(self, switch: VirtualSwitch) -> None:
        """Forget what has left only in part: a switch that is torn ends while it sends.

        Args:
            switch: which one.
        """
        if self._noted_at == self.scene.scheduler.now:
            self._missing.clear()
            self._asked.clear()

    def conclude(self, *, in_time: bool) -> None:
        """Compare what has left last.

        Args:
            in_time: whether all has ended by itself.
        """
        self._compare()

    def _compare(self) -> None:
        for (place, vertex), missing in self._missing.items():
            asked = self._asked[place, vertex]
            if asked < missing * self._others:
                self.scene.violated(
                    "parts asked for",
                    f"a spine has not all of the sum of vertex {vertex} in round {place[0]}, block "
                    f"{place[1]}, and asks {asked} of {self._others} other leaves",
                )
        self._missing.clear()
        self._asked.clear()
