# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How long one exchange between hosts alone takes: packed frames through two rows of queues."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.arrays.compiled import Compiled
from switchgnn.planner.arrays.rows import indptr_of, ranges
from switchgnn.planner.costs.seconds import (
    ACK_BYTES,
    GROUP,
    PICOSECONDS,
    Network,
    served,
    shared_work,
)
from switchgnn.planner.lanes import frame_bytes

_NUMBER_BYTES = 4
_ETHERNET_BYTES = 14
_HEADERS_BYTES = frame_bytes(0)
# A feature's frame of 32 numbers, in which windows are told.
_FEATURE_BYTES = frame_bytes(32)
# Frames of TCP's first window (RFC 6928), and the features of a worker's that losses leave.
_FIRST_WINDOW, _SAFE_WINDOW = 10.0, 16
# How often senders are followed, each time with the acknowledgements of the time before.
_ROUNDS = 4


def host_seconds(rows: NDArray[np.int64], width: int, network: Network) -> float:
    """Predict how long one exchange takes in which hosts send rows to each other.

    The rows from one worker to another are a run of bytes, cut into frames of up to the MTU. A
    worker spreads the groups of frames for each receiver evenly over its time. Frames queue on the
    link of their sender and then on that of their receiver.

    Args:
        rows: int64[W, W], rows from worker a to worker b.
        width: numbers of a row.
        network: on which it is run.

    Returns:
        Seconds; 0 where nothing is sent.
    """
    frames = _Frames.of(rows, width, network)
    if not len(frames.sender):
        return 0.0
    return frames.picoseconds(network) / PICOSECONDS


def packed_frames(
    rows: NDArray[np.int64], width: int, mtu: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the frames between hosts, and their bytes.

    Args:
        rows: int64[W, W], rows from worker a to worker b.
        width: numbers of a row.
        mtu: bytes of the largest IP packet.

    Returns:
        (int64[W, W], int64[W, W])
    """
    run = rows * (_NUMBER_BYTES * width)
    frames = -(-run // (packed_frame_bytes(mtu) - _HEADERS_BYTES))
    return frames, run + frames * _HEADERS_BYTES


def packed_frame_bytes(mtu: int) -> int:
    """Return the bytes of a full frame between hosts."""
    room = mtu + _ETHERNET_BYTES - _HEADERS_BYTES
    return _HEADERS_BYTES + room - room % _NUMBER_BYTES


@dataclass(frozen=True, eq=False)
class _Frames:
    """All frames, worker by worker in sending order; arrays of length N.

    Attributes:
        workers: W.
        sender: int64[N], ascending.
        receiver: int64[N].
        size: int64[N], bytes.
        asks: bool[N], whether an acknowledgement is wanted.
        confirms: int64[N], how many frames it confirms.
    """

    workers: int
    sender: NDArray[np.int64]
    receiver: NDArray[np.int64]
    size: NDArray[np.int64]
    asks: NDArray[np.bool_]
    confirms: NDArray[np.int64]

    @classmethod
    def of(cls, rows: NDArray[np.int64], width: int, network: Network) -> "_Frames":
        """Cut the rows into frames, and order these as `send_order` of host/direct does."""
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

    def picoseconds(self, network: Network) -> int:
        """Return what the exchange takes."""
        time = np.maximum(self._on_link(network), network.host_work)
        ack = network.of_host(ACK_BYTES)
        # From when a frame is sent to its acknowledgement: at first on an empty network.
        rest = 2 * time[self.asks] + 4 * network.way + 2 * ack
        for _ in range(_ROUNDS):
            sent = self._sent(time, rest, network)
            acknowledged = self._acknowledged(sent, time, ack, network)
            rest = (rest + acknowledged - sent[self.asks]) // 2
        return max(int(acknowledged.max()), self._work(network))

    def _sent(
        self, time: NDArray[np.int64], rest: NDArray[np.int64], network: Network
    ) -> NDArray[np.int64]:
        """Return int64[N], when each frame joins the queue of its sender."""
        full = packed_frame_bytes(network.mtu)
        answered = np.zeros(len(time), dtype=np.int64)
        answered[self.asks] = rest
        return _send(
            indptr_of(np.bincount(self.sender, minlength=self.workers)),
            np.where(self.asks, self.confirms, 0),
            answered,
            np.zeros(len(time), dtype=np.int64),
            2 * network.way,
            float(max(1, network.window * _FEATURE_BYTES // full) + GROUP - 1),
            max(_FIRST_WINDOW, _SAFE_WINDOW * _FEATURE_BYTES / full),
        )

    def _acknowledged(
        self, sent: NDArray[np.int64], time: NDArray[np.int64], ack: int, network: Network
    ) -> NDArray[np.int64]:
        """Return when the acknowledgement of each frame that asks has come to its sender.

        Frames and acknowledgements share links both ways: where acknowledgements join a queue
        follows from the frames alone, and then both are served.

        Args:
            sent: int64[N], when frames join the queue of their sender.
            time: int64[N], of frames on a link.
            ack: picoseconds of an acknowledgement on a link.
            network: with the links.
        """
        asks, count = self.asks, len(sent)
        times = np.concatenate([time, np.full(np.count_nonzero(asks), ack)])
        back = self._taken(_in_any_order(sent, time, self.sender), time, network)[asks]
        left = _in_any_order(
            np.concatenate([sent, back]),
            times,
            np.concatenate([self.sender, self.receiver[asks]]),
        )
        late = self._taken(left[:count], time, network)[asks] - back
        at_switch = np.concatenate([left[:count], left[count:] + late]) + network.way
        through = _in_any_order(
            at_switch, times, np.concatenate([self.receiver, self.sender[asks]])
        )
        acknowledged: NDArray[np.int64] = through[count:] + network.way
        return acknowledged

    def _taken(
        self, left: NDArray[np.int64], time: NDArray[np.int64], network: Network
    ) -> NDArray[np.int64]:
        """Return int64[N], when frames that have left by then have come to their receivers."""
        arrival = left + network.way
        if network.switch_work:
            work = np.full(len(arrival), network.switch_work)
            arrival = _in_any_order(arrival, work, np.zeros(len(arrival), dtype=np.int64))
        return _in_any_order(arrival, time, self.receiver) + network.way

    def _on_link(self, network: Network) -> NDArray[np.int64]:
        """Return int64[N], picoseconds of each frame on a link."""
        sizes, of = np.unique(self.size, return_inverse=True)
        return np.array([network.on_link(each) for each in sizes.tolist()])[of]

    def _work(self, network: Network) -> int:
        sent = np.bincount(self.sender, minlength=self.workers)
        got = np.bincount(self.receiver, minlength=self.workers)
        hosts = (sent + got)[None] * network.host_work
        switch = np.array([len(self.sender) * network.switch_work])
        return int(shared_work(hosts, switch, network.cores)[0])


def _in_any_order(
    arrival: NDArray[np.int64], service: NDArray[np.int64], queue: NDArray[np.int64]
) -> NDArray[np.int64]:
    order = np.lexsort((arrival, queue))
    ends = np.empty(len(order), dtype=np.int64)
    ends[order] = served(arrival[order], service[order], queue[order])
    return ends


@Compiled
def _send(  # noqa: PLR0917 - numba takes them by place
    indptr: NDArray[np.int64],
    confirms: NDArray[np.int64],
    answered: NDArray[np.int64],
    sent: NDArray[np.int64],
    round_trip: int,
    window: float,
    first_window: float,
) -> NDArray[np.int64]:
    """Return when windows let frames go, which open as TCP's.

    As host/congestion.py: a window doubles until it is wide, and until then frames leave at a rate
    a quarter above a window per round trip, in bursts of up to eight. Nothing comes marked.

    Args:
        indptr: int64[W + 1], the frames of each sender.
        confirms: int64[N], how many frames its acknowledgement confirms; 0: none is wanted.
        answered: int64[N], how long after it is sent the acknowledgement of a frame comes.
        sent: int64[N], to be filled.
        round_trip: the least that a rate is worked out with.
        window: frames in flight, at most.
        first_window: of them at the beginning.
    """
    for worker in range(len(indptr) - 1):
        begin, end = indptr[worker], indptr[worker + 1]
        # Acknowledgements on their way, the next one first: when they come, and of which frame.
        due = np.zeros(end - begin, dtype=np.int64)
        what = np.zeros(end - begin, dtype=np.int64)
        first = behind = now = refilled = 0
        wide, tokens = min(window, first_window), 8.0
        measured, smoothed = False, 2.0 * round_trip
        place, confirmed, adapted = begin, begin, 0
        while place < end:
            room = int(wide) - (place - confirmed)
            paced = wide < window
            rate = 1.25 * wide / max(smoothed, float(round_trip))
            if paced and room > 0:
                tokens = min(8.0, tokens + (now - refilled) * rate)
                refilled = now
            if room > 0 and (not paced or tokens >= 1.0):
                sent[place] = now
                if confirms[place]:
                    at = behind
                    while at > first and due[at - 1] > now + answered[place]:
                        due[at], what[at] = due[at - 1], what[at - 1]
                        at -= 1
                    due[at], what[at] = now + answered[place], place
                    behind += 1
                place += 1
                tokens = max(0.0, tokens - 1.0)
                continue
            turn = now + int((1.0 - tokens) / rate) + 1
            if room > 0 and (first == behind or turn < due[first]):
                now = turn
                continue
            now = due[first]
            sample = float(answered[what[first]])
            smoothed = smoothed + (sample - smoothed) / 8 if measured else sample
            measured = True
            confirmed += confirms[what[first]]
            adapted += confirms[what[first]]
            first += 1
            if adapted >= wide:
                adapted = 0
                wide = min(window, max(8.0, 2.0 * wide))
    return sent
