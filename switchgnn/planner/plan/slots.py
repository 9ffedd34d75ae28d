# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The slots of one direction of a finished plan, and when they are in use."""

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.arrays.rows import indptr_of
from switchgnn.planner.direction import Direction
from switchgnn.planner.plan.banks import BANKS
from switchgnn.planner.plan.plan import Plan

# How many table entries are looked at together: additions then fit a few tens of megabytes.
_TOGETHER = 1 << 18


class SlotNumbers:
    """A number for each slot that a block of the direction uses, without a search.

    Attributes:
        vertex: int64[N], whose sum the slot with that number makes; -1 for numbers of no slot.
    """

    def __init__(self, plan: Plan, direction: Direction) -> None:
        record, switch = plan.manifest.direction(direction), plan.switch
        self._first = record.first_block
        inside = _blocks(switch.result_block, record.first_block, record.last_block)
        bank = self._bank(switch.result_block[inside], switch.result_bank[inside])
        slot = switch.result_slot[inside].astype(np.int64)
        sizes = np.zeros(len(record.block_numbers) * BANKS, dtype=np.int64)
        np.maximum.at(sizes, bank, slot + 1)
        self._start = indptr_of(sizes)
        self.vertex = np.full(int(self._start[-1]), -1, dtype=np.int64)
        self.vertex[self._start[bank] + slot] = switch.result_vertex[inside]

    def of(
        self, block: NDArray[np.integer], bank: NDArray[np.integer], slot: NDArray[np.integer]
    ) -> NDArray[np.int64]:
        """Return the numbers of slots that are in use.

        Args:
            block: integers[N], blocks of the direction.
            bank: integers[N], 0 <= bank < BANKS.
            slot: integers[N], in the bank.

        Returns:
            int64[N].
        """
        numbers: NDArray[np.int64] = self._start[self._bank(block, bank)] + slot
        return numbers

    def _bank(self, block: NDArray[np.integer], bank: NDArray[np.integer]) -> NDArray[np.int64]:
        return (block.astype(np.int64) - self._first) * BANKS + bank


def entries_of(plan: Plan, direction: Direction) -> slice:
    """Return where the table entries of a direction are."""
    record = plan.manifest.direction(direction)
    return _blocks(plan.switch.entry_block, record.first_block, record.last_block)


def slots_in_use(
    plan: Plan, direction: Direction, when: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the first and the last time that something is added to each slot, one per sum.

    Args:
        plan: the plan.
        direction: one that it has.
        when: integers[K], the time of each table entry of that direction.

    Returns:
        (first, last), int64[R] each, in the order of the slots' numbers.
    """
    switch, entries = plan.switch, entries_of(plan, direction)
    numbers = SlotNumbers(plan, direction)
    first = np.full(len(numbers.vertex), np.iinfo(np.int64).max, dtype=np.int64)
    last = np.full(len(numbers.vertex), -1, dtype=np.int64)
    for start in range(entries.start, entries.stop, _TOGETHER):
        some = slice(start, min(start + _TOGETHER, entries.stop))
        entry, bank = np.nonzero(switch.entry_expected[some])
        slot = switch.entry_slot[some][entry, bank]
        number = numbers.of(switch.entry_block[some][entry], bank, slot)
        time = when[some.start - entries.start : some.stop - entries.start][entry]
        np.minimum.at(first, number, time)
        np.maximum.at(last, number, time)
    used = numbers.vertex >= 0
    return first[used], last[used]


def _blocks(ascending: NDArray[np.integer], first: int, last: int) -> slice:
    low, high = np.searchsorted(ascending, [first, last + 1]).tolist()
    return slice(low, high)
