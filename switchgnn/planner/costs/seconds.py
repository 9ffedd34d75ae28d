"""Exchange times of a plan: links, the loop of the switch, and barriers as queues.

Times are whole picoseconds inside, as in the simulator, which this predicts (docs/simulator.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from switchgnn.base.array_types import Int64s, Integers
from switchgnn.planner.arrays import Compiled, indptr_of, rank_within
from switchgnn.planner.costs.flow import entries_of, plan_arrivals, slots_in_use, turns_of
from switchgnn.planner.direction import Direction
from switchgnn.planner.lanes import fragment_lanes, frame_bytes, sum_frame_bytes
from switchgnn.planner.plan.plan import Plan

PICOSECONDS = 1e12
_BITS = 8
# Frames of docs/protocol.md: an acknowledgement, and DONE and ADVANCE.
ACK_BYTES, BARRIER_BYTES = 60, 88
# Features that are acknowledged together.
GROUP = 8
# Groups of a worker beyond its first unconfirmed one, at least (GROUPS_PER_WORKER of p4src).
_GROUPS_APART = 32
# The most windows of a block that the loop may delay one after another.
_MOST_WINDOWS = 16


@dataclass(frozen=True)
class NetworkModel:
    """A star of workers around one switch."""

    bits_per_second: float = 100e9  # of each link, in each direction
    delay: float = 2e-6  # seconds from one end of a link to the other
    # of the loop, for passes after the first of each packet; None: no limit
    passes_per_second: float | None = None
    host_frame: float = 0.0  # seconds of a host's processor for each frame, sent or received
    switch_frame: float = 0.0  # seconds of a software switch for each received frame
    barrier: float = 0.0  # seconds of a barrier beside the frames and the delay
    mtu: int = 1_500  # bytes of the largest IP packet between hosts
    window: int = 512  # features in flight at most, of each worker; between hosts as many bytes
    cores: int | None = None  # shared by all hosts and a software switch; None: each has its own

    @property
    def link_delay(self) -> int:
        """Picoseconds from one end of a link to the other."""
        return round(self.delay * PICOSECONDS)

    @property
    def host_work(self) -> int:
        """Picoseconds of a host's processor for a frame."""
        return round(self.host_frame * PICOSECONDS)

    @property
    def switch_work(self) -> int:
        """Picoseconds of a software switch for a frame."""
        return round(self.switch_frame * PICOSECONDS)

    @property
    def loop_pass(self) -> int:
        """Picoseconds of a pass of the loop; 0 without a limit."""
        rate = self.passes_per_second
        return 0 if rate is None else max(1, round(PICOSECONDS / rate))

    def on_link(self, frame: int) -> int:
        """Return the picoseconds that a frame of that many bytes takes on a link."""
        return round(frame * _BITS * PICOSECONDS / self.bits_per_second)

    def of_host(self, frame: int) -> int:
        """Return the picoseconds after which a host sends or takes the next frame."""
        return max(self.on_link(frame), self.host_work)


def plan_seconds(
    plan: Plan, direction: Direction, width: int, network: NetworkModel, *, together: bool = False
) -> float:
    """Predict one exchange of a plan in steady state.

    Workers send the features of a unit (a fragment of a block) one after another. A sum is complete
    when its last contribution has been added, and queues for its worker. A worker with all its sums
    reports to the barrier, which opens the next unit of the same pool, or the next exchange. With
    `together` a slot holds all fragments of a feature, so units are blocks.
    """
    passed = _Traffic(plan, direction).passed(_units(plan, width, together=together), network)
    return int(passed.max(initial=0)) / PICOSECONDS


def _units(plan: Plan, width: int, *, together: bool) -> list[tuple[int, ...]]:
    """Return the lanes of the fragments of a feature that travel together, for each unit."""
    lanes = fragment_lanes(width, plan.manifest.lanes, plan.manifest.rows)
    return [lanes] if together else [(each,) for each in lanes]


class Rounds(NamedTuple):
    """The traffic of the switch from one barrier to the next, in groups of features.

    A round is a fragment of a block, or all of them if `together`. B blocks have F rounds each, the
    first ones of all blocks first, G groups, and R sums.
    """

    group_indptr: Int64s  # [B * W + 1], the groups of each block and worker
    group_worker: Int64s  # [G], the sender of each
    packets: Int64s  # [G], features in it
    passes: Int64s  # [G], its passes of the loop
    sum_indptr: Int64s  # [G + 1], the sums that each group completes
    sum_worker: Int64s  # [R], the receiver of each
    sums: Int64s  # [B * W], the sums of each worker in each block
    # [F], picoseconds of a packet, and of a sum as its share of a bundle, on a link in each round
    feature: Int64s
    sum_time: Int64s
    ack: int  # picoseconds of a group's acknowledgement on a link
    window: int  # groups in flight of each worker, at most
    rest: Int64s  # [F * B + 1], picoseconds of each round and those after it alone
    work: int  # picoseconds of processors for all of it


def plan_rounds(
    plan: Plan, direction: Direction, width: int, network: NetworkModel, *, together: bool = False
) -> Rounds:
    """Return the traffic of the switch from one barrier to the next."""
    return _Traffic(plan, direction).rounds(_units(plan, width, together=together), network)


@dataclass(frozen=True, eq=False)
class _Added:
    """One fragment of all blocks in the switch."""

    complete: Int64s  # [R], when each sum is complete
    through: Int64s  # [S], when each packet has been added
    last: Int64s  # [R], the entry that completes each sum
    passes: Int64s  # [S], the passes of each packet in the loop


class _OnLinks(NamedTuple):
    """Picoseconds on a link."""

    packet: int
    sum: int  # as its share of a bundle
    ack: int


class _Traffic:
    """The packets of one direction by block (from 0) and source, and its sums."""

    def __init__(self, plan: Plan, direction: Direction) -> None:
        self._plan, self._direction = plan, direction
        record = plan.manifest.direction(direction)
        self._blocks, self._workers = len(record.block_numbers), plan.manifest.workers
        self._rows = plan.manifest.rows
        self._make_packets()
        self._make_sums(record.first_block, record.last_block)
        self._hop = plan.switch.entry_hop[entries_of(plan, direction)].astype(np.int64)
        self._packet = np.cumsum(self._hop == 0) - 1
        self._entry = np.flatnonzero(self._hop == 0)

    def _make_packets(self) -> None:
        sent = plan_arrivals(self._plan, self._direction)
        block, turn = sent.block - 1, turns_of(sent)
        share = block * self._workers + sent.worker
        ends = np.bincount(share, minlength=self._blocks * self._workers)[share] - 1
        order = np.lexsort((sent.source, block))
        self._block, self._worker = block[order], sent.worker[order]
        self._turn = turn[order]
        self._asks = (self._turn % GROUP == GROUP - 1) | (self._turn == ends[order])
        # In order of arrival: the first packets of all workers, then the second ones.
        self._in_turn = np.lexsort((self._worker, self._turn, self._block))
        self._of_worker = np.lexsort((self._turn, self._worker, self._block))

    def _make_sums(self, first: int, last: int) -> None:
        switch = self._plan.switch
        low, high = np.searchsorted(switch.result_block, [first, last + 1]).tolist()
        self._sum_block = switch.result_block[low:high].astype(np.int64) - first
        self._sum_worker = switch.result_worker[low:high].astype(np.int64)
        self._sum_bank = switch.result_bank[low:high]

    def passed(self, units: Sequence[tuple[int, ...]], network: NetworkModel) -> Int64s:
        """Return int64[F * B], when the barrier of each unit passes; `units` are those of a block.

        Units in flight share links, loop and processors, and earlier ones go first. What leaves the
        switch is late by as much as the worker that it waits for begins late.
        """
        added = {each: self._switch(each, network) for each in set(units)}
        asks, sums = np.flatnonzero(self._asks), len(self._sum_block)
        block = np.append(self._sum_block, self._block[asks])
        order, shape = np.argsort(block, kind="stable"), (len(units), len(block))
        leaves, waits_for, service = (np.empty(shape, dtype=np.int64) for _ in range(3))
        loop = np.zeros((len(units), self._blocks), dtype=np.int64)
        for at, each in enumerate(units):
            it, times = added[each], self._on_links(each, network)
            leaves[at] = np.append(it.complete, it.through[asks])[order]
            waits_for[at] = self._worker[np.append(self._packet[it.last], asks)][order]
            service[at] = np.repeat([times.sum, times.ack], [sums, len(asks)])[order]
            passes = np.bincount(self._block, it.passes, minlength=self._blocks).astype(np.int64)
            loop[at] = len(each) * passes * network.loop_pass
        return _pass_units(
            self._plan.manifest.pools,
            indptr_of(np.bincount(block, minlength=self._blocks)),
            leaves,
            waits_for,
            np.append(self._sum_worker, self._worker[asks])[order],
            service,
            loop,
            self._by_link(self._block, self._worker),
            np.array([self._on_links(each, network).packet for each in units]),
            np.array([len(each) * self._work(network) for each in units]),
            network.link_delay,
            barrier_time(self._workers, network),
            shared=network.cores is not None,
        )

    def rounds(self, units: Sequence[tuple[int, ...]], network: NetworkModel) -> Rounds:
        """Return `Rounds`, given the lanes of each unit of a block."""
        passed, times = self.passed(units, network), len(units[0])
        on_links = [self._on_links(each, network) for each in units]
        return Rounds(
            **self._groups(self._switch(units[0], network), times),
            feature=np.array([each.packet for each in on_links]),
            sum_time=np.array([each.sum for each in on_links]),
            ack=on_links[0].ack,
            window=max(1, network.window // (GROUP * times)),
            rest=passed.max(initial=0) - np.append(0, passed),
            work=sum(map(len, units)) * int(self._work(network).sum()),
        )

    def _groups(self, added: _Added, times: int) -> dict[str, Int64s]:
        """Return the groups and sums of `Rounds`; packets make their passes `times` times."""
        order = np.lexsort((self._turn, self._worker, self._block))
        share = self._block * self._workers + self._worker
        begins = self._turn[order] % GROUP == 0
        group = np.empty(len(order), dtype=np.int64)
        group[order] = np.cumsum(begins) - 1
        first, shares = order[begins], self._blocks * self._workers
        completed_by = group[self._packet[added.last]]
        by_group = np.argsort(completed_by, kind="stable")
        return {
            "group_indptr": indptr_of(np.bincount(share[first], minlength=shares)),
            "group_worker": self._worker[first],
            "packets": np.bincount(group, minlength=len(first)),
            "passes": times
            * np.bincount(group, added.passes, minlength=len(first)).astype(np.int64),
            "sum_indptr": indptr_of(np.bincount(completed_by, minlength=len(first))),
            "sum_worker": self._sum_worker[by_group],
            "sums": self._by_link(self._sum_block, self._sum_worker).reshape(-1),
        }

    def _switch(self, lanes: tuple[int, ...], network: NetworkModel) -> _Added:
        """Return the times in the switch for features in frames of these lanes."""
        feature = self._on_links(lanes, network).packet
        loop_pass = len(lanes) * network.loop_pass
        arrival = (self._turn + 1) * feature + network.link_delay
        if network.switch_work:
            order = self._in_turn
            work = np.full(len(order), len(lanes) * network.switch_work)
            arrival[order] = served(arrival[order], work, self._block[order])
        if not loop_pass:
            when = arrival[self._packet]
            last = self._last_entries(when)
            return _Added(when[last], arrival, last, np.zeros(len(arrival), dtype=np.int64))
        # A sum that leaves ends a pass; whole passes determine which sums do.
        splits = np.zeros(len(self._hop), dtype=np.int64)
        last = self._last_entries(self._loop(arrival, splits, loop_pass)[0])
        splits = self._split_passes(last)
        when, begin, through = self._loop(arrival, splits, loop_pass)
        for _ in range(_MOST_WINDOWS):
            held = np.maximum(arrival, self._window_opens(through, lanes, network))
            if np.array_equal(held, arrival):
                break
            arrival = held
            when, begin, through = self._loop(arrival, splits, loop_pass)
        last = self._last_entries(when)
        # An entry completes one sum per pass.
        before = rank_within((last,), (self._sum_bank,))
        from_loop = (self._hop[last] == 0) & (before > 0)
        starts = np.where(from_loop, begin[self._packet[last]], when[last])
        return _Added(starts + before * loop_pass, through, last, self._passes(splits))

    def _window_opens(
        self, through: Int64s, lanes: tuple[int, ...], network: NetworkModel
    ) -> Int64s:
        """Return int64[S], when each packet reaches the switch, given its worker's window.

        A packet waits until fewer than a window before it are unconfirmed, and until the first
        unconfirmed group is near enough. Groups are confirmed in any order.
        """
        order, turn = self._of_worker, self._turn[self._of_worker]
        link = self._block[order] * self._workers + self._worker[order]
        first = np.flatnonzero(turn % GROUP == 0)
        feature, _, ack = self._on_links(lanes, network)
        window = max(1, network.window // len(lanes))
        heard = np.maximum.reduceat(through[order], first) + ack
        confirmed = np.repeat(heard, np.diff(np.append(first, len(order)))) + network.link_delay
        by_time = confirmed[np.lexsort((confirmed, link))]
        in_turn = served(confirmed, np.zeros_like(order), link)
        apart = max(_GROUPS_APART * GROUP, 2 * window)
        at = np.arange(len(order))
        opens = np.maximum(
            np.where(turn >= window, by_time[np.maximum(at - window, 0)], 0),
            np.where(turn >= apart, in_turn[np.maximum(at - apart, 0)], 0),
        )
        opens = served(opens, np.zeros_like(order), link)
        sent = served(opens, np.full(len(order), feature), link)
        arrival = np.empty(len(order), dtype=np.int64)
        arrival[order] = sent + network.link_delay
        return arrival

    def _passes(self, splits: Int64s) -> Int64s:
        """Return int64[S], passes of each packet but the first; `splits` are extra passes."""
        passes: Int64s = np.add.reduceat(1 + splits, self._entry) - 1
        return passes

    def _loop(self, arrival: Int64s, splits: Int64s, service: int) -> tuple[Int64s, Int64s, Int64s]:
        """Return when each entry adds, int64[K], and the begin and end of each packet, int64[S]."""
        passes = self._passes(splits)
        order = np.lexsort((self._worker, arrival, self._block))
        order = order[passes[order] > 0]
        through = arrival.copy()
        through[order] = served(arrival[order], passes[order] * service, self._block[order])
        begin = through - passes * service
        before = np.cumsum(1 + splits) - 1 - splits
        number = before - before[self._entry][self._packet]
        looped = begin[self._packet] + number * service
        return np.where(self._hop == 0, arrival[self._packet], looped), begin, through

    def _last_entries(self, when: Int64s) -> Int64s:
        """Return int64[R], the entry that adds last to each sum."""
        packet = self._packet
        order = np.lexsort((self._worker[packet], when))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        entries: Int64s = order[slots_in_use(self._plan, self._direction, rank)[1]]
        return entries

    def _split_passes(self, last: Int64s) -> Int64s:
        """Return int64[K], the extra passes of an entry for sums that leave."""
        used = self._plan.switch.entry_expected[entries_of(self._plan, self._direction)] > 0
        highest = used.shape[1] - 1 - np.argmax(used[:, ::-1], axis=1)
        ends = self._sum_bank == highest[last]
        # The acknowledgement waits for a pass of its own if the last addition completes a sum.
        final = np.append(self._hop, 0)[1:] == 0
        waits = ends & final[last] & self._asks[self._packet[last]]
        return np.bincount(last[~ends | waits], minlength=len(self._hop))

    def _work(self, network: NetworkModel) -> Int64s:
        """Return int64[B], the least picoseconds of processors for the frames of a block."""
        if not (network.host_work or network.switch_work):
            return np.zeros(self._blocks, dtype=np.int64)
        sent = self._by_link(self._block, self._worker)
        got = -(-self._by_link(self._sum_block, self._sum_worker) // self._rows)
        switch = sent.sum(axis=1) * network.switch_work
        return shared_work((sent + got) * network.host_work, switch, network.cores)

    def _on_links(self, lanes: tuple[int, ...], network: NetworkModel) -> "_OnLinks":
        """Return the times on a link of all fragments of these lanes."""
        packet, bundle = (
            sum(network.of_host(size(each, self._rows)) for each in lanes)
            for size in (frame_bytes, sum_frame_bytes)
        )
        # As if all bundles were full.
        return _OnLinks(packet, bundle // self._rows, len(lanes) * network.of_host(ACK_BYTES))

    def _by_link(self, block: Int64s, worker: Int64s) -> Int64s:
        shape = (self._blocks, self._workers)
        link = block * self._workers + worker
        return np.bincount(link, minlength=shape[0] * shape[1]).reshape(shape)


def barrier_time(workers: int, network: NetworkModel) -> int:
    """Return the picoseconds from the last sum to the next block: DONE and ADVANCE."""
    frames = 2 * network.of_host(BARRIER_BYTES)
    if network.cores is not None:
        frames = max(frames, 2 * workers * network.host_work // network.cores)
    extra = round(network.barrier * PICOSECONDS)
    return frames + 2 * network.link_delay + workers * network.switch_work + extra


def shared_work(hosts: Int64s, switch: Int64s, cores: int | None) -> Int64s:
    """Return int64[B], the least picoseconds of processors: each its own work, or shared cores.

    `hosts` are int64[B, W] and `switch` int64[B], in picoseconds.
    """
    longest: Int64s = np.maximum(hosts.max(axis=1), switch)
    if cores is not None:
        longest = np.maximum(longest, (hosts.sum(axis=1) + switch) // cores)
    return longest


def served(arrival: Int64s, service: Int64s, queue: Integers) -> Int64s:
    """Return int64[N], when each customer of some queues has been served, first in, first out.

    `arrival` ascends in each queue, and `queue` from 0. A customer ends at the largest arrival plus
    all services from there on, over the customers before it.
    """
    if not len(arrival):
        return np.zeros(0, dtype=np.int64)
    done = np.cumsum(service)
    slack = arrival - (done - service)
    # Queues do not affect each other: each is lifted above the ones before it.
    lift = queue.astype(np.int64) * (int(np.ptp(slack)) + 1)
    ends: Int64s = np.maximum.accumulate(slack + lift) - lift + done
    return ends


@Compiled
def _pass_units(  # noqa: PLR0917 - numba takes them by position
    pools: int,
    indptr: Int64s,
    leaves: Int64s,
    waits_for: Int64s,
    to: Int64s,
    service: Int64s,
    loop: Int64s,
    sent: Int64s,
    feature: Int64s,
    work: Int64s,
    link_delay: int,
    barrier: int,
    shared: bool,
) -> Int64s:
    """Return int64[F * B], when the barrier of each unit passes; `passed` makes the arguments.

    Fragment 0 of all blocks is followed by fragment 1. What leaves the switch in block b are the
    rows from indptr[b] to indptr[b + 1] of the arrays [N] and [F, N]; `loop` and `work` are [F, B],
    `sent` is [B, W].
    """
    blocks, workers = sent.shape
    units = len(feature)
    passed = np.zeros(blocks * units, dtype=np.int64)
    up, down = np.zeros(workers, dtype=np.int64), np.zeros(workers, dtype=np.int64)
    reported, loop_free, processors = 0, 0, 0
    for unit in range(blocks * units):
        at, block = unit // blocks, unit % blocks
        begin = passed[unit - pools] if unit >= pools else 0
        start = np.maximum(begin, up)
        up = start + sent[block] * feature[at]
        rows = slice(indptr[block], indptr[block + 1])
        when = leaves[at][rows] + start[waits_for[at][rows]]
        if loop[at, block]:
            when += max(0, loop_free + loop[at, block] - when.max())
            loop_free = when.max()
        for row in np.argsort(when):
            worker = to[indptr[block] + row]
            down[worker] = max(down[worker], when[row]) + service[at, indptr[block] + row]
        reported = max(reported, max(begin, down.max()) + link_delay)
        processors = max(processors, begin) + work[at, block]
        passed[unit] = max(reported, processors) + barrier
        if shared:
            processors = passed[unit] - 2 * link_delay
    return passed
