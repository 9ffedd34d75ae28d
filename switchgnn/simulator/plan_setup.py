# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A plan as the arrays of a simulation."""

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.arrays.rows import indptr_of, rank_in_group
from switchgnn.planner.direction import Direction
from switchgnn.planner.plan.banks import BANKS
from switchgnn.planner.plan.plan import Plan, WorkerPart
from switchgnn.planner.plan.slots import SlotNumbers, entries_of
from switchgnn.simulator.exchange_setup import Setup

# The highest bit of a contribution: the pass ends behind it.
LAST_OF_PASS = 1 << 31
# So many table entries are looked at together: their additions fit a few tens of megabytes.
_TOGETHER = 1 << 18


def plan_setup(
    plan: Plan,
    fragments: int,
    direction: Direction = Direction.FORWARD,
    *,
    whole_features: bool = False,
) -> Setup:
    """Return what one exchange of a plan takes.

    Args:
        plan: the plan; one for the strawman makes its destinations compete for slots.
        fragments: of a feature.
        direction: one that it has.
        whole_features: a slot holds all fragments, which are exchanged together.
    """
    manifest = plan.manifest
    record = manifest.direction(direction)
    first = record.first_block
    blocks = len(record.block_numbers)
    inside = slice(
        *np.searchsorted(plan.switch.result_block, [first, record.last_block + 1]).tolist()
    )
    arrays = {
        **_rows(plan, inside, first, blocks),
        **_packets(plan, direction),
        **_contributions(plan, direction, inside),
    }
    pools = _pools(manifest.slots) if manifest.strawman else ()
    rounds, together = (1, fragments) if whole_features else (fragments, 1)
    return Setup(manifest.workers, False, arrays, blocks, rounds, pools, together)


def _pools(slots: int) -> tuple[int, ...]:
    """The slots of each bank, as controller/controls/pool.py splits them."""
    return tuple(slots // BANKS + (bank < slots % BANKS) for bank in range(BANKS))


def _rows(plan: Plan, inside: slice, first: int, blocks: int) -> dict[str, NDArray[np.generic]]:
    """The destinations of the blocks, numbered as the plan's results are."""
    switch, workers = plan.switch, plan.manifest.workers
    worker = switch.result_worker[inside].astype(np.int64)
    share = worker * blocks + switch.result_block[inside] - first
    by_share = np.argsort(share, kind="stable")
    place = np.empty(len(share), dtype=np.uint32)
    place[by_share] = rank_in_group(share[by_share])
    return {
        "row_expected": switch.result_expected[inside],
        "row_worker": worker.astype(np.uint8),
        "row_bank": switch.result_bank[inside],
        "row_place": place,
        "receive_row": by_share.astype(np.uint32),
        "receive_indptr": _indptr(np.bincount(share, minlength=workers * blocks)),
    }


def _packets(plan: Plan, direction: Direction) -> dict[str, NDArray[np.generic]]:
    """What each worker sends in each block: its Count, and which table entries serve it."""
    record, switch, entries = plan.manifest.direction(direction), plan.switch, entries_of
    span = entries(plan, direction)
    first, last = record.first_block, record.last_block
    begins = np.flatnonzero(switch.entry_hop[span] == 0)
    keys = _key(switch.entry_block[span][begins], switch.entry_source[span][begins])
    start = _contribution_indptr(plan, span)
    start = np.append(start[begins], start[-1])
    sizes, found, counts = [], [], []
    for part in plan.workers:
        sent = np.diff(part.send_indptr[first - 1 : last + 1])
        inside = slice(int(part.send_indptr[first - 1]), int(part.send_indptr[last]))
        block = np.repeat(np.arange(first, last + 1), sent)
        sizes.append(sent)
        found.append(np.searchsorted(keys, _key(block, part.send_source[inside])))
        counts.append(_counts(part, inside))
    packet = np.concatenate(found).astype(np.int64)
    return {
        "send_indptr": _indptr(np.concatenate(sizes)),
        "packet_count": np.concatenate(counts).astype(np.uint16),
        "packet_start": start[packet].astype(np.uint64),
        "packet_length": (start[packet + 1] - start[packet]).astype(np.uint32),
    }


def _counts(part: WorkerPart, inside: slice) -> NDArray[np.int64]:
    rows: NDArray[np.int64] = np.diff(part.send_row_indptr[inside.start : inside.stop + 1])
    return rows


def _contributions(
    plan: Plan, direction: Direction, inside: slice
) -> dict[str, NDArray[np.generic]]:
    """The rows that the table entries add to, entry by entry, bank by bank."""
    switch, span = plan.switch, entries_of(plan, direction)
    numbers = SlotNumbers(plan, direction)
    results = (switch.result_block, switch.result_bank, switch.result_slot)
    row_of = np.zeros(len(numbers.vertex), dtype=np.uint32)
    of_results = numbers.of(*(array[inside] for array in results))
    row_of[of_results] = np.arange(len(of_results), dtype=np.uint32)
    indptr = _contribution_indptr(plan, span)
    contribution = np.empty(int(indptr[-1]), dtype=np.uint32)
    for low in range(0, span.stop - span.start, _TOGETHER):
        high = min(low + _TOGETHER, span.stop - span.start)
        some = slice(span.start + low, span.start + high)
        entry, bank = np.nonzero(switch.entry_expected[some])
        slot = switch.entry_slot[some][entry, bank]
        number = numbers.of(switch.entry_block[some][entry], bank, slot)
        contribution[indptr[low] : indptr[high]] = row_of[number]
    contribution[indptr[1:] - 1] |= np.uint32(LAST_OF_PASS)
    return {"contribution": contribution}


def _contribution_indptr(plan: Plan, span: slice) -> NDArray[np.int64]:
    return indptr_of(np.count_nonzero(plan.switch.entry_expected[span], axis=1))


def _key(block: NDArray[np.integer], source: NDArray[np.integer]) -> NDArray[np.int64]:
    key: NDArray[np.int64] = (block.astype(np.int64) << 32) | source
    return key


def _indptr(sizes: NDArray[np.integer]) -> NDArray[np.uint64]:
    return indptr_of(sizes.astype(np.int64)).astype(np.uint64)
