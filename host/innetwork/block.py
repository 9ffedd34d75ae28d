# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The exchange of one fragment of one block: send the features, collect the sums."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.errors import named_workers
from switchgnn.host.innetwork.barrier import Barrier, Meeting, where
from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.innetwork.errors import ExchangeTimeoutError
from switchgnn.host.innetwork.receiver import FetchedFeatures, SumReceiver
from switchgnn.host.innetwork.responder import Inbox, Packet
from switchgnn.host.innetwork.schedule import BlockSchedule
from switchgnn.host.wire.batches import FrameBatch, FrameRows
from switchgnn.host.wire.header import Kind, Unit
from switchgnn.host.wire.native import FastPathResult, SumFastPath

_BURST = 64
# GROUPS_PER_WORKER of p4src/dedup.p4.
_GROUPS_APART = 32


class FeatureSender:
    """Sends the features of one fragment of one block to the switch."""

    def __init__(self, endpoint: Endpoint, rows: FrameRows) -> None:
        self._link = endpoint.link
        self._rows = rows
        self._total = rows.count
        self._group_size = endpoint.pace.group_size
        self._congestion = endpoint.congestion
        self._round_trip = endpoint.round_trip
        self._counters = endpoint.counters
        groups = -(-self._total // self._group_size)
        self._waiting = set(range(groups))
        self._first_waiting = 0
        self._asked_at = [0.0] * groups
        self._attempts = [0] * groups
        self._accepted = [0] * groups
        self._sent = 0
        self._confirmed = 0
        self._nothing_late_before = 0.0
        self._again: deque[int] = deque()
        self._first_asked: dict[int, float] = {}
        self._doubtful: dict[int, float] = {}
        # The last question that was asked once and answered; earlier ones that are unanswered by
        # then were lost, or their answers were.
        self._answered = (0.0, -1)

    @property
    def done(self) -> bool:
        """Whether all features are acknowledged."""
        return not self._waiting

    @property
    def share(self) -> float:
        """The share of acknowledged features."""
        return self._confirmed / max(1, self._total)

    @property
    def unconfirmed(self) -> int:
        """The number of unacknowledged features."""
        return self._total - self._confirmed

    def send_some(self, now: float) -> bool:
        """Send what window and rate allow, at most a burst; return whether more may go."""
        allowed = self._congestion.allowance(self._sent - self._confirmed, now)
        while self._again and allowed > -self._group_size:
            # Repeated features are in flight already, so they may exceed the window.
            index = self._again.popleft()
            self._link.send(self._rows.frame(index))
            self._note_if_asking(index, now)
            self._counters.features_resent += 1
            allowed -= 1
        ready = max(0, min(allowed, self._furthest() - self._sent))
        burst = min(ready, _BURST)
        if burst:
            self._link.send_rows(self._rows, self._sent, burst)
            self._note_asked(self._sent, self._sent + burst, now)
        self._sent += burst
        self._counters.features_sent += burst
        self._congestion.sent(burst)
        return burst < ready

    def take_ack(self, group: int, count: int, now: float) -> bool:
        """Take an acknowledgement; return whether it is news."""
        if group not in self._waiting:
            self._measure_doubtful(group)
            return False
        size = self._size(group)
        if self._attempts[group] == 0:
            self._measure(group, now)
        if count < size:
            self._repeat(group)
            self._congestion.lost(now)
            news = count > self._accepted[group]
            self._accepted[group] = count
            return news
        if (first := self._first_asked.get(group, 0.0)) and (first, group) > self._answered:
            self._doubtful[group] = now - first
        self._round_trip.took(self._attempts[group] + 1)
        self._waiting.discard(group)
        self._confirmed += size
        self._congestion.acknowledged(size)
        return True

    def repeat_what_is_late(self, now: float) -> None:
        """Ask again about groups whose acknowledgement is overdue."""
        if now < self._nothing_late_before:
            return
        self._nothing_late_before = now + self._round_trip.timeout
        for group in range(self._first(), len(self._accepted)):
            if group not in self._waiting:
                continue
            last = group * self._group_size + self._size(group) - 1
            if last >= self._sent:
                return
            due = self._asked_at[group] + self._round_trip.backed_off(self._attempts[group])
            if now > due:
                if self._attempts[group] == 0:
                    self._first_asked[group] = self._asked_at[group]
                self._attempts[group] += 1
                self._asked_at[group] = now
                self._link.send(self._rows.frame(last))
                self._counters.probes += 1
            else:
                self._nothing_late_before = min(self._nothing_late_before, due)

    def next_timer(self, now: float) -> float:
        """Return the seconds until something is overdue."""
        first = self._first()
        if not self._waiting or self._asked_at[first] == 0.0:
            return self._round_trip.timeout
        due = self._asked_at[first] + self._round_trip.backed_off(self._attempts[first])
        return max(0.0, due - now)

    def _measure(self, group: int, now: float) -> None:
        """Measure the round trip of a question that was asked once."""
        asked_at = self._asked_at[group]
        if asked_at:
            self._round_trip.measured(now - asked_at)
            self._answered = max(self._answered, (asked_at, group))

    def _measure_doubtful(self, group: int) -> None:
        """Measure from a second answer: the first was not to the repetition, so none was lost.

        As with TCP's D-SACK (RFC 3708). If a later question was answered before, the network has
        duplicated the answer.
        """
        seconds = self._doubtful.pop(group, None)
        if seconds is not None:
            self._round_trip.measured(seconds)

    def _furthest(self) -> int:
        # The switch keeps only that many groups of a worker apart.
        return min(self._total, (self._first() + _GROUPS_APART) * self._group_size)

    def _first(self) -> int:
        """Return the first unacknowledged group, if there is one."""
        while self._waiting and self._first_waiting not in self._waiting:
            self._first_waiting += 1
        return self._first_waiting

    def _repeat(self, group: int) -> None:
        self._attempts[group] += 1
        first = group * self._group_size
        indices = range(first, first + self._size(group))
        queued = set(self._again)
        self._again.extend(index for index in indices if index not in queued)

    def _note_asked(self, first: int, end: int, now: float) -> None:
        """Record when the groups that end among these features were sent."""
        size = self._group_size
        asked = range(first // size, end // size + (end == self._total and end % size > 0))
        for group in asked:
            self._asked_at[group] = now

    def _note_if_asking(self, index: int, now: float) -> None:
        if (index + 1) % self._group_size == 0 or index + 1 == self._total:
            self._asked_at[index // self._group_size] = now

    def _size(self, group: int) -> int:
        return min(self._group_size, self._total - group * self._group_size)


_NAMED_AT_MOST = 10
# Called with the share of the fragment that is done, between 0 and 1.
ShareListener = Callable[[float], None]


@dataclass(frozen=True)
class _Fragment:
    """A fragment of a block whose exchange is under way."""

    unit: Unit
    sender: FeatureSender
    receiver: SumReceiver
    fast_path: SumFastPath | None
    opening: Meeting | None = None

    @property
    def open(self) -> bool:
        """Whether all workers are in the round."""
        return self.opening is None or self.opening.largest is not None

    @property
    def done(self) -> bool:
        """Whether the fragment is complete, or its round void."""
        if self.opening is not None and self.opening.void:
            return True
        return self.sender.done and self.receiver.done and self.open


class BlockExchange:
    """Exchanges the fragments of blocks, one at a time."""

    def __init__(
        self,
        endpoint: Endpoint,
        inbox: Inbox,
        *,
        barrier: Barrier,
        receiver: type[SumReceiver] = SumReceiver,
        on_share: ShareListener | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._inbox = inbox
        self._pace = endpoint.pace
        self._clock = endpoint.clock
        self._counters = endpoint.counters
        self._barrier = barrier
        self._receiver = receiver
        self._fetched = FetchedFeatures()
        self._on_share = on_share

    def run(
        self,
        schedule: BlockSchedule,
        fast_path: SumFastPath | None,
        round_number: int,
        fragment: int,
        lanes: NDArray[np.int32],
        *,
        opening: Meeting | None = None,
    ) -> NDArray[np.int32]:
        """Exchange one fragment of one block.

        `lanes`: int32[S, W], the fixed-point slices in send order. Returns int32[Q, W], one sum per
        awaited vertex; meaningless if the round is void.
        """
        unit = Unit(round_number, schedule.block_id, fragment)
        frames = schedule.frames.fill(round_number, fragment, lanes, narrow=self._endpoint.narrow)
        sender = FeatureSender(self._endpoint, frames)
        receiver = self._receiver(
            self._endpoint,
            schedule,
            unit=unit,
            began=self._clock.now(),
            fetched=None if self._endpoint.per_sum else self._fetched.of(round_number, fragment),
        )
        if fast_path is not None:
            fast_path.open(self._endpoint.session, unit, receiver.awaited, receiver.payloads)
        self._drive(_Fragment(unit, sender, receiver, fast_path, opening))
        return receiver.sums()

    def _drive(self, under_way: _Fragment) -> None:
        sender, receiver = under_way.sender, under_way.receiver
        now = self._clock.now()
        deadline, heartbeat_at = now + self._pace.timeout, now + self._heartbeat_interval
        for kept in self._inbox.take_kept():
            self._take(under_way, kept, now)
        while not under_way.done:
            now = self._clock.now()
            more = sender.send_some(now)
            batch = self._endpoint.link.receive_batch(0.0 if more else self._wait(under_way, now))
            now = self._clock.now()
            news = batch is not None and self._take_batch(under_way, batch, now)
            if news or not under_way.open:
                deadline = now + self._pace.timeout
            if now > deadline:
                raise self._complaint(under_way)
            sender.repeat_what_is_late(now)
            if not under_way.open:
                self._tend(under_way, now)
                continue
            asked = sender.done and receiver.ask_for_what_is_late(now)
            if asked or now > heartbeat_at:
                self._barrier.repeat_last()
                heartbeat_at = now + self._heartbeat_interval
                if self._on_share is not None:
                    self._on_share((sender.share + receiver.share) / 2)

    def _tend(self, under_way: _Fragment, now: float) -> None:
        """Continue the opening of the round."""
        if (opening := under_way.opening) is None:
            return
        self._barrier.tend(opening)
        if under_way.open:
            self._endpoint.stall.stop()
            # The time until all workers were in the round is no part of the block's.
            under_way.receiver.begin_again(now)
        elif under_way.sender.done:
            self._endpoint.stall.start()

    @property
    def _heartbeat_interval(self) -> float:
        """Seconds between two `done`s, short enough that others get some on bad links."""
        return min(self._pace.heartbeat_interval, self._endpoint.round_trip.longest())

    def _wait(self, under_way: _Fragment, now: float) -> float:
        timer, sender, opening = self._heartbeat_interval, under_way.sender, under_way.opening
        if not sender.done:
            timer = min(timer, sender.next_timer(now))
        elif under_way.open:
            timer = min(timer, under_way.receiver.next_timer(now))
        if opening is not None and not under_way.open:
            timer = min(timer, max(0.0, opening.repeat_at - now))
        return max(0.001, min(timer, self._endpoint.congestion.wait() or timer))

    def _take_batch(self, under_way: _Fragment, batch: FrameBatch, now: float) -> bool:
        """Process a batch; return whether there is progress."""
        if under_way.fast_path is None:
            result = FastPathResult(0, (), range(batch.first, batch.count))
        else:
            result = under_way.fast_path.take_plain(batch)
        news = under_way.receiver.took(result.taken, now)
        for group, count in result.acknowledged:
            self._counters.heard += 1
            news |= under_way.sender.take_ack(group, count, now)
        for index in result.left:
            packet = self._inbox.open(batch.frame(index))
            if packet is not None:
                news |= self._take(under_way, packet, now)
        return news

    def _take(self, under_way: _Fragment, packet: Packet, now: float) -> bool:
        """Process a packet; return whether it is progress."""
        sender, receiver = under_way.sender, under_way.receiver
        header, frame = packet
        answer = header.kind in (Kind.WAITING, Kind.ADVANCE)
        awaited = answer and self._barrier.heed(header, frame)
        if awaited or header.unit != under_way.unit:
            self._counters.late += not awaited
            return False
        if header.ecn and header.kind in (Kind.SUM, Kind.FEATURE):
            receiver.note_mark()
        if header.kind is Kind.SUM:
            return receiver.take_sum(header, frame, now)
        if header.kind is Kind.FEATURE:
            return receiver.take_feature(header, frame, now)
        if header.kind is Kind.ACK:
            self._counters.heard += 1
            return sender.take_ack(header.feature_group, header.count, now)
        if header.kind is Kind.MISSING:
            self._counters.heard += 1
            return receiver.take_missing(header, now)
        self._counters.ignored += 1
        return False

    def _complaint(self, under_way: _Fragment) -> ExchangeTimeoutError:
        sender, receiver = under_way.sender, under_way.receiver
        here = where(under_way.unit)
        after = f"after {self._pace.timeout:g} s without progress"
        if not sender.done:
            return ExchangeTimeoutError(
                f"{here}: the switch on {self._endpoint.link.name} has not acknowledged "
                f"{sender.unconfirmed} features {after}. Is it running, with the plan installed "
                "(`switchgnn controller show`)?"
            )
        vertices = receiver.missing_vertices
        named = ", ".join(map(str, vertices[:_NAMED_AT_MOST]))
        more = ", …" if len(vertices) > _NAMED_AT_MOST else ""
        # Workers that wait at the barrier of a restarted switch cannot answer earlier.
        blamed, blame = receiver.silent_workers, "The switch did not answer."
        if behind := self._barrier.left_behind:
            named_behind = named_workers(behind)
            blame = f"The restarted switch waits at the previous barrier for {named_behind}."
            blamed = behind
        elif blamed:
            blame = f"{named_workers(blamed).capitalize()} did not answer."
        missing = f"{len(vertices)} sums are missing (vertices {named}{more})"
        return ExchangeTimeoutError(f"{here}: {missing} {after}. {blame}", blamed)
