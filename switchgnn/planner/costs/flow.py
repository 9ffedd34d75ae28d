"""The paper's model of a block's packets through the switch (section 3.2.1)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from switchgnn.base.array_types import Int64s, Integers
from switchgnn.planner.base.arrays import indptr_of, rank_within
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.graphs.graph import FIRST_RESERVED_ID
from switchgnn.planner.plan.banks import BANKS
from switchgnn.planner.plan.leaf_spine import partial_senders
from switchgnn.planner.plan.plan import Plan
from switchgnn.planner.strategies import ORDER_STRATEGIES, OrderStrategy


@dataclass(frozen=True, eq=False)
class Flow:
    """Queue and slots over time; the steps of a block follow those of the block before it."""

    completion: Int64s  # [B], z of each block: the steps until the last sum has left
    largest_queue: Int64s  # [B], the largest Q(t) of each block
    block_indptr: Int64s  # [B + 1], the steps of each block in the arrays below
    queue: Int64s  # [T], Q(t): sums that wait to leave after step t
    occupancy: Int64s  # [T], slots that hold an unfinished sum after step t

    @property
    def steps(self) -> int:
        """The steps of all blocks, one after another."""
        return int(self.completion.sum())


def packet_steps(block: Integers, rate: int) -> tuple[Int64s, Int64s]:
    """Return the step of each packet, int64[S], and of each block, int64[B + 1], if none drains."""
    blocks = int(block.max(initial=0))
    bounds = np.searchsorted(block, np.arange(1, blocks + 2))
    indptr = np.concatenate([[0], np.cumsum(-(-np.diff(bounds) // rate))]).astype(np.int64)
    step = (np.arange(len(block)) - bounds[block - 1]) // rate
    return indptr[block - 1] + step, indptr


def flow_of_sums(first: Int64s, last: Int64s, indptr: Int64s, rate: int) -> Flow:
    """Compute completion time, queue and slots over time, as in section 3.2.1.

    In each step at most `rate` packets enter the switch and `rate` leave it. A sum may leave in the
    step in which its last packet enters:

        Q(t) = max(f(t) + Q(t - 1) - rate, 0)    with f(t) the sums that step t completes
        z = ceil(n / rate) + ceil(Q(ceil(n / rate)) / rate)

    Q(t) is the running sum of f - rate above its running minimum. The arrays include the steps
    after the last arrival in which the queue drains.

    `first` and `last` are int64[R], the steps in which the first and the last packet of each sum
    enter; `indptr`, int64[B + 1], the steps of each block, from `packet_steps`.
    """
    completed = np.bincount(last, minlength=int(indptr[-1]))
    held = np.cumsum(np.bincount(first, minlength=int(indptr[-1])) - completed)

    queues, occupancies = [], []
    for low, high in pairwise(indptr.tolist()):
        level = np.cumsum(completed[low:high] - rate)
        queue = level - np.minimum(np.minimum.accumulate(level), 0)
        drain = np.maximum(queue[-1] - rate * np.arange(1, -(-queue[-1] // rate) + 1), 0)
        queues += [queue, drain]
        occupancies += [held[low:high], np.zeros(len(drain), dtype=np.int64)]
    completion = np.array(
        [len(one) + len(two) for one, two in zip(queues[::2], queues[1::2], strict=True)],
        dtype=np.int64,
    )
    nothing = np.zeros(0, dtype=np.int64)
    return Flow(
        completion=completion,
        largest_queue=np.array([queue.max() for queue in queues[::2]], dtype=np.int64),
        block_indptr=np.concatenate([[0], np.cumsum(completion)]).astype(np.int64),
        queue=np.concatenate([nothing, *queues]),
        occupancy=np.concatenate([nothing, *occupancies]),
    )


# The table entries processed together, in a few tens of megabytes.
_TOGETHER = 1 << 18


class SlotNumbers:
    """A number for each slot in the blocks of a direction, without a search."""

    def __init__(self, plan: Plan, direction: Direction) -> None:
        record, switch = plan.manifest.direction(direction), plan.switch
        self._first, self._switch = record.first_block, switch
        inside = results_of(plan, direction)
        bank = self._bank(switch.result_block[inside], switch.result_bank[inside])
        slot = switch.result_slot[inside].astype(np.int64)
        sizes = np.zeros(len(record.block_numbers) * BANKS, dtype=np.int64)
        np.maximum.at(sizes, bank, slot + 1)
        self._start = indptr_of(sizes)
        # int64[N], the destination of the slot with that number; -1: no such slot
        self.vertex = np.full(int(self._start[-1]), -1, dtype=np.int64)
        self.vertex[self._start[bank] + slot] = switch.result_vertex[inside]

    def of(self, block: Integers, bank: Integers, slot: Integers) -> Int64s:
        """Return the numbers, int64[N], of slots that are in use."""
        numbers: Int64s = self._start[self._bank(block, bank)] + slot
        return numbers

    def additions(self, entries: slice) -> Iterator[tuple[Int64s, Int64s]]:
        """Yield what entries add, some of them at a time: their places in `entries`, and slots."""
        switch = self._switch
        for start in range(entries.start, max(entries.stop, entries.start + 1), _TOGETHER):
            some = slice(start, min(start + _TOGETHER, entries.stop))
            entry, bank = np.nonzero(switch.entry_expected[some])
            slot = switch.entry_slot[some][entry, bank]
            number = self.of(switch.entry_block[some][entry], bank, slot)
            yield entry + (start - entries.start), number

    def _bank(self, block: Integers, bank: Integers) -> Int64s:
        return (block.astype(np.int64) - self._first) * BANKS + bank


def entries_of(plan: Plan, direction: Direction) -> slice:
    """Return the range of the table entries of a direction."""
    record = plan.manifest.direction(direction)
    return _blocks(plan.switch.entry_block, record.first_block, record.last_block)


def results_of(plan: Plan, direction: Direction) -> slice:
    """Return the range of the results of a direction."""
    record = plan.manifest.direction(direction)
    return _blocks(plan.switch.result_block, record.first_block, record.last_block)


def receivers(plan: Plan, direction: Direction) -> tuple[Int64s, Int64s]:
    """Return result and worker, int64[Q] each, of all that await a sum.

    Results, counted from the first of the direction, ascend, and the workers of each. The sum of a
    vertex cut goes to all that contribute to it, and others to one worker.
    """
    inside = results_of(plan, direction)
    if not plan.manifest.replicated:
        worker = plan.switch.result_worker[inside].astype(np.int64)
        return np.arange(len(worker)), worker
    result, worker = partial_senders(plan.switch)
    here = np.flatnonzero((result >= inside.start) & (result < inside.stop))
    here = here[np.lexsort((worker[here], result[here]))]
    return result[here] - inside.start, worker[here]


def slots_in_use(plan: Plan, direction: Direction, when: Integers) -> tuple[Int64s, Int64s]:
    """Find the times of the first and last addition to each slot in use, int64[R] each.

    `when`: integers[K], the time of each table entry of that direction.
    """
    entries, numbers = entries_of(plan, direction), SlotNumbers(plan, direction)
    first = np.full(len(numbers.vertex), np.iinfo(np.int64).max, dtype=np.int64)
    last = np.full(len(numbers.vertex), -1, dtype=np.int64)
    for entry, number in numbers.additions(entries):
        np.minimum.at(first, number, when[entry])
        np.maximum.at(last, number, when[entry])
    used = numbers.vertex >= 0
    return first[used], last[used]


def _blocks(ascending: Integers, first: int, last: int) -> slice:
    low, high = np.searchsorted(ascending, [first, last + 1]).tolist()
    return slice(low, high)


@dataclass(frozen=True, eq=False)
class PacketArrivals:
    """The packets of one direction in the order of arrival: all workers in turn, length S."""

    block: Int64s  # [S], from 1 for the first of the direction, ascending
    source: Int64s  # [S], vertices, and from 2^31 partial sums
    worker: Int64s  # [S], the sender

    def find(self, block: Integers, source: Integers) -> Int64s:
        """Return the indices of these packets."""
        keys = (self.block << 32) | self.source
        by_key = np.argsort(keys)
        wanted = (block.astype(np.int64) << 32) | source
        found: Int64s = by_key[np.searchsorted(keys, wanted, sorter=by_key)]
        return found

    def taken(self, indices: Int64s) -> "PacketArrivals":
        """Return those at these indices."""
        return PacketArrivals(self.block[indices], self.source[indices], self.worker[indices])


def plan_arrivals(plan: Plan, direction: Direction) -> PacketArrivals:
    """Return the packets of a plan in the order of arrival."""
    record = plan.manifest.direction(direction)
    first, last = record.first_block, record.last_block
    blocks, sources, workers = [], [], []
    for part in plan.workers:
        inside = slice(int(part.send_indptr[first - 1]), int(part.send_indptr[last]))
        sizes = np.diff(part.send_indptr[first - 1 : last + 1])
        blocks.append(np.repeat(np.arange(1, len(sizes) + 1), sizes))
        sources.append(part.send_source[inside].astype(np.int64))
        workers.append(np.full(len(sources[-1]), part.worker))
    sent = PacketArrivals(np.concatenate(blocks), np.concatenate(sources), np.concatenate(workers))
    return _by_turns(sent)


def packets_of_entries(plan: Plan, direction: Direction, sent: PacketArrivals) -> Int64s:
    """Return the index in `sent` of the packet of each table entry of a direction, int64[K]."""
    entries, first = entries_of(plan, direction), plan.manifest.direction(direction).first_block
    block = plan.switch.entry_block[entries].astype(np.int64) - first + 1
    return sent.find(block, plan.switch.entry_source[entries])


def reordered(
    plan: Plan, direction: Direction, arriving: PacketArrivals, order: OrderStrategy
) -> PacketArrivals:
    """Return the same packets in the order of another strategy, with the plan's seed."""
    block, source, destination = packet_edges(plan, direction)
    numbers = _as_planned(source, plan)
    by_ends = np.lexsort((destination, numbers))
    block, source, destination = block[by_ends], source[by_ends], destination[by_ends]
    edges = BoundaryEdges(
        source=numbers[by_ends].astype(np.int32),
        destination=destination.astype(np.int32),
        source_worker=arriving.worker[arriving.find(block, source)].astype(np.uint8),
        destination_worker=plan.assignment[destination].astype(np.uint8),
    )
    sends = order(edges, block.astype(np.int32), plan.manifest.strategy.seed)
    renumbered = PacketArrivals(arriving.block, _as_planned(arriving.source, plan), arriving.worker)
    return _by_turns(arriving.taken(renumbered.find(sends.block, sends.source)))


def packet_edges(plan: Plan, direction: Direction) -> tuple[Int64s, Int64s, Int64s]:
    """Return block (from 1), packet and destination of every addition of a direction."""
    switch, entries = plan.switch, entries_of(plan, direction)
    numbers = SlotNumbers(plan, direction)
    entry, number = map(np.concatenate, zip(*numbers.additions(entries), strict=True))
    return (
        switch.entry_block[entries][entry].astype(np.int64)
        - plan.manifest.direction(direction).first_block
        + 1,
        switch.entry_source[entries][entry].astype(np.int64),
        numbers.vertex[number],
    )


def _as_planned(source: Int64s, plan: Plan) -> Int64s:
    summed = source >= FIRST_RESERVED_ID
    return np.where(summed, source - FIRST_RESERVED_ID + plan.manifest.graph.vertices, source)


def turns_of(sent: PacketArrivals) -> Int64s:
    """Return int64[S], the rank of each packet among those of its worker in its block."""
    return rank_within((sent.worker, sent.block))


def _by_turns(sent: PacketArrivals) -> PacketArrivals:
    return sent.taken(np.lexsort((sent.worker, turns_of(sent), sent.block)))


# The plan's own order, and those that it is compared with: the paper's, and none.
OWN = "plan"
COMPARED = ("gamr", "random")
# The most contributions for which other orders are computed.
MOST_REORDERED = 2_000_000


def plan_flows(plan: Plan, direction: Direction) -> dict[str, Flow | None]:
    """Return the flow by order, None where too large; the rate is one packet per worker."""
    contributions = plan.manifest.direction(direction).prediction.contributions
    arriving = plan_arrivals(plan, direction)
    flows: dict[str, Flow | None] = {OWN: _flow(plan, direction, arriving)}
    for name in COMPARED:
        flows[name] = None
        if contributions <= MOST_REORDERED:
            other = reordered(plan, direction, arriving, ORDER_STRATEGIES[name])
            flows[name] = _flow(plan, direction, other)
    return flows


def _flow(plan: Plan, direction: Direction, arriving: PacketArrivals) -> Flow:
    rate = plan.manifest.workers
    when, steps = packet_steps(arriving.block, rate)
    packet = packets_of_entries(plan, direction, arriving)
    return flow_of_sums(*slots_in_use(plan, direction, when[packet]), steps, rate)
