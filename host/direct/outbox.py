"""Sends the data frames of the open rounds until each worker has acknowledged its own.

Frames go in groups of 8, each to one worker. Some frames ask for an acknowledgement, which has a
bit for each frame of the group. Frames are sent again if later ones have arrived, or if they are
still missing after a question. If no acknowledgement comes, a question of 60 bytes is sent.

The rows of a round may be given piece by piece. Within a group the frames leave in the order of
their numbers; groups leave as their frames become ready, those of an older round first.

A worker that has not answered several questions is busy or gone. Frames sent to it wait in its
socket, not in the network, so they do not count as in flight, and the other workers go first.
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from switchgnn.base.array_types import Bools, Int64s, Integers
from switchgnn.host.base.congestion import CongestionWindow
from switchgnn.host.base.pace import Pace, RoundTrip
from switchgnn.host.base.status import DirectCounters
from switchgnn.host.direct.frames import (
    ALL_OF_A_GROUP,
    GROUP,
    UNASKED,
    Envelopes,
    FrameOrder,
    Packet,
)
from switchgnn.host.wire.batches import FrameRows
from switchgnn.host.wire.header import Header, Kind
from switchgnn.host.wire.link import Link


class Departures:
    """Collects frames; adjacent ones leave in one step."""

    def __init__(self) -> None:
        self._spans: list[tuple[FrameRows, int, int]] = []

    def add(self, rows: FrameRows, index: int) -> None:
        """Append a frame."""
        if self._spans:
            last, first, end = self._spans[-1]
            if last is rows and end == index:
                self._spans[-1] = (rows, first, end + 1)
                return
        self._spans.append((rows, index, index + 1))

    def leave(self, link: Link) -> None:
        """Send them all."""
        for rows, first, end in self._spans:
            link.send_rows(rows, first, end - first)
        self._spans.clear()


_BURST = 64
# Unanswered questions after which a worker counts as busy; a slow network answers earlier.
_BUSY_AFTER = 3


def asking_frames(order: FrameOrder, pace: Pace) -> Bools:
    """Return bool[S]: the last frame of each run asks, with a small window more frames do."""
    asking: Bools = (order.number % GROUP + 1) % pace.group_size == 0
    asking[order.run_start[1:] - 1] = True
    return asking


@dataclass(frozen=True, eq=False)
class Cargo:
    """S packed frames of a round in sending order; `asking`: bool[S], see ``asking_frames``."""

    round: int
    order: FrameOrder
    frames: FrameRows
    asking: Bools


@dataclass
class _Sending:
    mark: int
    frames: list[int]
    unconfirmed: int
    groups: dict[tuple[int, int], "_Group"] = field(default_factory=dict)


@dataclass
class _Group:
    """Some frames for one worker."""

    round: int
    peer: int
    number: int  # Of the first frame, among those for the worker.
    missing: int  # A bit for each unacknowledged frame.
    frames: list[tuple[FrameRows, int] | None]
    asks: int = 0  # A bit for each frame that asks for an acknowledgement.
    queued: int = 0  # How many may leave: the first ones without a gap.
    sent: int = 0
    # When an acknowledgement was last asked for, or the first frame left; 0 before.
    asked_at: float = 0.0
    question: int = 0  # How often something was asked or sent again.
    sent_before: int = 0  # How many had left by then.
    attempts: int = 0  # Questions since the last answer.

    @property
    def key(self) -> tuple[int, int, int]:
        """The key among all groups."""
        return self.round, self.peer, self.number

    @property
    def in_flight(self) -> int:
        return (self.missing & ((1 << self.sent) - 1)).bit_count()

    @property
    def busy(self) -> bool:
        return self.in_flight != 0 and self.attempts >= _BUSY_AFTER

    def ask_again(self, now: float) -> None:
        self.question = min(self.question + 1, UNASKED - 1)
        self.asked_at = now
        self.sent_before = self.sent


@dataclass(frozen=True)
class _Run:
    """The frames of a group up to `end`, and their turn among all of the round."""

    turn: int
    group: _Group
    end: int


@dataclass(eq=False)
class Outbox:
    """One worker's unacknowledged data frames, in all open rounds."""

    link: Link
    envelopes: Envelopes
    congestion: CongestionWindow
    round_trip: RoundTrip
    counters: DirectCounters

    def __post_init__(self) -> None:
        self._rounds: dict[int, _Sending] = {}
        self._to_send: dict[tuple[int, int], deque[_Run]] = {}
        self._open: dict[tuple[int, int, int], _Group] = {}
        self._again: deque[tuple[_Group, int]] = deque()
        self._departures = Departures()
        self._turn = 0
        self._left = 0
        self._nothing_late_before = 0.0

    @property
    def idle(self) -> bool:
        """Whether nothing is left to send or to be acknowledged."""
        return not self._left and not self._open

    def open_round(self, round_number: int, mark: int, frames: list[int]) -> None:
        """Enter a round."""
        self._rounds[round_number] = _Sending(mark, frames, sum(frames))

    def close_round(self, round_number: int) -> None:
        """Forget a round in which everything has arrived."""
        del self._rounds[round_number]

    def done(self, round_number: int) -> bool:
        """Return whether everything has been given and has arrived."""
        return not self._rounds[round_number].unconfirmed

    def waiting_for(self, round_number: int) -> set[int]:
        """Return the workers that have not acknowledged all frames."""
        return {peer for number, peer, _ in self._open if number == round_number}

    def load(self, cargo: Cargo) -> None:
        """Take new frames for sending."""
        order = cargo.order
        rows = cargo.frames
        asking = cargo.asking.tolist()
        peers, numbers = order.peer.tolist(), order.number.tolist()
        sending = self._rounds[cargo.round]
        for start, end in pairwise(order.run_start.tolist()):
            group = self._group(cargo.round, sending, peers[start], numbers[start])
            bit = numbers[start] - group.number
            for index in range(start, end):
                group.frames[bit] = (rows, index)
                group.asks |= asking[index] << bit
                bit += 1
            self._queue(group)

    def send_some(self, now: float) -> bool:
        """Send what window and rate allow, at most a burst; return whether more may go."""
        more = self._prepare_some(now)
        self._departures.leave(self.link)
        return more

    def _prepare_some(self, now: float) -> bool:
        budget = _BURST
        while self._again and budget:
            # Repeated frames are in flight already, so they are outside the window.
            group, bit = self._again.popleft()
            self._send(group, bit)
            self.counters.data_resent += 1
            budget -= 1
        if not self._left:
            return bool(self._again)
        busy = {(group.peer, group.round) for group in self._open.values() if group.busy}
        in_flight = sum(group.in_flight for group in self._open.values() if not group.busy)
        allowed = self.congestion.allowance(in_flight, now)
        fresh = self._send_fresh(min(allowed, budget), busy, now)
        self.congestion.sent(fresh)
        return bool(self._again) or (0 < fresh < allowed and fresh == budget)

    def take_ack(self, packet: Packet, now: float) -> bool:
        """Take an acknowledgement; return whether it is news."""
        sending = self._rounds.get(packet.round)
        if sending is None:
            return False
        group = sending.groups.get((packet.sender, packet.number))
        if group is None:
            self.counters.wrong += 1
            return False
        if packet.marked:
            self.counters.slowed += 1
        group.attempts = 0
        answered = packet.question == group.question
        if answered and group.in_flight:
            self.round_trip.measured(now - group.asked_at)
        news = self._confirm(group, packet.tag, now if packet.marked else None)
        if answered:
            self._send_again(group, packet, now)
        return news

    def take_farewell(self, peer: int, round_number: int) -> bool:
        """Take the report that a worker has all rows up to a round; return whether it is news."""
        theirs = [
            group
            for group in self._open.values()
            if group.peer == peer and group.round <= round_number
        ]
        return sum(self._confirm(group, ALL_OF_A_GROUP, None) for group in theirs) > 0

    def ask_about_what_is_late(self, now: float) -> None:
        """Ask about groups whose acknowledgement is overdue."""
        if now < self._nothing_late_before:
            return
        self._nothing_late_before = now + self.round_trip.timeout
        for group in self._open.values():
            due = group.asked_at + self.round_trip.backed_off(group.attempts)
            if now >= due:
                self._ask(group, now)
            else:
                self._nothing_late_before = min(self._nothing_late_before, due)

    def next_timer(self, now: float) -> float:
        """Return the seconds until a question is due or a frame may leave."""
        timer = max(0.0, self._nothing_late_before - now)
        return min(timer, self.congestion.wait() or timer) if self._left else timer

    def _group(self, round_number: int, sending: _Sending, peer: int, number: int) -> _Group:
        first = number - number % GROUP
        group = sending.groups.get((peer, first))
        if group is None:
            size = min(GROUP, sending.frames[peer] - first)
            group = _Group(round_number, peer, first, (1 << size) - 1, [None] * size)
            sending.groups[peer, first] = group
        return group

    def _queue(self, group: _Group) -> None:
        end = group.queued
        while end < len(group.frames) and group.frames[end] is not None:
            end += 1
        if end > group.queued:
            queue = self._to_send.setdefault((group.round, group.peer), deque())
            queue.append(_Run(self._turn, group, end))
            self._turn += 1
            self._left += end - group.queued
            group.queued = end

    def _send_fresh(self, most: int, busy: set[tuple[int, int]], now: float) -> int:
        sent = 0
        while sent < most:
            ready = [
                (number, queue[0].turn, peer)
                for (number, peer), queue in self._to_send.items()
                # A worker that is late may wait for our frames of an older round.
                if not any(peer == other and since <= number for other, since in busy)
            ]
            if not ready:
                break
            number, _, peer = min(ready)
            queue = self._to_send[number, peer]
            sent += self._send_run(queue[0], most - sent, now)
            if queue[0].group.sent == queue[0].end:
                queue.popleft()
                if not queue:
                    del self._to_send[number, peer]
        self._left -= sent
        self.counters.data_sent += sent
        return sent

    def _send_run(self, run: _Run, most: int, now: float) -> int:
        group = run.group
        if not group.in_flight:
            group.asked_at = 0.0
        self._open[group.key] = group
        count = min(most, run.end - group.sent)
        for bit in range(group.sent, group.sent + count):
            self._send(group, bit)
            # A group that cannot continue is asked about in the end, too.
            if group.asks >> bit & 1 or not group.asked_at:
                group.asked_at = now
        group.sent += count
        return count

    def _send(self, group: _Group, bit: int) -> None:
        frame = group.frames[bit]
        assert frame is not None  # noqa: S101  only given frames are queued
        self._departures.add(*frame)

    def _confirm(self, group: _Group, arrived: int, marked_at: float | None) -> bool:
        news = group.missing & arrived & ((1 << group.sent) - 1)
        if not news:
            return False
        group.missing &= ~news
        count = news.bit_count()
        self._rounds[group.round].unconfirmed -= count
        if not group.in_flight:
            # It opens again when more of it leaves.
            del self._open[group.key]
        if marked_at is not None:
            self.congestion.marked(count, marked_at)
        self.congestion.acknowledged(count)
        return True

    def _send_again(self, group: _Group, packet: Packet, now: float) -> None:
        # Without a question, only frames that later ones have overtaken are lost.
        until = group.sent_before if packet.question else packet.tag.bit_length()
        lost = [(group, bit) for bit in range(until) if group.missing >> bit & 1]
        if lost:
            self.congestion.lost(now)
            self._again.extend(lost)
            group.ask_again(now)

    def _ask(self, group: _Group, now: float) -> None:
        group.ask_again(now)
        group.attempts += 1
        header = Header(
            kind=Kind.RECALL,
            is_fetch=True,
            src_id=group.number,
            dst_id=self._rounds[group.round].mark,
            fragment=group.question,
            round=group.round,
        )
        self.link.send(self.envelopes.control(group.peer, header))
        self.counters.questions += 1


def visit_order(edges: Integers, remote: Bools) -> Int64s:
    """Return int64[n], the rows of one worker in the order in which they are computed.

    `edges`, integers[2, E], are among the rows, in any direction; `remote`, bool[n]: which rows
    have a neighbour on another worker.
    """
    first_visits = _breadth_first(edges, len(remote))
    later = ~remote[first_visits]
    return first_visits[np.argsort(later, kind="stable")]


def _breadth_first(edges: Integers, rows: int) -> Int64s:
    """One component after another, each from its first row on."""
    from scipy.sparse import csgraph, csr_matrix  # noqa: PLC0415 - slow to import

    matrix = csr_matrix((np.ones(edges.shape[1], dtype=np.int8), edges), shape=(rows, rows))
    _, component = csgraph.connected_components(matrix, directed=False)
    _, roots = np.unique(component, return_index=True)
    # A vertex before all roots: one search visits all components, each breadth first.
    ends = np.concatenate([edges, np.stack([np.full(len(roots), rows), roots])], axis=1)
    ones = np.ones(ends.shape[1], dtype=np.int8)
    rooted = csr_matrix((ones, ends), shape=(rows + 1, rows + 1))
    found = csgraph.breadth_first_order(rooted, rows, directed=False, return_predecessors=False)
    visits = found[1:]
    first_row = roots[component[visits]]
    in_order: Int64s = visits[np.argsort(first_row, kind="stable")].astype(np.int64)
    return in_order
