# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""No sum follows a fetch: from then on its worker adds it up itself (invariant 2)."""

from switchgnn.host.wire.header import Kind
from switchgnn.virtual.checks.packets.packet import Packet, kind_in
from switchgnn.virtual.checks.packets.packet_check import PacketCheck
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.scene import Scene

Sum = tuple[tuple[int, int, int], int]


class FetchedSumsStay(PacketCheck):
    """Remembers fetches, and looks for sums of which the slots should be released.

    Only where a star's switch takes each packet through at once is the order of what leaves that
    of what has come.
    """

    takes = frozenset({Kind.FETCH})
    gives = frozenset({Kind.FETCH, Kind.SUM})

    def begin(self, scene: Scene) -> None:
        """Look at a scene from now on."""
        super().begin(scene)
        scenario = scene.scenario
        self._orderly = not (scenario.leaves or scenario.turns or scenario.queue_rate)
        self._asked: set[Sum] = set()
        self._fetched: set[Sum] = set()

    def session_begins(self) -> None:
        """Forget the fetches of the last session."""
        self._asked.clear()
        self._fetched.clear()

    def ends(self, switch: VirtualSwitch) -> None:
        """Forget what the switch forgets."""
        self.session_begins()

    def took(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Note a fetch that is asked for.

        Args:
            switch: where.
            worker: whose port it comes through.
            packet: it.
        """
        # Of what a mad worker fetches it is not known what the switch believes.
        if self._orderly and self.scene.honest(worker):
            self._asked.add((packet.place, packet.destination))

    def gave(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Note a fetch that the switch passes on, and compare a SUM with those before.

        What it refuses, as one that was restarted may, it has forgotten by the next packet.

        Args:
            switch: where.
            worker: whose port it leaves through.
            packet: it.
        """
        which = packet.place, packet.destination
        if kind_in(packet.frame) == Kind.FETCH:
            self._fetched |= self._asked & {which}
        # One that was recalled may have been asked for just before.
        elif not packet.on_request and which in self._fetched:
            self.scene.violated(
                "fetched sums stay",
                f"the sum of vertex {packet.destination} in round {packet.place[0]}, block "
                f"{packet.block} leaves for worker {worker}, which has fetched its features",
            )
