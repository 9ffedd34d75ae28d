# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A switch that has not all of a sum says how many contributions it has."""

from switchgnn.host.wire.header import Kind
from switchgnn.virtual.checks.packets.packet import Packet
from switchgnn.virtual.checks.packets.packet_check import PacketCheck
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.scene import Scene

_COUNT_BITS, _COUNT, _SESSION = 16, 0xFFFF, 64
Sum = tuple[tuple[int, int, int], int]


class MissingCounted(PacketCheck):
    """Compares each MISSING with the slot, when the RECALL has come and now: counts only grow.

    Only where a star's switch takes each packet through at once is the one that it says between
    them, and only there a MISSING is an answer to the last RECALL. Frames may come together with
    one that moves the slot on to a later place; what the slot had before that cannot be seen.
    """

    takes = frozenset({Kind.RECALL})
    gives = frozenset({Kind.MISSING})

    def begin(self, scene: Scene) -> None:
        """Look at a scene from now on."""
        super().begin(scene)
        scenario = scene.scenario
        self._orderly = not (scenario.leaves or scenario.turns or scenario.queue_rate)
        plan = scene.subject.shares[0].plan.switch
        names = zip(plan.result_block.tolist(), plan.result_vertex.tolist(), strict=True)
        places = zip(plan.result_bank.tolist(), plan.result_slot.tolist(), strict=True)
        self._slots = dict(zip(names, places, strict=True)) if self._orderly else {}
        self._least: dict[Sum, int | None] = {}

    def ends(self, switch: VirtualSwitch) -> None:
        """Forget what the switch forgets."""
        self._least.clear()

    def took(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Look at the slot that a RECALL asks for.

        Args:
            switch: where.
            worker: whose port it comes through.
            packet: it.
        """
        if self._orderly:
            self._least[packet.place, packet.destination] = self._count(switch, packet)

    def gave(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Compare a MISSING.

        Args:
            switch: where.
            worker: whose port it leaves through.
            packet: it.
        """
        key = packet.place, packet.destination
        if key not in self._least:
            return
        least, now = self._least[key], self._count(switch, packet)
        if least is not None and now is None:
            return
        least, most = least or 0, max(least or 0, now or 0)
        if not least <= packet.number <= most:
            self.scene.violated(
                "missing counted",
                f"{switch.name} says that the slot of vertex {packet.destination} in round "
                f"{packet.place[0]}, block {packet.block} has {packet.number} contributions: it "
                f"has {least}{f' to {most}' if most > least else ''}",
            )

    def _count(self, switch: VirtualSwitch, packet: Packet) -> int | None:
        """Return a slot's contributions for this place; None once it serves a later one."""
        slot = self._slots.get((packet.block, packet.destination))
        job = self.scene.job
        if slot is None or job is None or switch.engine is None:
            return 0
        registers = switch.engine.state.registers
        state = registers[f"SwitchIngress.banks.bank{slot[0]}.state"].cells[slot[1]]
        number, block, fragment = packet.place
        here = job.session << _SESSION | number << 32 | block << 16 | fragment
        tag = state >> _COUNT_BITS
        if tag > here:
            return None
        return state & _COUNT if tag == here else 0
