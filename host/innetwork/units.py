"""The exchange of the units of a round: one of each pool is in flight, and the oldest goes first.

A round has all blocks of a fragment, then those of the next one: units in flight together are of
different blocks, and seldom have the same busiest worker. With D pools, a worker begins unit k when
the barrier of unit k - D has passed, and reports its units in order. The round is opened in each
pool.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from switchgnn.host.base.errors import TransportError, named_workers
from switchgnn.host.base.silence import SilenceWatch
from switchgnn.host.innetwork.barrier import Barrier, Meeting, opening, where
from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.innetwork.errors import ExchangeTimeoutError
from switchgnn.host.innetwork.receiver import FetchedFeatures, SumReceiver
from switchgnn.host.innetwork.responder import Inbox, Packet
from switchgnn.host.innetwork.round import SumRound
from switchgnn.host.innetwork.schedule import BlockSchedule
from switchgnn.host.innetwork.sender import FeatureSender
from switchgnn.host.wire.batches import FrameBatch
from switchgnn.host.wire.header import OPENING_BLOCK, Header, Kind, Unit, pool_of
from switchgnn.host.wire.native import FastPaths, SumFastPath, native_frames

_NAMED_AT_MOST = 10
_SHORTEST_WAIT = 0.0001  # In seconds.
_OF_UNITS = (Kind.SUM, Kind.FEATURE, Kind.ACK, Kind.MISSING)
# Called with the share of the oldest unit that is done, between 0 and 1.
ShareListener = Callable[[float], None]


@dataclass(eq=False)
class _InFlight:
    """A unit from its first feature to its barrier; `meeting`: once this worker is done with it."""

    index: int
    unit: Unit
    sender: FeatureSender
    receiver: SumReceiver
    fast_path: SumFastPath | None
    meeting: Meeting | None = None

    @property
    def done(self) -> bool:
        return self.sender.done and self.receiver.done

    @property
    def passed(self) -> bool:
        return self.meeting is not None and self.meeting.answer is not None

    def take(self, header: Header, frame: memoryview, now: float) -> bool:
        if header.kind is Kind.SUM:
            news = header.is_ack and self.sender.take_ack(header.feature_group, header.src_id, now)
            return self.receiver.take_sum(header, frame, now) or news
        if header.kind is Kind.FEATURE:
            return self.receiver.take_feature(header, frame, now)
        if header.kind is Kind.ACK:
            return self.sender.take_ack(header.feature_group, header.count, now)
        return self.receiver.take_missing(header, now)


@dataclass(eq=False)
class UnitExchange:
    """Exchanges the units of rounds; `pools`: how many may be in flight."""

    endpoint: Endpoint
    inbox: Inbox
    barrier: Barrier
    pools: int
    receiver: type[SumReceiver] = SumReceiver
    on_share: ShareListener | None = None

    def __post_init__(self) -> None:
        self._pace = self.endpoint.pace
        self._clock = self.endpoint.clock
        self._counters = self.endpoint.counters
        self._fetched = FetchedFeatures()
        frames = native_frames()
        self._native = None if frames is None else FastPaths(frames.take_sums)
        self._fast_paths: dict[tuple[int, int], SumFastPath] = {}
        self._in_flight: list[_InFlight] = []
        self._begun = 0
        self._newest = Unit(0, 0, 0)
        self._open = self._void = False
        self.watch = SilenceWatch(self._pace, self.endpoint.round_trip)
        # Seconds so far in which all workers were in a round, and this one was not done with it.
        self.seconds = self._opened_at = 0.0

    def run(self, current: SumRound, magnitude: int) -> bool:
        """Exchange a round; return False if it was void.

        `magnitude`: float32 bits of the largest feature of this worker. ExchangeTimeoutError: the
        switch or a worker does not answer. SwitchSilentError: see :meth:`resume`.
        """
        self.barrier.open_round(current.number, magnitude, current.units[: self.pools])
        self._counters.barriers += not current.early
        self._in_flight, self._begun, self._open, self._void = [], 0, False, False
        self._newest = Unit(current.number, OPENING_BLOCK, 0)
        return self.resume(current)

    def resume(self, current: SumRound) -> bool:
        """Go on with a round, also after a SwitchSilentError; as `run`."""
        self.watch.begin(self._clock.now())
        self.barrier.begin_again()
        try:
            self._drive(current)
        finally:
            self.endpoint.stall.stop()
        self.seconds += self._clock.now() - self._opened_at
        return not self._void

    def _drive(self, current: SumRound) -> None:
        now = self._clock.now()
        deadline, heartbeat_at = now + self._pace.timeout, now + self._heartbeat_interval
        while self._goes_on(current):
            if self.endpoint.stopped:
                raise TransportError("The exchange was stopped.")
            unfinished = self._unfinished()
            pending = self.barrier.tend()
            more = self._send_some(now)
            # The time counts in which only other workers can go on.
            if unfinished is None or (
                not self._open and all(x.sender.done for x in self._in_flight)
            ):
                self.endpoint.stall.start()
            else:
                self.endpoint.stall.stop()
            batch = self.endpoint.link.receive_batch(0.0 if more else self._wait(now, pending))
            now = self._clock.now()
            news = batch is not None and self._take_batch(batch, now)
            heard = batch is not None and self.barrier.served
            self.watch.look(now, heard=heard, progress=news, ask=self.barrier.begin_again)
            if news or unfinished is None or not self._open:
                deadline = now + self._pace.timeout
            if unfinished is not None and now > deadline:
                raise self._complaint(unfinished)
            for unit in self._in_flight:
                unit.sender.repeat_what_is_late(now)
            late = False
            if unfinished is not None and self._open and unfinished.sender.all_sent:
                late = unfinished.receiver.ask_for_what_is_late(now)
            # Others may wait for it at any barrier, also while this worker only waits.
            if late or now > heartbeat_at:
                self.barrier.repeat_last()
                heartbeat_at = now + self._heartbeat_interval
                if unfinished is not None and self.on_share is not None:
                    self.on_share((unfinished.sender.share + unfinished.receiver.share) / 2)

    def _goes_on(self, current: SumRound) -> bool:
        if not self._open and not self.barrier.pending:
            self._opened(current)
        for unit in [unit for unit in self._in_flight if unit.passed]:
            self._in_flight.remove(unit)
            current.passed(current.units[unit.index])
        while self._may_begin(current):
            self._begin(current)
        while self._open and (oldest := self._unfinished()) is not None and oldest.done:
            self._report(current, oldest)
        return bool(self._begun < len(current.units) or self._in_flight or self.barrier.pending)

    def _opened(self, current: SumRound) -> None:
        self._open, self._opened_at = True, self._clock.now()
        if current.opened(self.barrier.agreed()):
            # The time until all workers were in the round is no part of the units'.
            for unit in self._in_flight:
                unit.receiver.begin_again(self._clock.now())
            return
        self._void, self._in_flight, self._begun = True, [], len(current.units)
        self._counters.barriers += 1
        for pool, step in enumerate(current.units[: self.pools]):
            self.barrier.report(Unit(current.number, step.block, step.fragment), opening(pool))

    def _may_begin(self, current: SumRound) -> bool:
        if self._begun == len(current.units):
            return False
        oldest = self._in_flight[0].index if self._in_flight else self._begun
        free = self._begun - oldest < self.pools
        return free and (self._open or self._begun in current.early)

    def _begin(self, current: SumRound) -> None:
        step = current.units[self._begun]
        unit, schedule = Unit(current.number, step.block, step.fragment), current.schedule(step)
        rows = schedule.frames.fill(
            current.number, step.fragment, current.payloads(step), narrow=self.endpoint.narrow
        )
        sender = FeatureSender(self.endpoint, rows)
        fetched = None if self.endpoint.per_sum else self._fetched.of(current.number, step.fragment)
        receiver = self.receiver(
            self.endpoint, schedule, unit=unit, began=self._clock.now(), fetched=fetched
        )
        fast_path = self._fast_path(schedule, unit)
        if fast_path is not None:
            fast_path.open(self.endpoint.session, unit, receiver.awaited, receiver.payloads)
        self._in_flight.append(_InFlight(self._begun, unit, sender, receiver, fast_path))
        self._begun, self._newest = self._begun + 1, unit
        for kept in self.inbox.take_kept():
            self._take(kept, self._clock.now())

    def _fast_path(self, schedule: BlockSchedule, unit: Unit) -> SumFastPath | None:
        # An empty unit may have the number of a block of the other direction.
        if self._native is None or not len(schedule.receive_vertex):
            return None
        key = unit.block, pool_of(unit.fragment)
        if key not in self._fast_paths:
            counts = np.array(schedule.receive_count, dtype=np.uint32)
            self._fast_paths[key] = SumFastPath(schedule.receive_vertex, counts, schedule.rows)
        return self._fast_paths[key]

    def _report(self, current: SumRound, unit: _InFlight) -> None:
        current.take(current.units[unit.index], unit.receiver.sums())
        self._counters.barriers += 1
        unit.meeting = self.barrier.report(unit.unit, current.following(unit.index))
        if (following := self._unfinished()) is not None:
            # What other workers have sent of it so far is not late.
            following.receiver.begin_again(self._clock.now())

    def _unfinished(self) -> _InFlight | None:
        return next((unit for unit in self._in_flight if unit.meeting is None), None)

    def _send_some(self, now: float) -> bool:
        """Send what window and rate allow; return whether more may go.

        A unit begins when the older ones have been sent: only of one is a group incomplete, and the
        window has room for that, or the switch would never acknowledge it.
        """
        senders = [unit.sender for unit in self._in_flight if not unit.sender.done]
        for sender in senders:
            if sender.send_some(now, sum(one.in_flight for one in senders)):
                return True
            if not sender.all_sent:
                break
        return False

    @property
    def _heartbeat_interval(self) -> float:
        """Seconds between two `done`s, short enough that others get some on bad links."""
        return min(self._pace.heartbeat_interval, self.endpoint.round_trip.longest())

    def _wait(self, now: float, pending: float) -> float:
        timer = min(self._heartbeat_interval, pending, self.watch.longest_wait)
        for unit in self._in_flight:
            if not unit.sender.done:
                timer = min(timer, unit.sender.next_timer(now))
        unfinished = self._unfinished()
        if unfinished is not None and self._open and unfinished.sender.all_sent:
            timer = min(timer, unfinished.receiver.next_timer(now))
        return max(_SHORTEST_WAIT, min(timer, self.endpoint.congestion.wait() or timer))

    def _take_batch(self, batch: FrameBatch, now: float) -> bool:
        news, left = False, range(batch.first, batch.count)
        quick = [unit for unit in self._in_flight if unit.fast_path is not None]
        fast_paths = [unit.fast_path for unit in quick if unit.fast_path is not None]
        rest: Sequence[int] = left
        if self._native is not None and fast_paths:
            rest = self._native.take_plain(batch, fast_paths)
        for unit, fast_path in zip(quick, fast_paths, strict=True):
            news |= unit.receiver.took(fast_path.taken, now)
            for group, count in fast_path.acknowledged:
                self._counters.heard += 1
                news |= unit.sender.take_ack(group, count, now)
        for index in rest:
            packet = self.inbox.open(batch.frame(index))
            if packet is not None:
                news |= self._take(packet, now)
        return news

    def _take(self, packet: Packet, now: float) -> bool:
        header, frame = packet
        if header.kind in (Kind.WAITING, Kind.ADVANCE):
            self._counters.late += not self.barrier.heed(header, frame)
            return False
        if header.kind not in _OF_UNITS:
            self._counters.ignored += 1
            return False
        unit = next((unit for unit in self._in_flight if unit.unit == header.unit), None)
        if unit is None:
            if header.kind in (Kind.SUM, Kind.FEATURE) and header.unit.order > self._newest.order:
                self.inbox.keep(packet)
                self.barrier.overtaken(header.unit)
            else:
                self._counters.late += 1
            return False
        self._counters.heard += header.kind in (Kind.ACK, Kind.MISSING)
        return unit.take(header, frame, now)

    def _complaint(self, unit: _InFlight) -> ExchangeTimeoutError:
        sender, receiver = unit.sender, unit.receiver
        here = where(unit.unit)
        after = f"after {self._pace.timeout:g} s without progress"
        if not sender.done:
            return ExchangeTimeoutError(
                f"{here}: the switch on {self.endpoint.link.name} has not acknowledged "
                f"{sender.unconfirmed} features {after}. Is it running, with the plan installed "
                "(`switchgnn controller show`)?"
            )
        vertices = receiver.missing_vertices
        named = ", ".join(map(str, vertices[:_NAMED_AT_MOST]))
        more = ", …" if len(vertices) > _NAMED_AT_MOST else ""
        # Workers that wait at the barrier of a restarted switch cannot answer earlier.
        blamed, blame = receiver.silent_workers, "The switch did not answer."
        if behind := self.barrier.left_behind:
            named_behind = named_workers(behind)
            blame = f"The restarted switch waits at the previous barrier for {named_behind}."
            blamed = behind
        elif blamed:
            blame = f"{named_workers(blamed).capitalize()} did not answer."
        missing = f"{len(vertices)} sums are missing (vertices {named}{more})"
        return ExchangeTimeoutError(f"{here}: {missing} {after}. {blame}", blamed)
