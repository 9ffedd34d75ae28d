# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Whose turn it is, and the newest round, never go back while a switch runs (invariant 5)."""

from collections.abc import Sequence

from switchgnn.softswitch.state import RegisterCells
from switchgnn.virtual.checks.check import SwitchCheck
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.scene import Scene

_TURN, _EARLY = ".turn_tag", ".early_tag"
_REGISTERS = (_TURN, _EARLY, ".opened", ".collected_tag")
# Block and fragment.
_PLACE_BITS = 32


class TurnsGrow(SwitchCheck):
    """Compares the registers of the barrier with those in front of the frames before."""

    def begin(self, scene: Scene) -> None:
        """Look at a scene from now on."""
        super().begin(scene)
        self._before: dict[int, dict[str, int]] = {}
        self._registers: dict[int, dict[str, RegisterCells]] = {}
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
            registers = {
                known: register
                for name, register in named
                for known in _REGISTERS
                if name.endswith(known)
            }
            self._registers[switch.number] = registers
            self._images[switch.number] = []
            self._before[switch.number] = _contents(registers)
        images = [register.image(1) for register in registers.values()]
        if images == self._images[switch.number]:
            return
        self._images[switch.number] = images
        before = self._before[switch.number]
        now = self._before[switch.number] = _contents(registers)
        back = [name for name in now if now[name] < before[name]]
        if back and not (back == [_EARLY] and _corrects(before, now)):
            self.scene.violated(
                "turns grow", f"{switch.name} goes back: its barrier had {before}, and has {now}"
            )
        if now[_EARLY] < now[_TURN]:
            self.scene.violated(
                "turns grow", f"{switch.name} refuses features of the block whose turn it is: {now}"
            )


def _contents(registers: dict[str, RegisterCells]) -> dict[str, int]:
    return {name: register.cells[0] for name, register in registers.items()}


def _corrects(before: dict[str, int], now: dict[str, int]) -> bool:
    """Tell whether a round was opened that begins with an earlier block than was foreseen."""
    same_round = before[_EARLY] >> _PLACE_BITS == now[_EARLY] >> _PLACE_BITS
    return same_round and before[_TURN] < now[_TURN] == now[_EARLY]
