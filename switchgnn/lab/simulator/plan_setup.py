"""A plan as the arrays of a simulation."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.array_types import Int64s, Integers, UInt32s
from switchgnn.host.wire.header import LANES
from switchgnn.lab.simulator.errors import SimulatorError
from switchgnn.lab.simulator.request import LEAF, SPINE, LeafSpineOptions
from switchgnn.lab.simulator.setup import Setup
from switchgnn.planner import Direction, Plan, SwitchPart
from switchgnn.planner.arrays import indptr_of, rank_in_group
from switchgnn.planner.costs.flow import SlotNumbers, entries_of
from switchgnn.planner.lanes import sum_frame_bytes
from switchgnn.planner.plan.banks import BANKS
from switchgnn.planner.plan.leaf_spine import (
    check_leaves_that_complete,
    check_one_switch,
    split_for_leaf_spine,
)

# Sums over out-neighbours take as long, on the transposed graph.
_FORWARD = Direction.FORWARD
# The highest bit of a contribution: the pass ends after it.
LAST_OF_PASS = 1 << 31
# Table entries that are looked at together: their additions fit a few tens of megabytes.
_TOGETHER = 1 << 18
# Table entries that are shared out to leaves together, in whole blocks: that takes up to 1.2 GB.
_ENTRIES_SHARED = 1 << 21


def plan_setup(
    plan: Plan,
    fragments: int,
    *,
    whole_features: bool = False,
    leaf_spine: LeafSpineOptions | None = None,
    banks: int = BANKS,
    lanes: tuple[int, ...] = (),
) -> Setup:
    """Return what one exchange of a plan takes.

    Args:
        plan: the plan; one for the strawman makes its destinations compete for slots.
        fragments: of a feature.
        whole_features: a slot holds all fragments, which are exchanged together.
        leaf_spine: what it will be simulated on. Where spines complete sums, each leaf makes the
            passes of its own tables, as the planner fills them; otherwise those of the plan's one
            switch. None: a star.
        banks: of each switch, one of BANKS_OF_SWITCHES, for which the plan was made.
        lanes: numbers in the frames of each fragment; empty: 32 in all of them.

    Returns:
        The arrays, and the numbers that go with them.

    Raises:
        SimulatorError: the leaf-spine does not fit the plan's workers.
        PlannerError: the blocks are too large for these leaves and spines.
    """
    manifest = plan.manifest
    if leaf_spine is not None and manifest.rows > 1:
        raise SimulatorError("Bundles are simulated over one switch only: give --rows 1.")
    record = manifest.direction(_FORWARD)
    first = record.first_block
    blocks = len(record.block_numbers)
    inside = slice(
        *np.searchsorted(plan.switch.result_block, [first, record.last_block + 1]).tolist()
    )
    rows = _SumRows(plan.switch, inside)
    passes, of_worker = _passes_of_workers(plan, leaf_spine, rows, banks)
    arrays = {**_row_arrays(plan, inside, first, blocks), **_packet_arrays(plan, passes, of_worker)}
    shared = _slots_of_banks(manifest.slots, banks) if manifest.strawman else ()
    rounds, together = (1, fragments) if whole_features else (fragments, 1)
    longest = sum_frame_bytes(max(lanes, default=LANES), manifest.rows)
    sizes = (blocks, rounds, shared, together, longest, lanes)
    return Setup(manifest.workers, False, arrays, *sizes, pools=manifest.pools, rows=manifest.rows)


def _slots_of_banks(slots: int, banks: int) -> tuple[int, ...]:
    """Return the slots of each bank, as controller/controls/banks.py splits them."""
    return tuple(slots // banks + (bank < slots % banks) for bank in range(banks))


class _SumRows:
    """The destinations of the blocks, numbered as the plan's results are."""

    def __init__(self, switch: SwitchPart, inside: slice) -> None:
        keys = _key(switch.result_block[inside], switch.result_vertex[inside])
        self._order = np.argsort(keys)
        self._keys = keys[self._order]

    def of(self, block: Integers, vertex: Integers) -> UInt32s:
        """Return the rows of destinations that there are."""
        rows: UInt32s = self._order[np.searchsorted(self._keys, _key(block, vertex))].astype(
            np.uint32
        )
        return rows


def _row_arrays(
    plan: Plan, inside: slice, first: int, blocks: int
) -> dict[str, NDArray[np.generic]]:
    switch, workers = plan.switch, plan.manifest.workers
    worker = switch.result_worker[inside].astype(np.int64)
    share = worker * blocks + switch.result_block[inside] - first
    by_share = np.argsort(share, kind="stable")
    rank = np.empty(len(share), dtype=np.uint32)
    rank[by_share] = rank_in_group(share[by_share])
    return {
        "row_expected": switch.result_expected[inside],
        "row_worker": worker.astype(np.uint8),
        "row_vertex": switch.result_vertex[inside],
        "row_bank": switch.result_bank[inside],
        "row_rank": rank,
        "receive_row": by_share.astype(np.uint32),
        "receive_indptr": _indptr(np.bincount(share, minlength=workers * blocks)),
    }


@dataclass(frozen=True, eq=False)
class _Passes:
    """What the table entries of a switch add to, packet by packet, bank by bank."""

    key: Int64s  # int64[P], block and Src_id of each packet, ascending
    indptr: Int64s  # int64[P + 1], where the contributions of each packet are
    contribution: UInt32s  # uint32[C], rows; the highest bit marks the end of a pass


def _passes_of_workers(
    plan: Plan, leaf_spine: LeafSpineOptions | None, rows: _SumRows, banks: int
) -> tuple[Sequence[_Passes], Sequence[int]]:
    """Return the passes of the switches that workers are attached to, and each worker's switch."""
    one = [0] * plan.manifest.workers
    if leaf_spine is None:
        check_one_switch(plan)
        return [_passes(plan, rows)], one
    attached = leaf_spine.attach(plan.manifest.workers)
    # The planner shares no strawman's plan out, which has no slots of its own.
    shared = leaf_spine.completion == SPINE and not plan.manifest.strawman
    if not (shared and plan.manifest.direction(_FORWARD).block_numbers):
        if leaf_spine.completion == LEAF and not plan.manifest.strawman:
            check_leaves_that_complete(plan, attached)
        return [_passes(plan, rows)], one
    of_leaf: list[list[_Passes]] = [[] for _ in range(attached.leaves)]
    for some in _groups_of_blocks(plan):
        for leaf in split_for_leaf_spine(some, attached, banks=banks).leaves:
            here = _passes(replace(some, switch=leaf.switch), rows)
            of_leaf[leaf.number].append(here)
    return [_joined(passes) for passes in of_leaf], attached.leaf_of_worker


def _groups_of_blocks(plan: Plan) -> Iterator[Plan]:
    """Yield the plan with the tables of some blocks at a time, to be split block by block."""
    switch, numbers = plan.switch, plan.manifest.direction(_FORWARD).block_numbers
    ends = np.searchsorted(switch.entry_block, numbers, side="right").tolist()
    low = 0
    while low < len(numbers):
        begin = ends[low - 1] if low else int(np.searchsorted(switch.entry_block, numbers[0]))
        high = max(low + 1, bisect_right(ends, begin + _ENTRIES_SHARED))
        yield replace(plan, switch=_with_blocks(switch, numbers[low], numbers[high - 1]))
        low = high


def _with_blocks(switch: SwitchPart, first: int, last: int) -> SwitchPart:
    """Return the entries and results of the blocks from the first to the last."""
    kept = {}
    for kind in ("entry", "result"):
        low, high = np.searchsorted(getattr(switch, f"{kind}_block"), [first, last + 1]).tolist()
        names = [it.name for it in fields(switch) if it.name.startswith(f"{kind}_")]
        kept.update({name: getattr(switch, name)[low:high] for name in names})
    return replace(switch, **kept)


def _joined(passes: Sequence[_Passes]) -> _Passes:
    """Those of blocks that follow each other."""
    bases = indptr_of(np.array([len(each.contribution) for each in passes]))
    begins = [each.indptr[:-1] + base for each, base in zip(passes, bases[:-1], strict=True)]
    return _Passes(
        key=np.concatenate([each.key for each in passes]),
        indptr=np.concatenate([*begins, bases[-1:]]),
        contribution=np.concatenate([each.contribution for each in passes]),
    )


def _passes(plan: Plan, rows: _SumRows) -> _Passes:
    """Return the passes of the plan's switch."""
    switch, span = plan.switch, entries_of(plan, _FORWARD)
    numbers = SlotNumbers(plan, _FORWARD)
    row_of = _rows_of_slots(plan, numbers, rows)
    indptr = indptr_of(np.count_nonzero(switch.entry_expected[span], axis=1))
    contribution = np.empty(int(indptr[-1]), dtype=np.uint32)
    for low in range(0, span.stop - span.start, _TOGETHER):
        high = min(low + _TOGETHER, span.stop - span.start)
        some = slice(span.start + low, span.start + high)
        entry, bank = np.nonzero(switch.entry_expected[some])
        slot = switch.entry_slot[some][entry, bank]
        number = numbers.of(switch.entry_block[some][entry], bank, slot)
        contribution[indptr[low] : indptr[high]] = row_of[number]
    contribution[indptr[1:] - 1] |= np.uint32(LAST_OF_PASS)
    begins = np.flatnonzero(switch.entry_hop[span] == 0)
    return _Passes(
        key=_key(switch.entry_block[span][begins], switch.entry_source[span][begins]),
        indptr=np.append(indptr[begins], indptr[-1]),
        contribution=contribution,
    )


def _rows_of_slots(plan: Plan, numbers: SlotNumbers, rows: _SumRows) -> UInt32s:
    """Return the row of each slot, by its number."""
    switch, record = plan.switch, plan.manifest.direction(_FORWARD)
    inside = slice(
        *np.searchsorted(switch.result_block, [record.first_block, record.last_block + 1]).tolist()
    )
    block = switch.result_block[inside]
    row_of = np.zeros(len(numbers.vertex), dtype=np.uint32)
    number = numbers.of(block, switch.result_bank[inside], switch.result_slot[inside])
    row_of[number] = rows.of(block, switch.result_vertex[inside])
    return row_of


def _packet_arrays(
    plan: Plan, passes: Sequence[_Passes], of_worker: Sequence[int]
) -> dict[str, NDArray[np.generic]]:
    """Return what each worker sends in each block: its Count, and what it contributes to."""
    record = plan.manifest.direction(_FORWARD)
    first, last = record.first_block, record.last_block
    bases = indptr_of(np.array([len(each.contribution) for each in passes]))
    sizes, counts, starts, lengths = [], [], [], []
    for part, switch in zip(plan.workers, of_worker, strict=True):
        here = passes[switch]
        sent = np.diff(part.send_indptr[first - 1 : last + 1])
        inside = slice(int(part.send_indptr[first - 1]), int(part.send_indptr[last]))
        block = np.repeat(np.arange(first, last + 1), sent)
        packet = np.searchsorted(here.key, _key(block, part.send_source[inside]))
        sizes.append(sent)
        added = np.diff(part.send_row_indptr)[inside]
        counts.append(added if plan.manifest.rows == 1 else np.ones(int(sent.sum())))
        starts.append(bases[switch] + here.indptr[packet])
        lengths.append(here.indptr[packet + 1] - here.indptr[packet])
    return {
        "send_indptr": _indptr(np.concatenate(sizes)),
        "packet_count": np.concatenate(counts).astype(np.uint16),
        "packet_start": np.concatenate(starts).astype(np.uint64),
        "packet_length": np.concatenate(lengths).astype(np.uint32),
        "contribution": np.concatenate([each.contribution for each in passes]),
    }


def _key(block: Integers, number: Integers) -> Int64s:
    key: Int64s = (block.astype(np.int64) << 32) | number
    return key


def _indptr(sizes: Integers) -> NDArray[np.uint64]:
    return indptr_of(sizes.astype(np.int64)).astype(np.uint64)
