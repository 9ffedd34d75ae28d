"""Exchange times of packed frames between hosts: alone, or beside the traffic of the switch.

Frames pass two rows of queues: the links up, and the links down.
"""

import heapq
from dataclasses import dataclass

import numpy as np

from switchgnn.base.array_types import Bools, Int64s
from switchgnn.planner.arrays import Compiled, indptr_of, ranges
from switchgnn.planner.costs.seconds import (
    ACK_BYTES,
    BARRIER_BYTES,
    GROUP,
    PICOSECONDS,
    NetworkModel,
    Rounds,
    shared_work,
)
from switchgnn.planner.lanes import frame_bytes

_NUMBER_BYTES = 4
_ETHERNET_BYTES = 14
_HEADERS_BYTES = frame_bytes(0)
# A feature's frame of 32 numbers, the unit of windows.
_FEATURE_BYTES = frame_bytes(32)
# Frames of TCP's first window (RFC 6928), and the features of a worker's window after losses.
_FIRST_WINDOW, _SAFE_WINDOW = 10.0, 16
# Frames that queue after more bytes than this in the switch are marked.
_MARKED_BYTES = 1_000 * _FEATURE_BYTES

_NOTHING = np.zeros(0, dtype=np.int64)
_NO_INDPTR = np.zeros(1, dtype=np.int64)
_NO_ROUNDS = Rounds(
    *(_NO_INDPTR, _NOTHING, _NOTHING, _NOTHING, _NO_INDPTR, _NOTHING, _NOTHING, _NOTHING, _NOTHING),
    ack=0,
    window=1,
    rest=_NO_INDPTR,
    work=0,
)


def host_seconds(rows: Int64s, width: int, network: NetworkModel) -> float:
    """Predict an exchange in which hosts send int64[W, W] rows to each other.

    The rows of a pair are a run of bytes, cut into frames of up to the MTU. A worker spreads the
    groups of frames for each receiver evenly over its time.
    """
    frames = _Frames.of(rows, width, network)
    if not len(frames.sender):
        return 0.0
    return frames.picoseconds(network) / PICOSECONDS


def shared_seconds(rows: Int64s, width: int, network: NetworkModel, rounds: Rounds) -> float:
    """Predict an exchange whose sums come partly from the switch, on the same links."""
    return _Frames.of(rows, width, network).picoseconds(network, rounds) / PICOSECONDS


def packed_frames(rows: Int64s, width: int, mtu: int) -> tuple[Int64s, Int64s]:
    """Count the frames between hosts and their bytes, int64[W, W] each, for int64[W, W] rows."""
    run = rows * (_NUMBER_BYTES * width)
    frames = -(-run // (packed_frame_bytes(mtu) - _HEADERS_BYTES))
    return frames, run + frames * _HEADERS_BYTES


def packed_frame_bytes(mtu: int) -> int:
    """Return the bytes of a full frame between hosts."""
    room = mtu + _ETHERNET_BYTES - _HEADERS_BYTES
    return _HEADERS_BYTES + room - room % _NUMBER_BYTES


@dataclass(frozen=True, eq=False)
class _Frames:
    """All frames, worker by worker in sending order; arrays of length N."""

    workers: int
    sender: Int64s  # [N], ascending
    receiver: Int64s  # [N]
    size: Int64s  # [N], bytes
    asks: Bools  # [N], whether an acknowledgement is wanted
    confirms: Int64s  # [N], the frames that it confirms

    @classmethod
    def of(cls, rows: Int64s, width: int, network: NetworkModel) -> "_Frames":
        """Cut the rows into frames in the order of `send_order` of host/direct."""
        workers = len(rows)
        payload = packed_frame_bytes(network.mtu) - _HEADERS_BYTES
        run = rows.reshape(-1) * (_NUMBER_BYTES * width)
        count = -(-run // payload)
        pair = np.repeat(np.arange(workers * workers), count)
        number = ranges(np.zeros(len(run), dtype=np.int64), count)
        sender, receiver = np.divmod(pair, workers)
        turn = (number // GROUP + 0.5) / (-(-count // GROUP))[pair]
        order = np.lexsort((number, (receiver - sender) % workers, turn, sender))
        pair, number = pair[order], number[order]
        last = number + 1 == count[pair]
        return cls(
            workers=workers,
            sender=sender[order],
            receiver=receiver[order],
            size=_HEADERS_BYTES + np.where(last, run[pair] - number * payload, payload),
            asks=last | (number % GROUP == GROUP - 1),
            confirms=number % GROUP + 1,
        )

    def picoseconds(self, network: NetworkModel, rounds: Rounds = _NO_ROUNDS) -> int:
        """Return the picoseconds of the exchange, beside the rounds of the switch."""
        full = packed_frame_bytes(network.mtu)
        sizes, of = np.unique(self.size, return_inverse=True)
        on_link = np.array([network.on_link(each) for each in sizes.tolist()])[of]
        through = _exchange(
            indptr_of(np.bincount(self.sender, minlength=self.workers)),
            self.sender,
            self.receiver,
            np.maximum(on_link, network.host_work),
            np.where(self.asks, self.confirms, 0),
            network.link_delay,
            network.of_host(ACK_BYTES),
            network.switch_work,
            network.on_link(_MARKED_BYTES),
            float(max(1, network.window * _FEATURE_BYTES // full) + GROUP - 1),
            max(_FIRST_WINDOW, _SAFE_WINDOW * _FEATURE_BYTES / full),
            rounds,
            network.loop_pass,
            network.of_host(BARRIER_BYTES),
            round(network.barrier * PICOSECONDS) + self.workers * network.switch_work,
        )
        return max(through, int(rounds.rest[0]), rounds.work + self._work(network))

    def _work(self, network: NetworkModel) -> int:
        sent = np.bincount(self.sender, minlength=self.workers)
        got = np.bincount(self.receiver, minlength=self.workers)
        hosts = (sent + got)[None] * network.host_work
        switch = np.array([len(self.sender) * network.switch_work])
        return int(shared_work(hosts, switch, network.cores)[0])


# Events of the switch's part, then those of the hosts'; at one time they happen in this order.
(
    _BEGIN,  # a worker knows that a block is open
    _REPORT,  # a worker has all its sums
    _DONE_AT_SWITCH,
    _GROUP_AT_SWITCH,  # features arrive
    _GROUP_ADDED,  # their passes are over
    _GROUP_AT_SENDER,  # they are acknowledged
    _AT_SWITCH,  # a frame arrives
    _AT_RECEIVER,
    _ACK_AT_SWITCH,
    _ACK_AT_SENDER,
    _WAKE,  # a worker may send again
) = range(11)


@Compiled
def _exchange(  # noqa: PLR0912, PLR0915, PLR0917 - numba takes one loop
    indptr: Int64s,
    sender: Int64s,
    receiver: Int64s,
    time: Int64s,
    confirms: Int64s,
    link_delay: int,
    ack: int,
    switch_work: int,
    marking: int,
    window: float,
    first_window: float,
    switch: Rounds,
    loop_pass: int,
    barrier: int,
    barrier_work: int,
) -> int:
    """Simulate all frames and acknowledgements; return when the last one arrives.

    Windows open as TCP's (host/congestion.py): they double until frames come marked, and until they
    are wide frames leave at a rate a quarter above a window per round trip, in bursts of up to
    eight. Packets of the switch without numbers overtake all frames, also the one that is being
    sent, which the simulator lets leave first. Times are picoseconds; arrays of the switch's part
    are those of `Rounds`.
    """
    workers = len(indptr) - 1
    up = np.zeros(workers, dtype=np.int64)
    down = np.zeros(workers, dtype=np.int64)
    # When the last sum or acknowledgement has left.
    came = np.zeros(workers, dtype=np.int64)
    next_frame = indptr[:-1].copy()
    confirmed = indptr[:-1].copy()
    wide = np.full(workers, min(window, first_window))
    doubling = np.full(workers, first_window < window)
    tokens = np.full(workers, 8.0)
    refilled = np.zeros(workers, dtype=np.int64)
    paced_until = np.full(workers, -1, dtype=np.int64)
    smoothed = np.zeros(workers)
    adapted = np.zeros(workers, dtype=np.int64)
    marked = np.zeros(workers, dtype=np.int64)
    asked = np.zeros(len(time), dtype=np.int64)
    came_marked = np.zeros((workers, workers), dtype=np.bool_)
    told_marked = np.zeros(len(time), dtype=np.bool_)
    free = 0
    end = 0
    unconfirmed = len(time)
    current, rounds = 0, len(switch.rest) - 1
    blocks = rounds // max(1, len(switch.feature))
    next_group = np.zeros(workers, dtype=np.int64)
    groups_left = np.zeros(workers, dtype=np.int64)
    sums_left = np.zeros(workers, dtype=np.int64)
    reported, loop_free, through = 0, 0, 0
    # (time, kind, and the worker, the group or the frame)
    events = [(0, _WAKE, worker) for worker in range(workers)]
    if rounds:
        for worker in range(workers):
            events.append((0, _BEGIN, worker))
            groups_left[worker] = switch.group_indptr[worker + 1] - switch.group_indptr[worker]
            sums_left[worker] = switch.sums[worker]
    heapq.heapify(events)
    while events:
        now, kind, what = heapq.heappop(events)
        if kind < _AT_SWITCH:
            block = current % blocks
            size = switch.feature[current // blocks]
            if kind == _GROUP_AT_SWITCH:
                ready = now
                if switch_work:
                    free = max(free, now) + switch.packets[what] * switch_work
                    ready = free
                if loop_pass and switch.passes[what]:
                    loop_free = max(loop_free, ready) + switch.passes[what] * loop_pass
                    ready = loop_free
                if ready > now:
                    heapq.heappush(events, (ready, _GROUP_ADDED, what))
                    continue
                kind = _GROUP_ADDED
            if kind == _GROUP_ADDED:
                for each in range(switch.sum_indptr[what], switch.sum_indptr[what + 1]):
                    to = switch.sum_worker[each]
                    down[to] = came[to] = max(down[to], now) + switch.sum_time[current // blocks]
                    sums_left[to] -= 1
                    if sums_left[to] == 0 and groups_left[to] == 0:
                        heapq.heappush(events, (down[to] + link_delay, _REPORT, to))
                to = switch.group_worker[what]
                down[to] = max(down[to], now) + switch.ack
                heard = now + switch.ack
                # It delays a sum that waits.
                came[to] = max(came[to] + switch.ack, heard) if came[to] > now else heard
                groups_left[to] -= 1
                if sums_left[to] == 0 and groups_left[to] == 0:
                    heapq.heappush(events, (came[to] + link_delay, _REPORT, to))
                heapq.heappush(events, (heard + link_delay, _GROUP_AT_SENDER, what))
                continue
            if kind == _REPORT:
                up[what] = max(up[what], now) + barrier
                heapq.heappush(events, (now + barrier + link_delay, _DONE_AT_SWITCH, what))
                continue
            if kind == _DONE_AT_SWITCH:
                reported += 1
                if reported < workers:
                    continue
                reported = 0
                current += 1
                opens = now + barrier_work + barrier + link_delay
                if current == rounds or not unconfirmed:
                    # The hosts' part goes on without the switch's, or the other link_delay round.
                    through = opens + switch.rest[current]
                    continue
                block = current % blocks
                for to in range(workers):
                    down[to] = max(down[to], now + barrier_work) + barrier
                    share = block * workers + to
                    groups_left[to] = switch.group_indptr[share + 1] - switch.group_indptr[share]
                    sums_left[to] = switch.sums[share]
                    heapq.heappush(events, (opens, _BEGIN, to))
                continue
            room = 1
            worker = what
            if kind == _BEGIN:
                share = block * workers + worker
                next_group[worker] = switch.group_indptr[share]
                room = switch.window
                # What is left may have come before the worker knew that the block is open.
                groups = switch.group_indptr[share + 1] - switch.group_indptr[share]
                if switch.sums[share] == 0 and groups == 0:
                    heapq.heappush(events, (now, _REPORT, worker))
            else:
                worker = switch.group_worker[what]
            until = switch.group_indptr[block * workers + worker + 1]
            while room > 0 and next_group[worker] < until:
                up[worker] = max(up[worker], now) + switch.packets[next_group[worker]] * size
                heapq.heappush(
                    events, (up[worker] + link_delay, _GROUP_AT_SWITCH, next_group[worker])
                )
                next_group[worker] += 1
                room -= 1
            continue
        if kind == _AT_SWITCH:
            to = receiver[what]
            free = max(free, now) + switch_work
            ready = free if switch_work else now
            if down[to] - ready > marking:
                came_marked[to, sender[what]] = True
            down[to] = max(down[to], ready) + time[what]
            if confirms[what]:
                heapq.heappush(events, (down[to] + link_delay, _AT_RECEIVER, what))
            continue
        if kind == _AT_RECEIVER:
            to = receiver[what]
            told_marked[what] = came_marked[to, sender[what]]
            came_marked[to, sender[what]] = False
            up[to] = max(up[to], now) + ack
            heapq.heappush(events, (up[to] + link_delay, _ACK_AT_SWITCH, what))
            continue
        worker = what if kind == _WAKE else sender[what]
        if kind == _ACK_AT_SWITCH:
            down[worker] = max(down[worker], now) + ack
            heapq.heappush(events, (down[worker] + link_delay, _ACK_AT_SENDER, what))
            continue
        if kind == _ACK_AT_SENDER:
            end = now
            sample = float(now - asked[what])
            if smoothed[worker] == 0.0:
                smoothed[worker] = sample
            smoothed[worker] += (sample - smoothed[worker]) / 8
            confirmed[worker] += confirms[what]
            unconfirmed -= confirms[what]
            adapted[worker] += confirms[what]
            if told_marked[what]:
                marked[worker] += confirms[what]
            if adapted[worker] >= wide[worker]:
                share = min(1.0, marked[worker] / adapted[worker])
                adapted[worker] = marked[worker] = 0
                if share > 0:
                    doubling[worker] = False
                grown = wide[worker] if doubling[worker] else 1.0
                wide[worker] = wide[worker] * (1 - share / 2) + grown
                wide[worker] = min(window, max(8.0, wide[worker]))
        elif now == paced_until[worker]:
            paced_until[worker] = -1
        while next_frame[worker] < indptr[worker + 1]:
            if int(wide[worker]) <= next_frame[worker] - confirmed[worker]:
                break
            if wide[worker] < window:
                trip = max(
                    smoothed[worker] if smoothed[worker] else 4.0 * link_delay, 2.0 * link_delay
                )
                rate = 1.25 * wide[worker] / max(trip, 1.0)
                tokens[worker] = min(8.0, tokens[worker] + (now - refilled[worker]) * rate)
                refilled[worker] = now
                if tokens[worker] < 1.0:
                    turn = now + int((1.0 - tokens[worker]) / rate) + 1
                    if paced_until[worker] < 0 or turn < paced_until[worker]:
                        paced_until[worker] = turn
                        heapq.heappush(events, (turn, _WAKE, worker))
                    break
            frame = next_frame[worker]
            asked[frame] = now
            up[worker] = max(up[worker], now) + time[frame]
            heapq.heappush(events, (up[worker] + link_delay, _AT_SWITCH, frame))
            next_frame[worker] += 1
            tokens[worker] = max(0.0, tokens[worker] - 1.0)
    return max(end, through)
