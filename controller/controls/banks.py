# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The counters and sizes of banks.p4 and aggregator.p4, and of the strawman's banks."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from switchgnn.controller.errors import OtherProgramError
from switchgnn.controller.p4runtime.layout import Layout

PASSES_COUNTER = "passes"
# A cell that only the banks of the strawman have, behind the others.
OVERFLOWED_CELL = 4


class SlotEvent(IntEnum):
    """What became of a contribution in its slot, beyond being added."""

    SLOT_COMPLETED = 0
    SLOT_STALE = 1
    SLOT_OVERFULL = 2
    SLOT_RELEASED = 3


@dataclass(frozen=True)
class BankEvents:
    """Contributions to one bank that did not just add.

    Attributes:
        completed: they completed a slot.
        stale: they came too late.
        overfull: they were one too many.
        released: the worker of the slot's vertex sums for itself.
        overflowed: they found no slot and went to the worker as they came.
    """

    completed: int
    stale: int
    overfull: int
    released: int
    overflowed: int


@dataclass(frozen=True)
class Passes:
    """How much the switch has worked.

    Attributes:
        by_contributions: cell n counts the passes that made n contributions.
    """

    by_contributions: tuple[int, ...]

    @property
    def passes(self) -> int:
        """All passes."""
        return sum(self.by_contributions)

    @property
    def contributions(self) -> int:
        """All contributions."""
        return sum(number * passes for number, passes in enumerate(self.by_contributions))


class Banks:
    """All banks."""

    def __init__(self, layout: Layout) -> None:
        self._values = [
            layout.registers[name]
            for name in sorted(layout.registers)
            if name.startswith(("bank", "lanes")) and name.endswith(".value")
        ]
        if not self._values:
            raise OtherProgramError("The P4 program has no banks of aggregators.")
        self.event_counters = [f"bank{bank}.events" for bank in range(len(self._values))]

    @property
    def banks(self) -> int:
        """Number of banks."""
        return len(self._values)

    @property
    def slots_per_bank(self) -> int:
        """Slots of the smallest bank."""
        return min(value.size for value in self._values)

    @staticmethod
    def decode_events(cells: Sequence[int]) -> BankEvents:
        """Return one bank's events from the cells of its counter."""
        return BankEvents(
            completed=cells[SlotEvent.SLOT_COMPLETED],
            stale=cells[SlotEvent.SLOT_STALE],
            overfull=cells[SlotEvent.SLOT_OVERFULL],
            released=cells[SlotEvent.SLOT_RELEASED],
            overflowed=sum(cells[OVERFLOWED_CELL : OVERFLOWED_CELL + 1]),
        )
