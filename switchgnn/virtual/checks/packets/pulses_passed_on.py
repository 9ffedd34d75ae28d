# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A switch hands out the pulses that workers have said last."""

from switchgnn.host.wire.header import Kind
from switchgnn.virtual.checks.packets.packet import Packet, envelope_of, kind_in
from switchgnn.virtual.checks.packets.packet_check import PacketCheck
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.scene import Scene

_DONE_BYTES = 54
_WORKERS, _PULSES = slice(12, 28), slice(28, 44)


class PulsesPassedOn(PacketCheck):
    """Compares the pulses in each WAITING of a star's switch with those in the `done`s before."""

    takes = frozenset({Kind.DONE})
    gives = frozenset({Kind.WAITING, Kind.ADVANCE, Kind.ACK})

    def begin(self, scene: Scene) -> None:
        """Look at a scene from now on."""
        super().begin(scene)
        # A leaf tells what it has heard from above, and a queue what was so a while ago.
        self._looks = not (scene.scenario.leaves or scene.scenario.queue_rate)
        # Whether the switch has answered in this session since it was started.
        self._answers = False
        self._last: dict[int, bool] = {}
        self._incarnations: dict[int, set[int]] = {}
        site = scene.subject.site
        self._envelopes = [
            envelope_of(site.addresses(worker.number).frame(bytes(_DONE_BYTES)))
            for worker in scene.workers
        ]

    def session_begins(self) -> None:
        """Forget the workers of the last session."""
        self._answers = False
        self._last.clear()
        self._incarnations.clear()

    def ends(self, switch: VirtualSwitch) -> None:
        """Forget what the switch forgets."""
        self._answers = False
        self._last.clear()

    def took(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Note a pulse.

        Args:
            switch: where.
            worker: whose port it comes through.
            packet: it.
        """
        self._incarnations.setdefault(worker, set()).add(packet.destination)
        if not self._answers:
            return
        if packet.envelope != self._envelopes[worker]:
            # Whether the switch takes what is corrupt in front of the header is not looked at.
            self._last.pop(worker, None)
        elif packet.source == worker:
            pulses = int.from_bytes(packet.body[_WORKERS], "big")
            self._last[worker] = bool(pulses >> worker & 1)

    def gave(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Compare the pulses of the others.

        Args:
            switch: where.
            worker: whose port it leaves through.
            packet: it.
        """
        self._answers = True
        if not self._looks or kind_in(packet.frame) != Kind.WAITING or self.scene.lawless:
            return
        if not any(packet.body[_WORKERS]):
            # A refusal, as one who asks is done itself: no pulse is taken from what is refused.
            if packet.number:
                self._last.pop(worker, None)
            return
        pulses = int.from_bytes(packet.body[_PULSES], "big")
        for other, pulse in self._last.items():
            # Of two processes that are the same worker the switch refuses one.
            alone = len(self._incarnations[other]) == 1
            if not alone or other == worker or not self.scene.honest(other):
                continue
            if bool(pulses >> other & 1) is not pulse:
                self.scene.violated(
                    "pulses passed on",
                    f"{switch.name} tells worker {worker} another pulse of worker {other} than it "
                    "has heard",
                )
