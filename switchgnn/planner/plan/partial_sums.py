# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Who sends partial sums for which destination."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.graphs.graph import FIRST_RESERVED_ID
from switchgnn.planner.plan.banks import BANKS
from switchgnn.planner.plan.plan import SwitchPart


@dataclass(frozen=True, eq=False)
class PartialSenders:
    """One row for each pair of a destination in a block and a neighbour that sends it a part.

    Attributes:
        result: int64[P], the place of the destination among the results, ascending.
        neighbour: int64[P], who sends: as `source_worker` has it.
    """

    result: NDArray[np.int64]
    neighbour: NDArray[np.int64]


def partial_senders(switch: SwitchPart) -> PartialSenders:
    """Find out in a switch's part who sends partial sums.

    Args:
        switch: with sources, entries and results.

    Returns:
        The pairs.
    """
    partial = np.flatnonzero(switch.entry_source >= FIRST_RESERVED_ID)
    row, bank = np.nonzero(switch.entry_expected[partial])
    entry = partial[row]
    slots = slot_key(switch.result_block, switch.result_bank, switch.result_slot)
    wanted = slot_key(switch.entry_block[entry], bank, switch.entry_slot[entry, bank])
    source = np.searchsorted(switch.source_vertex, switch.entry_source[entry])
    neighbour = switch.source_worker[source].astype(np.int64)
    result = np.searchsorted(slots, wanted)
    order = np.argsort(result, kind="stable")
    return PartialSenders(result[order], neighbour[order])


def slot_key(
    block: NDArray[np.integer], bank: NDArray[np.integer], slot: NDArray[np.integer]
) -> NDArray[np.int64]:
    """Give each slot of each block a number, in the order of the results of a switch.

    Args:
        block: integers[N].
        bank: integers[N].
        slot: integers[N], in the bank.

    Returns:
        int64[N].
    """
    key: NDArray[np.int64] = (block.astype(np.int64) * BANKS + bank) << 32
    return key + slot
