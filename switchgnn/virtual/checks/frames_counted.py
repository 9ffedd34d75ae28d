# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Each frame that a switch has received is counted under exactly one outcome."""

from switchgnn.virtual.checks.check import SwitchCheck
from switchgnn.virtual.parts.switch import VirtualSwitch

_OUTCOME = ".outcome"


class FramesCounted(SwitchCheck):
    """Adds up the outcomes of a switch whenever it ends."""

    def ends(self, switch: VirtualSwitch) -> None:
        """Add up what a switch has counted."""
        engine = switch.engine
        if engine is None:
            return
        received = engine.counts.received.total()
        cells = next(
            counter for name, counter in engine.state.counters.items() if name.endswith(_OUTCOME)
        )
        counted = sum(cells.packets[: cells.size])
        if counted != received:
            self.scene.violated(
                "frames counted",
                f"switch {switch.name} has received {received} frames, and counted {counted}",
            )

    def conclude(self, *, in_time: bool) -> None:
        """Add up what all switches have counted.

        Args:
            in_time: whether all has ended by itself.
        """
        for switch in self.scene.switches:
            self.ends(switch)
