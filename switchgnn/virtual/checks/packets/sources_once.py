# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A switch lets each source through once per round, block and fragment (invariant 1)."""

from switchgnn.host.wire.header import Kind
from switchgnn.virtual.checks.packets.packet import Packet
from switchgnn.virtual.checks.packets.packet_check import PacketCheck
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.scene import Scene

_AGGREGATED = 0
_OUTCOME = ".outcome"


class SourcesOnce(PacketCheck):
    """Compares how many features a switch has let through with the different ones that came."""

    takes = takes_of_others = frozenset({Kind.FEATURE})

    def begin(self, scene: Scene) -> None:
        """Look at a scene from now on."""
        super().begin(scene)
        self._sources = {
            source
            for part in (subject.plan.switch for subject in scene.served)
            for source in zip(part.source_vertex.tolist(), part.source_worker.tolist(), strict=True)
        }
        self._before = dict.fromkeys(range(len(scene.switches)), 0)
        self._here: dict[int, set[tuple[int, int, int, int]]] = {
            switch.number: set() for switch in scene.switches
        }

    def session_begins(self) -> None:
        """Count the sources of a new session anew, besides those before."""
        for switch, here in self._here.items():
            self._before[switch] += len(here)
            here.clear()

    def took(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Note a feature.

        Args:
            switch: where.
            worker: whose port it comes through.
            packet: it.
        """
        if not packet.resent and (packet.source, worker) in self._sources:
            self._here[switch.number].add(
                (packet.session_and_round, packet.block, packet.fragment, packet.source)
            )

    def took_of_another_session(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Note a feature that a switch takes which has come back with another plan.

        Args:
            switch: where.
            worker: whose port it comes through.
            packet: it.
        """
        if self.scene.has_relapsed(switch.number):
            self.took(switch, worker, packet)

    def ends(self, switch: VirtualSwitch) -> None:
        """Compare, and forget what the switch forgets."""
        engine, here = switch.engine, self._here[switch.number]
        most = self._before[switch.number] + len(here)
        self._before[switch.number] = 0
        here.clear()
        # A spine adds what leaves send, which nobody looks at here.
        if engine is None or switch.number >= (self.scene.scenario.leaves or 1):
            return
        counters = engine.state.counters.items()
        counted = next(c for name, c in counters if name.endswith(_OUTCOME)).packets[_AGGREGATED]
        if counted > most:
            self.scene.violated(
                "sources once",
                f"{switch.name} has let {counted} features through, of {most} that came",
            )

    def conclude(self, *, in_time: bool) -> None:
        """Compare for all switches.

        Args:
            in_time: whether all has ended by itself.
        """
        for switch in self.scene.switches:
            self.ends(switch)
