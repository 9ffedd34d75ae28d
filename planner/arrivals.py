# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The packets of a finished plan in the order in which they reach the switch."""

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.direction import Direction
from switchgnn.planner.plan import Plan


def plan_arrivals(
    plan: Plan, direction: Direction
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Say which packet enters when, and what it adds to.

    All links are equally fast: the first packets of all workers enter, then the second ones,
    and so on; a worker that has sent all of its block sends nothing until the next.

    Returns:
        block: int32[S], the block of each packet, from 1 for the first of the direction,
            ascending; packets are numbered by their place here.
        packet: int64[A], for each addition its packet.
        result: int64[A], and the sum that it goes to, numbered from 0 over all blocks.
    """
    record, switch = plan.manifest.direction(direction), plan.switch
    first, last = record.first_block, record.last_block
    block, source, turn = _sends(plan)
    inside = (block >= first) & (block <= last)
    block, source, turn = block[inside], source[inside], turn[inside]
    order = np.lexsort((turn, block))
    block, source = block[order], source[order]

    entry, bank = np.nonzero(switch.entry_expected)
    inside = (switch.entry_block[entry] >= first) & (switch.entry_block[entry] <= last)
    entry, bank = entry[inside], bank[inside]
    sent = (block << 32) | source
    by_key = np.argsort(sent)
    wanted = (switch.entry_block[entry].astype(np.int64) << 32) | switch.entry_source[entry]
    packet = by_key[np.searchsorted(sent, wanted, sorter=by_key)]
    place = (switch.entry_block[entry].astype(np.int64) << 4) | bank
    place = (place << 32) | switch.entry_slot[entry, bank]
    result = np.unique(place, return_inverse=True)[1].reshape(-1)
    return (block - first + 1).astype(np.int32), packet.astype(np.int64), result.astype(np.int64)


def _sends(plan: Plan) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Block, id and turn of every packet of every worker."""
    blocks, sources, turns = [], [], []
    for part in plan.workers:
        sizes = np.diff(part.send_indptr)
        blocks.append(np.repeat(np.arange(1, len(sizes) + 1), sizes))
        sources.append(part.send_source.astype(np.int64))
        turns.append(np.arange(len(part.send_source)) - np.repeat(part.send_indptr[:-1], sizes))
    return np.concatenate(blocks), np.concatenate(sources), np.concatenate(turns)
