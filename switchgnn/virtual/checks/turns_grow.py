# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Whose turn it is, and the newest round, never go back while a switch runs (invariant 5)."""

from collections.abc import Sequence

from switchgnn.softswitch.stateful import RegisterCells
from switchgnn.virtual.checks.check import SwitchCheck
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.scene import Scene

_REGISTERS = (".turn_tag", ".opened", ".collected_tag")


class TurnsGrow(SwitchCheck):
    """Compares the registers of the barrier with those in front of the frames before."""

    def begin(self, scene: Scene) -> None:
        """Look at a scene from now on."""
        super().begin(scene)
        self._before: dict[int, list[int]] = {}
        self._registers: dict[int, list[RegisterCells]] = {}
        self._images: dict[int, list[Sequence[int]]] = {}

    def ends(self, switch: VirtualSwitch) -> None:
        """Forget what a switch forgets."""
        self._registers.pop(switch.number, None)

    def taken(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        """Compare registers.

        Args:
            switch: where.
            port: its port.
            frames: all of them.
        """
        registers = self._registers.get(switch.number)
        if registers is None:
            if switch.engine is None:
                return
            named = switch.engine.state.registers.items()
            registers = [register for name, register in named if name.endswith(_REGISTERS)]
            self._registers[switch.number] = registers
            self._images[switch.number] = []
            self._before[switch.number] = [register.cells[0] for register in registers]
        images = [register.image(1) for register in registers]
        if images == self._images[switch.number]:
            return
        self._images[switch.number] = images
        before = self._before[switch.number]
        now = self._before[switch.number] = [register.cells[0] for register in registers]
        if any(new < old for new, old in zip(now, before, strict=True)):
            self.scene.violated(
                "turns grow", f"{switch.name} goes back: its barrier had {before}, and has {now}"
            )
