# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Sends the data frames of one round and sees to it that each worker has its own.

Frames go in groups of 8, each to one worker. Some frames ask for an acknowledgement; it has
a bit for each frame of the group. Frames that are not there though later ones are, or
though they were asked about afterwards, are sent again. When no acknowledgement comes, a
question of 60 bytes goes out, not a feature.

A worker that has not answered several questions is busy or gone. What was sent to it waits in
its socket, not in the network, so it does not count as in flight, and the others go first.
"""

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.congestion import Congestion
from switchgnn.host.header import Header, Kind
from switchgnn.host.link import Link
from switchgnn.host.pace import Pace
from switchgnn.host.round_trip import RoundTrip
from switchgnn.transports.data_frames import SendOrder
from switchgnn.transports.tally import HostTally
from switchgnn.transports.wire import ALL_OF_A_GROUP, GROUP, UNASKED, Envelopes, Packet

_BURST = 8
# A network that is merely slow answers by then.
_BUSY_AFTER = 3


def asking_frames(order: SendOrder, pace: Pace) -> NDArray[np.bool_]:
    """Return bool[S]: the last frame of each group asks, with a narrow window more do."""
    asking: NDArray[np.bool_] = (order.number % GROUP + 1) % pace.group_size == 0
    asking[order.group_start[1:] - 1] = True
    return asking


@dataclass
class _Group:
    """Some frames for one worker.

    Attributes:
        peer: the worker.
        number: of the first frame, among those for the worker.
        start: the place of the first frame in sending order.
        size: how many there are.
        missing: a bit for each that has not been acknowledged.
        sent: how many have left.
        asked_at: when an acknowledgement was asked for last, or the first frame left; 0 before.
        question: how often something was asked or sent again.
        sent_before: how many had left by then.
        attempts: questions since the last answer.
    """

    peer: int
    number: int
    start: int
    size: int
    missing: int
    sent: int = 0
    asked_at: float = 0.0
    question: int = 0
    sent_before: int = 0
    attempts: int = 0

    @property
    def in_flight(self) -> int:
        """Frames that have left and are not acknowledged."""
        return (self.missing & ((1 << self.sent) - 1)).bit_count()

    @property
    def busy(self) -> bool:
        """Whether the worker does not answer."""
        return self.missing != 0 and self.attempts >= _BUSY_AFTER

    def ask_again(self, now: float) -> None:
        """From now on older answers say nothing about what is lost."""
        self.question = min(self.question + 1, UNASKED - 1)
        self.asked_at = now
        self.sent_before = self.sent


class Outbox:
    """One round's data frames on their way.

    Args:
        link: where they go.
        frames: uint8[S, 188], in sending order.
        order: what they are.
        asking: bool[S], which of them ask for an acknowledgement.
        envelopes: for questions.
        round_number: the round.
        mark: the mark of the schedule.
        congestion: window and rate.
        round_trip: time-outs.
        tally: counters.
    """

    def __init__(
        self,
        link: Link,
        frames: NDArray[np.uint8],
        order: SendOrder,
        asking: NDArray[np.bool_],
        envelopes: Envelopes,
        *,
        round_number: int,
        mark: int,
        congestion: Congestion,
        round_trip: RoundTrip,
        tally: HostTally,
    ) -> None:
        self._link = link
        self._rows = [memoryview(row) for row in frames]
        self._asking = asking.tolist()
        groups = _groups(order)
        self._group = {(group.peer, group.number): group for group in groups}
        self._to_send: dict[int, deque[_Group]] = {group.peer: deque() for group in groups}
        for group in groups:
            self._to_send[group.peer].append(group)
        self._open: dict[tuple[int, int], _Group] = {}
        self._again: deque[int] = deque()
        self._envelopes = envelopes
        self._round = round_number
        self._mark = mark
        self._congestion = congestion
        self._round_trip = round_trip
        self._tally = tally
        self._left = len(frames)
        self._unconfirmed = len(frames)
        self._nothing_late_before = 0.0

    @property
    def done(self) -> bool:
        """Whether everything has arrived."""
        return not self._unconfirmed

    @property
    def waiting_for(self) -> set[int]:
        """The workers that have not acknowledged what was sent to them."""
        return {group.peer for group in self._open.values()}

    def send_some(self, now: float) -> bool:
        """Send what window and rate allow, a burst at most; tell whether more may go."""
        budget = _BURST
        while self._again and budget:
            # What is sent again is in flight already, so it is outside the window.
            self._link.send(self._rows[self._again.popleft()])
            self._tally.data_resent += 1
            budget -= 1
        if not self._left:
            return bool(self._again)
        busy = {group.peer for group in self._open.values() if group.busy}
        in_flight = sum(group.in_flight for group in self._open.values() if not group.busy)
        allowed = self._congestion.allowance(in_flight, now)
        fresh = self._send_fresh(min(allowed, budget), busy, now)
        self._congestion.sent(fresh)
        return bool(self._again) or (0 < fresh < allowed and fresh == budget)

    def take_ack(self, packet: Packet, now: float) -> bool:
        """Take an acknowledgement; tell whether it is news."""
        group = self._group.get((packet.sender, packet.number))
        if group is None:
            self._tally.wrong += 1
            return False
        self._tally.acks_received += 1
        if packet.marked:
            self._tally.slowed += 1
            self._congestion.slow_down(now)
        group.attempts = 0
        answered = packet.question == group.question
        if answered and group.missing:
            self._round_trip.measured(now - group.asked_at)
        news = self._confirm(group, packet.tag, marked=packet.marked)
        if answered:
            self._send_again(group, packet, now)
        return news

    def take_farewell(self, peer: int) -> bool:
        """Take word that a worker has all of this round; tell whether it is news."""
        before = self._unconfirmed
        for group in [group for group in self._open.values() if group.peer == peer]:
            self._confirm(group, ALL_OF_A_GROUP, marked=False)
        return self._unconfirmed < before

    def ask_about_what_is_late(self, now: float) -> None:
        """Ask about groups whose acknowledgement is overdue."""
        if now < self._nothing_late_before:
            return
        self._nothing_late_before = now + self._round_trip.timeout
        for group in self._open.values():
            due = group.asked_at + self._round_trip.backed_off(group.attempts)
            if now >= due:
                self._ask(group, now)
            else:
                self._nothing_late_before = min(self._nothing_late_before, due)

    def next_timer(self, now: float) -> float:
        """Return the seconds until something is overdue, or may be sent."""
        timer = max(0.0, self._nothing_late_before - now)
        return min(timer, self._congestion.wait() or timer) if self._left else timer

    def _send_fresh(self, most: int, busy: set[int], now: float) -> int:
        """Send so many frames at most, in order, but not to those who are busy."""
        sent = 0
        while sent < most:
            queues = [queue for peer, queue in self._to_send.items() if peer not in busy]
            if not queues:
                break
            queue = min(queues, key=_place_of_first)
            group = queue[0]
            self._open[group.peer, group.number] = group
            count = min(most - sent, group.size - group.sent)
            for place in range(group.start + group.sent, group.start + group.sent + count):
                self._link.send(self._rows[place])
                # A group that cannot go on is asked about in the end, too.
                if self._asking[place] or not group.asked_at:
                    group.asked_at = now
            group.sent += count
            sent += count
            if group.sent == group.size:
                queue.popleft()
                if not queue:
                    del self._to_send[group.peer]
        self._left -= sent
        self._tally.data_sent += sent
        return sent

    def _confirm(self, group: _Group, arrived: int, *, marked: bool) -> bool:
        news = group.missing & arrived & ((1 << group.sent) - 1)
        if not news:
            return False
        group.missing &= ~news
        count = news.bit_count()
        self._unconfirmed -= count
        if not group.missing:
            del self._open[group.peer, group.number]
        if not marked:
            self._congestion.acknowledged(count)
        return True

    def _send_again(self, group: _Group, packet: Packet, now: float) -> None:
        """Queue what was sent before the question and has not arrived."""
        # Unless it was asked about, only what later frames have overtaken is lost.
        until = group.sent_before if packet.question else packet.tag.bit_length()
        lost = [group.start + bit for bit in range(until) if group.missing >> bit & 1]
        if lost:
            self._congestion.lost(now)
            self._again.extend(lost)
            group.ask_again(now)

    def _ask(self, group: _Group, now: float) -> None:
        group.ask_again(now)
        group.attempts += 1
        header = Header(
            kind=Kind.RECALL,
            is_fetch=True,
            src_id=group.number,
            dst_id=self._mark,
            fragment=group.question,
            round=self._round,
        )
        self._link.send(self._envelopes.control(group.peer, header))
        self._tally.questions += 1


def _groups(order: SendOrder) -> list[_Group]:
    heads = order.group_start[:-1]
    return [
        _Group(peer, number, start, size, (1 << size) - 1)
        for peer, number, start, size in zip(
            order.peer[heads].tolist(),
            order.number[heads].tolist(),
            heads.tolist(),
            np.diff(order.group_start).tolist(),
            strict=True,
        )
    ]


def _place_of_first(queue: deque[_Group]) -> int:
    return queue[0].start
