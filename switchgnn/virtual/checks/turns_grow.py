# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Whose turn it is, and the newest round, never go back while a switch runs (invariant 5)."""

from collections.abc import MutableSequence

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
        self._cells: dict[int, list[MutableSequence[int]]] = {}

    def ends(self, switch: VirtualSwitch) -> None:
        """Forget what a switch forgets."""
        self._cells.pop(switch.number, None)

    def taken(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        """Compare registers.

        Args:
            switch: where.
            port: its port.
            frames: all of them.
        """
        cells = self._cells.get(switch.number)
        if cells is None:
            if switch.engine is None:
                return
            registers = switch.engine.state.registers.items()
            cells = [register.cells for name, register in registers if name.endswith(_REGISTERS)]
            self._cells[switch.number] = cells
            self._before[switch.number] = [each[0] for each in cells]
        before = self._before[switch.number]
        now = [each[0] for each in cells]
        if now == before:
            return
        self._before[switch.number] = now
        if any(new < old for new, old in zip(now, before, strict=True)):
            self.scene.violated(
                "turns grow", f"{switch.name} goes back: its barrier had {before}, and has {now}"
            )
