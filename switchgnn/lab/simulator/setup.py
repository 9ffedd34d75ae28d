"""Turns plans, and rows between hosts (copies or partial sums), into arrays for the models."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.array_types import Bools, Int64s, Integers, UInt8s, UInt32s
from switchgnn.host.base.compression import all_skipped
from switchgnn.host.base.pace import Pace
from switchgnn.host.direct.frames import GROUP, send_order
from switchgnn.host.direct.framing import Framing
from switchgnn.host.direct.outbox import asking_frames
from switchgnn.host.wire.header import BODY_AT, FEATURE_FRAME_BYTES, LANES
from switchgnn.lab.simulator.request import LEAF, SPINE, LeafSpineOptions, SimulatorError
from switchgnn.planner import BoundaryEdges, Direction, Plan, SwitchPart
from switchgnn.planner.base.arrays import indptr_of, sort_by_keys
from switchgnn.planner.base.lanes import frame_bytes, row_frame_bytes, sum_frame_bytes
from switchgnn.planner.check.plan import check_leaves_that_complete, check_one_switch
from switchgnn.planner.costs.flow import SlotNumbers, entries_of, receivers, results_of
from switchgnn.planner.plan.banks import BANKS
from switchgnn.planner.plan.leaf_spine import split_for_leaf_spine
from switchgnn.planner.sending.phases import PhaseMaker

# Of G3's comparison with other full-graph systems (section 7).
BIN_SIZE = 5_000
# Backward exchanges on the transposed graph take as long.
_FORWARD = Direction.FORWARD
# The highest bit of a contribution: the pass ends after it.
LAST_OF_PASS = 1 << 31
# Table entries processed at a time: their additions take a few tens of megabytes.
_TOGETHER = 1 << 18
# Table entries split among leaves at a time, in whole blocks: this takes up to 1.2 GB.
_ENTRIES_SHARED = 1 << 21


@dataclass(frozen=True, eq=False)
class Setup:
    """One exchange of all workers."""

    workers: int
    host_based: bool  # hosts send rows to each other, and the switch only hands them on
    # as `models/schedule.h` and `models/simulation.cc` read them
    arrays: Mapping[str, NDArray[Any]]
    blocks: int = 1  # that are exchanged one after another
    # of a feature, exchanged one after another; 1 if `host_based`, whose frames are listed one by
    # one
    fragments: int = 1
    # the slots of each bank of the strawman; none where each sum has its slot
    bank_slots: tuple[int, ...] = ()
    # fragments of a feature that are exchanged together, as a slot holds them all
    together: int = 1
    # of the longest frame of features or sums that there may be
    data_frame_bytes: int = FEATURE_FRAME_BYTES
    # numbers in the frames of each fragment of a feature; empty: 32 in all of them
    lanes: tuple[int, ...] = ()
    packed_frame_bytes: int = 0  # of a full frame between hosts; 0 where they send each other none
    pools: int = 1  # units, fragments of blocks, in flight at once
    rows: int = 1  # of a frame to or from the switch

    @property
    def mixed(self) -> bool:
        """Whether hosts exchange some rows directly while the switch adds up others."""
        return not self.host_based and self.packed_frame_bytes > 0

    @property
    def fragment_bytes(self) -> tuple[int, ...]:
        """Return the frame size of each fragment of a feature."""
        lanes = self.lanes or (LANES,) * self.fragments_of_feature
        return tuple(frame_bytes(each, self.rows) for each in lanes)

    @property
    def row_bytes(self) -> tuple[int, ...]:
        """Return the frame size of one row of each fragment, which a leaf sends up."""
        return tuple(map(row_frame_bytes, self.lanes or (LANES,) * self.fragments_of_feature))

    @property
    def fragments_of_feature(self) -> int:
        """Return the number of fragments in a feature."""
        return self.fragments * self.together


def host_setup(
    rows: Int64s, features: int, pace: Pace, framing: Framing, *, phases: PhaseMaker | None = None
) -> Setup:
    """Return one exchange in which hosts send each other rows, in the order of `host`.

    `rows`: int64[W, W], the rows from worker a to worker b; `features`: the numbers in a row;
    `phases`: makes those in which frames are sent, each no sooner than its time.
    """
    workers, full = len(rows), BODY_AT + framing.payload_bytes
    frames = framing.frames(rows, features)
    last = framing.frame_bytes(rows, features) - (frames - 1) * full
    made = None if phases is None else phases(frames)
    parts = []
    for worker in range(workers):
        indptr = indptr_of(frames[worker])
        own = None if made is None else made.of_worker(worker)
        order = send_order(worker, indptr, np.arange(int(indptr[-1])), own)
        ends = order.number + 1 == frames[worker][order.peer]
        part: dict[str, NDArray[Any]] = {
            "frame_to": order.peer.astype(np.uint8),
            "frame_confirms": _confirmed(order.number, asking_frames(order, pace)),
            "frame_bytes": np.where(ends, last[worker][order.peer], full).astype(np.uint16),
            "frame_due": order.due.astype(np.uint64),
        }
        parts.append(part)
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    arrays["frame_indptr"] = indptr_of(frames.sum(axis=1)).astype(np.uint64)
    arrays["awaited"] = frames.sum(axis=0).astype(np.uint64)
    return Setup(workers, True, arrays, data_frame_bytes=full, packed_frame_bytes=full)


def boundary_of_plan(plan: Plan) -> BoundaryEdges:
    """Return the boundary edges that the switch of a plan serves."""
    record = plan.manifest.direction(Direction.FORWARD)
    sources, destinations = [], []
    for part in plan.workers:
        first, last = part.receive_indptr[[record.first_block - 1, record.last_block]].tolist()
        sums = slice(*part.neighbour_indptr[[first, last]].tolist())
        sizes = np.diff(part.neighbour_indptr[first : last + 1])
        sources.append(part.neighbour_vertex[sums])
        destinations.append(np.repeat(part.receive_vertex[first:last], sizes))
    source, destination = (
        np.concatenate(each).astype(np.int32) for each in (sources, destinations)
    )
    sender, receiver = (plan.assignment[end].astype(np.uint8) for end in (source, destination))
    order = sort_by_keys(destination, source)
    return BoundaryEdges(source, destination, sender, receiver).take(order)


def _confirmed(number: Int64s, asking: Bools) -> UInt8s:
    """How many frames the ACK of each asking frame confirms: those since the last of its group.

    The frames of a group leave one after another, and nothing is lost.
    """
    index = np.arange(len(number))
    before = np.maximum.accumulate(np.where(asking, index, -1))
    last_asked = np.append(-1, before)[:-1]
    since = np.minimum(index - last_asked, number % GROUP + 1)
    return np.where(asking, since, 0).astype(np.uint8)


def mixed_setup(switch: Setup, rows: Int64s, features: int, pace: Pace, framing: Framing) -> Setup:
    """Add the rows that hosts send each other to the switch's part, which `plan_setup` returns.

    Arguments are those of `host_setup`. The other part is left out if the switch has no blocks, or
    if there are no rows.
    """
    hosts = host_setup(rows, features, pace, framing)
    if not switch.blocks:
        return hosts
    if not rows.any():
        return switch
    return replace(
        switch,
        arrays={**switch.arrays, **hosts.arrays},
        data_frame_bytes=max(switch.data_frame_bytes, hosts.data_frame_bytes),
        packed_frame_bytes=hosts.packed_frame_bytes,
    )


def overlapped_seconds(compute: float, communication: float, bins: int) -> float:
    """Return the seconds that bins save of a layer, or of an epoch of equal layers.

    Bins pass a pipeline of two stages: computing (c seconds in all), and sending (s). With B bins
    that takes (c + s + (B - 1) max(c, s)) / B. Without bins (0) nothing is saved.
    """
    return min(compute, communication) * (bins - 1) / bins if bins else 0.0


def plan_setup(
    plan: Plan,
    fragments: int,
    *,
    whole_features: bool = False,
    leaf_spine: LeafSpineOptions | None = None,
    banks: int = BANKS,
    lanes: tuple[int, ...] = (),
    left_out: Bools | None = None,
) -> Setup:
    """Return one exchange of a plan. In one for the strawman destinations compete for slots.

    Args:
        plan: the plan.
        fragments: of a feature.
        whole_features: a slot holds all fragments, which are exchanged together.
        leaf_spine: what it will be simulated on; None: a star. Where spines complete sums, each
            leaf makes the passes of its own tables; otherwise those of the plan's one switch.
        banks: of each switch, for which the plan was made.
        lanes: numbers in the frames of each fragment; empty: 32 in all of them.
        left_out: bool[V], vertices without a row, whose frames have no body; None: there are none.

    Raises:
        SimulatorError: the plan has bundles, or is for a vertex cut, and leaves complete sums.
        PlannerError: the leaf-spine does not fit the plan's workers, or its blocks are too large.
    """
    manifest = plan.manifest
    if leaf_spine is not None and leaf_spine.completion == LEAF and manifest.rows > 1:
        raise SimulatorError("Leaves that complete sums take no bundles: give --rows 1.")
    if leaf_spine is not None and leaf_spine.completion == LEAF and manifest.replicated:
        raise SimulatorError("The sums of a vertex cut are completed by spines: leave out leaf.")
    record = manifest.direction(_FORWARD)
    first = record.first_block
    blocks = len(record.block_numbers)
    inside = results_of(plan, _FORWARD)
    rows = _SumRows(plan.switch, inside)
    passes, of_worker = _passes_of_workers(plan, leaf_spine, rows, banks)
    if left_out is None:
        left_out = np.zeros(len(plan.assignment), dtype=np.bool_)
    packets = _packet_arrays(plan, passes, of_worker, left_out)
    arrays = {**_row_arrays(plan, inside, first, blocks), **packets}
    # As controller/controls/banks.py splits them.
    shares = (manifest.slots // banks + (bank < manifest.slots % banks) for bank in range(banks))
    shared = tuple(shares) if manifest.strawman else ()
    rounds, together = (1, fragments) if whole_features else (fragments, 1)
    longest = sum_frame_bytes(max(lanes, default=LANES), manifest.rows)
    sizes = (blocks, rounds, shared, together, longest, lanes)
    return Setup(manifest.workers, False, arrays, *sizes, pools=manifest.pools, rows=manifest.rows)


class _SumRows:
    def __init__(self, switch: SwitchPart, inside: slice) -> None:
        self._keys = _key(switch.result_block[inside], switch.result_vertex[inside])
        self._order = np.argsort(self._keys)

    def of(self, block: Integers, vertex: Integers) -> UInt32s:
        at = np.searchsorted(self._keys, _key(block, vertex), sorter=self._order)
        return self._order[at].astype(np.uint32)


def _row_arrays(
    plan: Plan, inside: slice, first: int, blocks: int
) -> dict[str, NDArray[np.generic]]:
    switch, workers = plan.switch, plan.manifest.workers
    row, worker = receivers(plan, _FORWARD)
    share = worker * blocks + switch.result_block[inside][row] - first
    by_share = np.argsort(share, kind="stable")
    return {
        "row_expected": switch.result_expected[inside],
        "row_worker": switch.result_worker[inside].astype(np.uint8),
        "row_vertex": switch.result_vertex[inside],
        "row_bank": switch.result_bank[inside],
        "sum_indptr": _indptr(np.bincount(row, minlength=inside.stop - inside.start)),
        "sum_worker": worker.astype(np.uint8),
        "receive_row": row[by_share].astype(np.uint32),
        "receive_indptr": _indptr(np.bincount(share, minlength=workers * blocks)),
    }


@dataclass(frozen=True, eq=False)
class _Passes:
    """The rows that a switch's table entries add to, packet by packet, bank by bank."""

    key: Int64s  # int64[P], block and Src_id of each packet, ascending
    indptr: Int64s  # int64[P + 1], where the contributions of each packet are
    contribution: UInt32s  # uint32[C], rows; the highest bit marks the end of a pass


def _passes_of_workers(
    plan: Plan, leaf_spine: LeafSpineOptions | None, rows: _SumRows, banks: int
) -> tuple[Sequence[_Passes], Sequence[int]]:
    """Return the passes of each switch that has workers, and the index of each worker's switch."""
    one = [0] * plan.manifest.workers
    if leaf_spine is None:
        check_one_switch(plan)
        return [_passes(plan, rows)], one
    attached = leaf_spine.attach(plan.manifest.workers)
    # The planner cannot split a strawman's plan, which assigns no slots.
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
    switch, numbers = plan.switch, plan.manifest.direction(_FORWARD).block_numbers
    ends = np.searchsorted(switch.entry_block, numbers, side="right").tolist()
    low = 0
    while low < len(numbers):
        begin = ends[low - 1] if low else int(np.searchsorted(switch.entry_block, numbers[0]))
        high = max(low + 1, bisect_right(ends, begin + _ENTRIES_SHARED))
        yield replace(plan, switch=_with_blocks(switch, numbers[low], numbers[high - 1]))
        low = high


def _with_blocks(switch: SwitchPart, first: int, last: int) -> SwitchPart:
    kept = {}
    for kind in ("entry", "result"):
        low, high = np.searchsorted(getattr(switch, f"{kind}_block"), [first, last + 1]).tolist()
        names = [it.name for it in fields(switch) if it.name.startswith(f"{kind}_")]
        kept.update({name: getattr(switch, name)[low:high] for name in names})
    return replace(switch, **kept)


def _joined(passes: Sequence[_Passes]) -> _Passes:
    bases = indptr_of(np.array([len(each.contribution) for each in passes]))
    begins = [each.indptr[:-1] + base for each, base in zip(passes, bases[:-1], strict=True)]
    return _Passes(
        key=np.concatenate([each.key for each in passes]),
        indptr=np.concatenate([*begins, bases[-1:]]),
        contribution=np.concatenate([each.contribution for each in passes]),
    )


def _passes(plan: Plan, rows: _SumRows) -> _Passes:
    switch, span = plan.switch, entries_of(plan, _FORWARD)
    numbers, inside = SlotNumbers(plan, _FORWARD), results_of(plan, _FORWARD)
    block = switch.result_block[inside]
    number = numbers.of(block, switch.result_bank[inside], switch.result_slot[inside])
    row_of = np.zeros(len(numbers.vertex), dtype=np.uint32)
    row_of[number] = rows.of(block, switch.result_vertex[inside])
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


def _packet_arrays(
    plan: Plan, passes: Sequence[_Passes], of_worker: Sequence[int], left_out: Bools
) -> dict[str, NDArray[np.generic]]:
    """Return the packets of each worker in each block: their Count and their contributions."""
    record = plan.manifest.direction(_FORWARD)
    first, last = record.first_block, record.last_block
    bases = indptr_of(np.array([len(each.contribution) for each in passes]))
    sizes, counts, starts, lengths, bare = [], [], [], [], []
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
        rows = part.send_row_indptr[:: plan.manifest.rows]
        bare.append(all_skipped(left_out[part.vertices], part.send_row, rows)[inside])
    return {
        "send_indptr": _indptr(np.concatenate(sizes)),
        "packet_count": np.concatenate(counts).astype(np.uint16),
        "packet_bare": np.concatenate(bare).astype(np.uint8),
        "packet_start": np.concatenate(starts).astype(np.uint64),
        "packet_length": np.concatenate(lengths).astype(np.uint32),
        "contribution": np.concatenate([each.contribution for each in passes]),
    }


def _key(block: Integers, number: Integers) -> Int64s:
    key: Int64s = (block.astype(np.int64) << 32) | number
    return key


def _indptr(sizes: Integers) -> NDArray[np.uint64]:
    return indptr_of(sizes.astype(np.int64)).astype(np.uint64)
