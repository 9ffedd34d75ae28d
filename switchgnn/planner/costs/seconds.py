"""Predicted times of exchanges: over the switch, between hosts, and of both on the same links.

Times are whole picoseconds inside, as in the simulator, which this predicts (docs/simulator.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from switchgnn.base.array_types import Float64s, Int64s, Integers
from switchgnn.planner.base.arrays import ranges
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.base.lanes import fragment_lanes, frame_bytes, sum_frame_bytes
from switchgnn.planner.costs import flow
from switchgnn.planner.plan.plan import Plan

PICOSECONDS = 1e12
_BITS = 8
# Frames of docs/protocol.md: an acknowledgement, and DONE and ADVANCE.
_ACK_BYTES, _BARRIER_BYTES = 60, 88
# Features, or frames between hosts, that are acknowledged together.
_GROUP = 8
_NUMBER_BYTES, _ETHERNET_BYTES, _HEADERS_BYTES = 4, 14, frame_bytes(0)
# A feature's frame of 32 numbers, the unit of windows.
_FEATURE_BYTES = frame_bytes(32)
# Frames of TCP's first window (RFC 6928), and the features of a worker's window after losses.
_FIRST_WINDOW, _SAFE_WINDOW = 10.0, 16
# Until windows are wide, frames leave in bursts, and at this multiple of a window per trip.
_BURST, _PACE = 8, 1.25
# The share of a window that other frames wait for, as the simulator has it on average.
_IN_FLIGHT = 1 / 3
_NEVER = -(1 << 60)


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

    def of_host(self, frame: int) -> int:
        """Return the picoseconds that a frame of that many bytes takes on a link, or of a host."""
        on_link = round(frame * _BITS * PICOSECONDS / self.bits_per_second)
        return max(on_link, self.host_work)


@dataclass(frozen=True, eq=False)
class Part:
    """An exchange over the switch, or between hosts; times are in picoseconds."""

    alone: int  # until it is over, without the other part
    up: Int64s  # [W], on the link of each worker
    down: Int64s  # [W]
    work: int  # of processors, at least
    barriers: float = 0.0  # over the switch, one after another
    queue: float = 0.0  # between hosts: how long a frame waits behind those in flight
    free: float = 0.0  # between hosts: pauses of the busiest link that other frames can use

    @property
    def links(self) -> int:
        """The time of the busiest link."""
        return int(max(self.up.max(), self.down.max()))


def plan_seconds(
    plan: Plan, direction: Direction, width: int, network: NetworkModel, *, together: bool = False
) -> float:
    """Predict one exchange of a plan over the switch, without the rows that it leaves to hosts."""
    return plan_part(plan, direction, width, network, together=together).alone / PICOSECONDS


def host_seconds(rows: Int64s, width: int, network: NetworkModel) -> float:
    """Predict an exchange in which hosts send int64[W, W] rows to each other."""
    return host_part(rows, width, network).alone / PICOSECONDS


def exchange_seconds(
    plan: Plan,
    direction: Direction,
    width: int,
    network: NetworkModel,
    rows: Int64s,
    *,
    together: bool = False,
) -> float:
    """Predict one exchange of a plan that leaves int64[W, W] rows to the hosts.

    Both parts begin at once and share links. Frames of hosts also leave while the switch waits for
    barriers, but each of its units waits behind those in flight. Once the hosts are through, the
    remaining units take as long as they do alone.
    """
    inside = plan_part(plan, direction, width, network, together=together)
    hosts = host_part(rows, width, network)
    links = max((inside.up + hosts.up).max(), (inside.down + hosts.down).max())
    shared = max(0.0, float(links) - hosts.links - hosts.free)
    waits = inside.barriers * hosts.queue
    late = waits * hosts.alone / (inside.alone - shared + waits) if waits else 0.0
    longest = max(hosts.alone + shared, inside.alone + late, inside.work + hosts.work)
    return float(longest) / PICOSECONDS


def packed_frames(rows: Int64s, width: int, mtu: int) -> tuple[Int64s, Int64s]:
    """Count the frames between hosts and their bytes, int64[W, W] each, for int64[W, W] rows.

    The rows of a pair are a run of bytes, cut into frames of up to the MTU.
    """
    run = rows * (_NUMBER_BYTES * width)
    frames = -(-run // (_packed_frame_bytes(mtu) - _HEADERS_BYTES))
    return frames, run + frames * _HEADERS_BYTES


def _packed_frame_bytes(mtu: int) -> int:
    room = mtu + _ETHERNET_BYTES - _HEADERS_BYTES
    return _HEADERS_BYTES + room - room % _NUMBER_BYTES


def host_part(rows: Int64s, width: int, network: NetworkModel) -> Part:
    """Predict an exchange in which hosts send int64[W, W] rows to each other.

    The busiest link is idle until windows cover a trip there and back, and at the end, when the
    last frame passes its other link and is acknowledged.
    """
    frames, sizes = packed_frames(rows, width, network.mtu)
    ack = network.of_host(_ACK_BYTES)
    frame = network.of_host(min(_packed_frame_bytes(network.mtu), int(sizes.max(initial=0))))
    on_links = np.rint(sizes * (_BITS * PICOSECONDS / network.bits_per_second))
    times = np.maximum(on_links, frames * network.host_work)
    asked = -(-frames // _GROUP)
    # The last acknowledgement of a link follows its last frame.
    up, down = (
        (times.sum(axis=axis) + ack * np.maximum(asked.sum(axis=1 - axis) - 1, 0)).astype(np.int64)
        for axis in (1, 0)
    )
    if not frames.any():
        return Part(0, up, down, 0)
    trip = 2 * (frame + ack) + 4 * network.link_delay + network.switch_work
    taken = np.concatenate([up, down])
    idle, queue, free = _windows(frames, taken, trip, network)
    at = np.argmax(taken + idle)
    hosts = (frames.sum(axis=1) + frames.sum(axis=0))[None] * network.host_work
    switch = np.array([frames.sum() * network.switch_work])
    work = int(shared_work(hosts, switch, network.cores)[0])
    alone = int((taken + idle).max()) + trip - frame
    return Part(max(alone, work), up, down, work, queue=float(queue[at]), free=float(free[at]))


def _windows(
    frames: Int64s, taken: Int64s, trip: int, network: NetworkModel
) -> tuple[Float64s, Float64s, Float64s]:
    """Return how long each link pauses, the wait for frames in flight, and pauses of other frames.

    Links up, and then those down, take `taken` for int64[W, W] frames; a link down has a share of
    the windows of all senders. Until windows are wide, what leaves in one round of trips is counted
    frame by frame; from then on a round is a window of whole groups.
    """
    full = _packed_frame_bytes(network.mtu)
    most = max(1, network.window * _FEATURE_BYTES // full) + _GROUP - 1.0
    first = min(most, max(_FIRST_WINDOW, _SAFE_WINDOW * _FEATURE_BYTES / full))
    left, asked = (
        np.concatenate([each.sum(axis=1), each.sum(axis=0)]).astype(np.float64)
        for each in (frames, -(-frames // _GROUP))
    )
    shares = frames / np.maximum(frames.sum(axis=1, keepdims=True), 1)
    share = np.append(np.ones(len(frames)), shares.sum(axis=0))
    group, each = np.maximum(left / np.maximum(asked, 1), 1), taken / np.maximum(left, 1)
    # While windows open, and while other links are the bottleneck, fewer frames are in flight.
    queue = np.maximum(0.0, np.minimum(most * share, left) * each - trip) * _IN_FLIGHT
    # Acknowledgements are of groups: each waits for its last frame, on both links.
    wait = 2 * group * each
    ends, rest = _opened(frames, first, most, each, trip + wait[: len(frames)])
    moving = np.maximum((most - most % group) * share, 1)
    pause = np.maximum(trip + wait - moving * each, wait)
    free = np.where(pause == wait, pause, 0) * rest / moving
    return ends + rest * (each + pause / moving) - taken, queue, free


def _opened(
    frames: Int64s, first: float, most: float, each: Float64s, trip: Float64s
) -> tuple[Float64s, Int64s]:
    """Return when each link has carried the frames that leave until windows are wide, and the rest.

    Windows of `first` frames double with each window that is confirmed, as TCP's, up to `most`. So
    long frames leave in bursts, and the rest of a window in a part of a trip. `each`: the time of a
    frame on each link; `trip`: that of a round of each sender.
    """
    order, total = _SendOrder.of(frames), frames.sum(axis=1)
    sent, heard, fresh = (np.zeros(len(frames), dtype=np.int64) for _ in range(3))
    wide, start, ends = np.full(len(frames), first), np.zeros(len(frames)), np.zeros(len(each))
    while True:
        confirmed = order.confirmed(sent)
        fresh, heard = fresh + confirmed - heard, confirmed
        grows = fresh >= wide
        wide = np.where(grows, np.minimum(2 * wide, most), wide)
        fresh[grows] = 0
        until = np.minimum(total, np.maximum(sent, heard + wide.astype(np.int64)))
        sends = until > sent
        paced = np.where(wide < most, np.maximum(until - sent - _BURST, 0) / (_PACE * wide), 0)
        last, now = start + paced * trip, np.append(until - sent, order.received(sent, until))
        begins = np.append(start, np.full(len(start), start[sends].min(initial=np.inf)))
        least = np.append(last, np.full(len(last), last[sends].max(initial=0)))
        ends = np.where(now > 0, np.maximum(np.maximum(ends, begins) + now * each, least), ends)
        sent = until
        if (sent == total).all() or (wide == most).all():
            return ends, np.append(total - sent, order.received(sent, total))
        start = start + np.where(sent < total, trip, 0)


@dataclass(frozen=True, eq=False)
class _SendOrder:
    """The frames of all senders, one sender after another, in the order of sending."""

    begin: Int64s  # [W], of each sender's
    receiver: Int64s  # [N]
    complete: Int64s  # [N + 1], frames in groups that end before each

    @classmethod
    def of(cls, frames: Int64s) -> "_SendOrder":
        """Spread the groups of frames for each receiver evenly, like `host/direct/frames.py`."""
        workers, count = len(frames), frames.reshape(-1)
        pair = np.repeat(np.arange(workers * workers), count)
        number = ranges(np.zeros_like(count), count)
        sender, receiver = np.divmod(pair, workers)
        turn = (number // _GROUP + 0.5) / (-(-count // _GROUP))[pair]
        order = np.lexsort((number, (receiver - sender) % workers, turn, sender))
        pair, number = pair[order], number[order] + 1
        asks = (number == count[pair]) | (number % _GROUP == 0)
        confirms = np.where(asks, (number - 1) % _GROUP + 1, 0)
        sent = frames.sum(axis=1)
        return cls(np.cumsum(sent) - sent, receiver[order], np.append(0, np.cumsum(confirms)))

    def confirmed(self, sent: Int64s) -> Int64s:
        """Return how many of the first frames of each sender are confirmed once those arrive."""
        confirmed: Int64s = self.complete[self.begin + sent] - self.complete[self.begin]
        return confirmed

    def received(self, since: Int64s, until: Int64s) -> Int64s:
        """Return int64[W], the frames to each receiver among these of each sender."""
        among = ranges(self.begin + since, until - since)
        return np.bincount(self.receiver[among], minlength=len(since))


@dataclass(frozen=True, eq=False)
class _Unit:
    """One fragment of each block, or all of them if they travel together; in picoseconds."""

    up: Int64s  # [B, W], on the link of each worker
    down: Int64s  # [B, W]
    # [B, W], when the last sum or acknowledgement leaves the switch that waits for each worker,
    # and when each worker's link has carried all of its own; with all links idle at the beginning
    leaves: Int64s
    carried: Int64s
    loop: Int64s  # [B], of all passes
    work: Int64s  # [B], of processors, at least


def plan_part(
    plan: Plan, direction: Direction, width: int, network: NetworkModel, *, together: bool = False
) -> Part:
    """Predict one exchange of a plan over the switch in steady state.

    Workers send the features of a unit (a fragment of a block) one after another. A sum is complete
    when its last contribution has been added, and queues for its worker. A worker with all its sums
    reports to the barrier, which opens the next unit of the same pool, or the next exchange. With
    `together` a slot holds all fragments of a feature, so units are blocks.
    """
    lanes = fragment_lanes(width, plan.manifest.lanes, plan.manifest.rows)
    fragments = [lanes] if together else [(each,) for each in lanes]
    traffic = _Traffic(plan, direction)
    found = {each: traffic.unit(each, network) for each in set(fragments)}
    units = [found[each] for each in fragments]
    return Part(
        _last_barrier(units, plan.manifest.pools, network),
        up=np.sum([each.up.sum(axis=0) for each in units], axis=0),
        down=np.sum([each.down.sum(axis=0) for each in units], axis=0),
        work=sum(int(each.work.sum()) for each in units),
        barriers=len(units) * traffic.blocks / plan.manifest.pools,
    )


def _last_barrier(units: Sequence[_Unit], pools: int, network: NetworkModel) -> int:
    """Return when the last barrier passes; a fragment of all blocks is followed by the next one.

    Units in flight share links, loop and processors, and earlier ones go first. What leaves the
    switch is late by as much as the worker that it waits for begins late.
    """
    blocks, workers = units[0].up.shape
    barrier, delay = barrier_time(workers, network), network.link_delay
    up = down = np.zeros(workers, dtype=np.int64)
    reported = loop_free = processors = 0
    passed: list[int] = []
    for unit, block in product(units, range(blocks)):
        begin = passed[-pools] if len(passed) >= pools else 0
        start = np.maximum(begin, up)
        up = start + unit.up[block]
        ends = int((start + unit.leaves[block]).max())
        if unit.loop[block]:
            ends = loop_free = max(ends, loop_free + int(unit.loop[block]))
        late = ends - unit.leaves[block].max()
        down = np.maximum(down + unit.down[block], late + unit.carried[block])
        reported = max(reported, max(begin, int(down.max())) + delay)
        processors = max(processors, begin) + int(unit.work[block])
        passed.append(max(reported, processors) + barrier)
        if network.cores is not None:
            processors = passed[-1] - 2 * delay
    return passed[-1] if passed else 0


class _Traffic:
    """The packets of one direction in the order of arrival by block (from 0), and its sums."""

    def __init__(self, plan: Plan, direction: Direction) -> None:
        record, switch = plan.manifest.direction(direction), plan.switch
        self.blocks, self._workers = len(record.block_numbers), plan.manifest.workers
        self._plan, self._direction = plan, direction
        sent = flow.plan_arrivals(plan, direction)
        self._block, self._worker, self._turn = sent.block - 1, sent.worker, flow.turns_of(sent)
        packets = self._by_link(self._block, self._worker)
        ends = packets[self._block, self._worker] - 1
        self._asks = (self._turn % _GROUP == _GROUP - 1) | (self._turn == ends)
        results = flow.results_of(plan, direction)
        self._sum, self._sum_worker = flow.receivers(plan, direction)
        block = switch.result_block[results].astype(np.int64) - record.first_block
        self._sum_block, self._sum_bank = block[self._sum], switch.result_bank[results]
        self._packet = flow.packets_of_entries(plan, direction, sent)
        self._hop = switch.entry_hop[flow.entries_of(plan, direction)].astype(np.int64)
        # The entry that completes each sum, in the order of arrival.
        order = np.lexsort((self._hop, self._packet))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        self._last = order[flow.slots_in_use(plan, direction, rank)[1]]
        if plan.manifest.replicated:
            # The sum returns to the sender of the last contribution, and acknowledges it.
            self._asks[self._packet[self._last]] = False

    def unit(self, lanes: tuple[int, ...], network: NetworkModel) -> _Unit:
        """Return the times of all blocks with frames of these lanes."""
        rows, shape = self._plan.manifest.rows, (self.blocks, self._workers)
        feature, bundle = (
            sum(network.of_host(size(each, rows)) for each in lanes)
            for size in (frame_bytes, sum_frame_bytes)
        )
        ack = len(lanes) * network.of_host(_ACK_BYTES)
        added, loop = self._added(feature, len(lanes), network)
        # Sums, and acknowledgements; as if all bundles were full.
        asks, completes = self._asks, self._packet[self._last[self._sum]]
        when = np.append(added[completes], added[asks])
        block = np.append(self._sum_block, self._block[asks])
        to = block * self._workers + np.append(self._sum_worker, self._worker[asks])
        service = np.repeat([bundle // rows, ack], [len(completes), int(asks.sum())])
        order = np.lexsort((when, to))
        leaves, carried = np.full(shape, _NEVER), np.zeros(shape, dtype=np.int64)
        np.maximum.at(leaves, (block, np.append(self._worker[completes], self._worker[asks])), when)
        ends = served(when[order], service[order], to[order])
        np.maximum.at(carried.reshape(-1), to[order], ends)
        sent = self._by_link(self._block, self._worker)
        sums = self._by_link(self._sum_block, self._sum_worker)
        frames = (sent - (-sums // rows)) * network.host_work
        switch = sent.sum(axis=1) * network.switch_work
        return _Unit(
            up=sent * feature,
            down=np.bincount(to, service, carried.size).astype(np.int64).reshape(shape),
            leaves=leaves,
            carried=carried,
            loop=loop,
            work=len(lanes) * shared_work(frames, switch, network.cores),
        )

    def _added(self, feature: int, times: int, network: NetworkModel) -> tuple[Int64s, Int64s]:
        """Return when each packet has been added, int64[S], and the time of the loop, int64[B].

        Packets take `feature` picoseconds on a link, and make each pass `times` times.
        """
        added = (self._turn + 1) * feature + network.link_delay
        loop: Int64s = np.zeros(self.blocks, dtype=np.int64)
        if network.switch_work:
            frames = np.full(len(added), times * network.switch_work)
            added = served(added, frames, self._block)
        if network.loop_pass:
            passes = self._passes() * times * network.loop_pass
            loops = passes > 0
            added[loops] = served(added[loops], passes[loops], self._block[loops])
            loop = np.bincount(self._block, passes, self.blocks).astype(np.int64)
        return added, loop

    def _passes(self) -> Int64s:
        """Return int64[S], the passes of each packet in the loop; a sum that leaves ends a pass."""
        used = self._plan.switch.entry_expected[flow.entries_of(self._plan, self._direction)] > 0
        highest = used.shape[1] - 1 - np.argmax(used[:, ::-1], axis=1)
        hops = np.bincount(self._packet, minlength=len(self._turn))
        last, packet = self._last, self._packet[self._last]
        ends = self._sum_bank == highest[last]
        # The acknowledgement waits for a pass of its own if the last addition completes a sum.
        waits = ends & (self._hop[last] + 1 == hops[packet]) & self._asks[packet]
        return hops - 1 + np.bincount(packet[~ends | waits], minlength=len(hops))

    def _by_link(self, block: Int64s, worker: Int64s) -> Int64s:
        shape = (self.blocks, self._workers)
        link = block * self._workers + worker
        return np.bincount(link, minlength=shape[0] * shape[1]).reshape(shape)


def barrier_time(workers: int, network: NetworkModel) -> int:
    """Return the picoseconds from the last sum to the next block: DONE and ADVANCE."""
    frames = 2 * network.of_host(_BARRIER_BYTES)
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
