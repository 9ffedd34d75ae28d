# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Sends the data frames of one round and sees to it that each worker has its own.

Frames go in groups of 8, each to one worker. Some frames ask for an acknowledgement; it has
a bit for each frame of the group. Frames that are not there though later ones are, or
though they were asked about afterwards, are sent again. When no acknowledgement comes, a
question of 60 bytes goes out, not a feature.
"""

import time
from collections import deque

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


def asking_frames(order: SendOrder, pace: Pace) -> NDArray[np.bool_]:
    """Return bool[S]: the last frame of each group asks, with a narrow window more do."""
    asking: NDArray[np.bool_] = (order.number % GROUP + 1) % pace.group_size == 0
    asking[order.group_start[1:] - 1] = True
    return asking


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
        self._start = order.group_start.tolist()
        heads = order.group_start[:-1]
        self._peer = order.peer[heads].tolist()
        self._number = order.number[heads].tolist()
        self._group = {
            key: group for group, key in enumerate(zip(self._peer, self._number, strict=True))
        }
        self._group_of = np.repeat(np.arange(len(heads)), np.diff(order.group_start)).tolist()
        self._missing = [(1 << size) - 1 for size in np.diff(order.group_start).tolist()]
        self._asked_at = [0.0] * len(heads)
        self._question = [0] * len(heads)
        self._open: set[int] = set()
        self._again: deque[int] = deque()
        self._envelopes = envelopes
        self._round = round_number
        self._mark = mark
        self._congestion = congestion
        self._round_trip = round_trip
        self._tally = tally
        self._sent = 0
        self._confirmed = 0
        self._nothing_late_before = 0.0

    @property
    def done(self) -> bool:
        """Whether everything has arrived."""
        return self._confirmed == len(self._rows)

    @property
    def waiting_for(self) -> set[int]:
        """The workers that have not acknowledged everything."""
        return {peer for peer, missing in zip(self._peer, self._missing, strict=True) if missing}

    def send_some(self, now: float) -> bool:
        """Send what window and rate allow, a burst at most; tell whether more may go."""
        allowed = self._congestion.allowance(self._sent - self._confirmed, now)
        burst = _BURST
        while self._again and burst:
            # What is sent again is in flight already, so it is outside the window.
            self._link.send(self._rows[self._again.popleft()])
            self._tally.data_resent += 1
            burst -= 1
        fresh = max(0, min(allowed, burst, len(self._rows) - self._sent))
        for place in range(self._sent, self._sent + fresh):
            self._link.send(self._rows[place])
            group = self._group_of[place]
            self._open.add(group)
            if self._asking[place]:
                self._asked_at[group] = now
        self._sent += fresh
        self._tally.data_sent += fresh
        self._congestion.sent(fresh)
        return bool(self._again) or (self._left > 0 and allowed > fresh)

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
        answered = packet.question == self._question[group]
        if answered and self._missing[group] and self._asked_at[group]:
            self._round_trip.measured(now - self._asked_at[group])
        news = self._confirm(group, packet.tag, marked=packet.marked)
        if answered:
            self._send_again(group, packet, now)
        return news

    def take_farewell(self, peer: int) -> bool:
        """Take word that a worker has all of this round; tell whether it is news."""
        before = self._confirmed
        for group, owner in enumerate(self._peer):
            if owner == peer:
                self._confirm(group, ALL_OF_A_GROUP, marked=False)
        return self._confirmed > before

    def ask_about_what_is_late(self, now: float) -> None:
        """Ask about groups whose acknowledgement is overdue."""
        if now < self._nothing_late_before:
            return
        self._nothing_late_before = now + self._round_trip.timeout
        for group in sorted(self._open):
            if not self._asked_at[group]:
                continue
            due = self._asked_at[group] + self._round_trip.backed_off(self._question[group])
            if now >= due:
                self._ask(group, now)
            else:
                self._nothing_late_before = min(self._nothing_late_before, due)

    def next_timer(self, now: float) -> float:
        """Return the seconds until something is overdue, or may be sent."""
        timer = max(0.0, self._nothing_late_before - now)
        if self._left:
            timer = min(timer, self._congestion.wait() or timer)
        return timer

    @property
    def _left(self) -> int:
        return len(self._rows) - self._sent

    def _confirm(self, group: int, arrived: int, *, marked: bool) -> bool:
        sent = max(0, self._sent - self._start[group])
        news = self._missing[group] & arrived & ((1 << min(sent, GROUP)) - 1)
        if not news:
            return False
        self._missing[group] &= ~news
        count = news.bit_count()
        self._confirmed += count
        if not self._missing[group]:
            self._open.discard(group)
        if not marked:
            self._congestion.acknowledged(count)
        return True

    def _send_again(self, group: int, packet: Packet, now: float) -> None:
        """Queue what was sent before the question and has not arrived."""
        last = (
            self._start[group + 1]
            if packet.question
            else self._start[group] + (packet.tag.bit_length())
        )
        missing = self._missing[group]
        lost = [
            place
            for place in range(self._start[group], min(last, self._sent))
            if missing >> (place - self._start[group]) & 1
        ]
        if not lost:
            return
        self._congestion.lost(now)
        self._again.extend(lost)
        # Older answers say nothing about what is sent from now on.
        self._question[group] = min(self._question[group] + 1, UNASKED - 1)
        self._asked_at[group] = now

    def _ask(self, group: int, now: float) -> None:
        self._question[group] = min(self._question[group] + 1, UNASKED - 1)
        self._asked_at[group] = now or time.monotonic()
        header = Header(
            kind=Kind.RECALL,
            is_fetch=True,
            src_id=self._number[group],
            dst_id=self._mark,
            fragment=self._question[group],
            round=self._round,
        )
        self._link.send(self._envelopes.control(self._peer[group], header))
        self._tally.questions += 1
