"""One worker's part in the all-reduces of all workers, step by step."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.clock import SYSTEM_CLOCK, Clock
from switchgnn.host.base.congestion import CongestionWindow
from switchgnn.host.base.pace import Pace, RoundTrip
from switchgnn.host.base.silence import HeartbeatBit
from switchgnn.host.innetwork.errors import InNetworkError, RoundMismatchError, check_plan
from switchgnn.host.reduce import reduction
from switchgnn.host.reduce.frames import (
    LANES,
    LAST_NUMBER,
    FragmentFrames,
    SumRing,
    number_of,
    with_number,
)
from switchgnn.host.reduce.pipeline import FragmentPipeline, Timers
from switchgnn.host.reduce.scale import PRECISE
from switchgnn.host.reduce.timeout import SumTimeout
from switchgnn.host.wire import header as wire
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.batches import FrameBatch
from switchgnn.host.wire.link import Link

# The number of no fragment, as the first one is at least that of the slots.
_NO_FRAGMENT = 0
# Seconds without a sum after which the other workers are asked for it, and between two questions.
_ASK_AFTER = 1.0
_ASK_WITHIN = 0.25
# Seconds between two answers to the same question; each worker that waits repeats it.
_ANSWER_AFTER = 0.25
_BATCHES = 4
# In a silence that ends the use of the switch.
_QUESTIONS = 8
# All workers together have as many fragments on their way as there are slots, but each
# has at least this number. With more, frames wait in queues for longer than the time-outs.
_LEAST_WINDOW = 16
_KINDS = (wire.Kind.REDUCED, wire.Kind.REDUCING)
_NO_PLAN = 0


class StreamStart(NamedTuple):
    """What the switch knows before a stream begins.

    `newest`: the newest fragment that it has accepted from any worker. `slots`: how many fragments
    it adds up at once, a power of two.
    """

    newest: int
    slots: int

    @property
    def first(self) -> int:
        """The first fragment of a stream, if no worker knows of a newer one."""
        return (self.newest // self.slots + 1) * self.slots


@dataclass
class ReduceCounters:
    """Counters of one worker."""

    sent: int = 0  # Fragments sent for the first time.
    resent: int = 0  # Fragments sent again because their sum was overdue.
    sums: int = 0  # Sums received.
    asked: int = 0  # Questions to all workers about a sum that the switch may have lost.
    answered: int = 0  # Sums sent to workers that asked.
    heartbeats: int = 0  # Signs of life sent.
    waiting: int = 0  # Answers of the switch about fragments that are not complete.
    marked: int = 0  # Sums that came with the ECN mark.
    late: int = 0  # Sums that had arrived already, or are no longer needed; ignored.
    wrong: int = 0  # Sums with a count, width or exponent that does not fit; ignored.
    foreign: int = 0  # Packets of another session; ignored.
    ignored: int = 0  # Frames of other kinds, as of exchanges over the same interface.
    malformed: int = 0  # Frames that were no sound packets; ignored.


class ReduceStream:
    """One worker's stream of fragments, which the switch adds to those of all other workers.

    The caller drives it with :meth:`step`. All workers submit tensors of the same lengths and types
    in the same order. Before the first one, each worker queries the switch, and all start with the
    same fragment: the largest ``StreamStart.first``.

    `session`: the number that the install of the plan returned. `plan_id`: the first 32 bits of the
    plan's digest. `pace`: its window counts fragments. `clock`: of the link. `bits`: of each
    float, 48 or, coarse, 32. `lanes`: of a whole fragment.
    """

    def __init__(
        self,
        link: Link,
        addresses: Addresses,
        *,
        worker: int,
        workers: int,
        session: int,
        plan_id: int,
        pace: Pace | None = None,
        clock: Clock = SYSTEM_CLOCK,
        bits: int = PRECISE,
        lanes: int = LANES,
    ) -> None:
        self.counters = ReduceCounters()
        self._link, self._addresses, self._clock = link, addresses, clock
        self._worker, self._workers = worker, workers
        self._session, self._plan_id = session & wire.SESSION_MASK, plan_id
        self._pace = pace or Pace()
        self._bits, self._lanes = bits, lanes
        self._round_trip = RoundTrip(self._pace.shortest_timeout)
        self._opening: StreamStart | None = None
        self._pipeline: FragmentPipeline | None = None
        self._heartbeat = HeartbeatBit(self._pace.heartbeat_interval)
        self._heartbeat_at = self._ask_at = float("-inf")
        # The fragment of the last question to all workers, and the end of what was sent by then.
        self._question = self._doubtful_until = _NO_FRAGMENT
        # What the last heartbeat asked about, and when, until it is answered.
        self._asked: tuple[int, float] | None = None
        self.timeout = SumTimeout(link.name, worker, workers, self._pace.timeout, clock.now())
        self._answered_at: dict[int, float] = {}
        # The first question is enough for all workers, so they do not ask at the same time.
        self._ask_after = _ASK_AFTER + _ASK_WITHIN * worker / workers

    def query(self) -> StreamStart:
        """Ask the switch how a stream may begin; InNetworkError: it does not reduce."""
        self._opening = None
        opening = self._ask_opening()
        slots = opening.slots
        if slots < 2 or slots & slots - 1:
            raise InNetworkError(
                f"The switch on {self._link.name} has {slots} slots for all-reduces: install a "
                "program that reduces, with a power of two of them."
            )
        return opening

    def _ask_opening(self) -> StreamStart:
        deadline = self._clock.now() + self._pace.timeout
        attempts = 0
        while (now := self._clock.now()) <= deadline:
            self._send_heartbeat(now)
            self._receive(min(self._round_trip.backed_off(attempts), self._pace.heartbeat_interval))
            if self._opening is not None:
                return self._opening
            attempts += 1
        raise self.timeout.no_answer()

    def start(self, number: int) -> None:
        """Begin with a fragment, the same one at all workers; after `query`."""
        if self._opening is None:
            raise ValueError("The switch must be queried before a stream starts.")
        slots = self._opening.slots
        setting = reduction.StreamSettings(
            *(self._worker, self._workers, slots), bits=self._bits, lanes=self._lanes
        )
        frames = FragmentFrames(self._addresses, self._worker, self._session, slots, self._lanes)
        sums = SumRing(frames, self._workers, self._session, number)
        timers = Timers(sums.awaited, self._round_trip, self._pace.heartbeat_interval)
        share = max(_LEAST_WINDOW, slots // self._workers)
        pace = replace(self._pace, window=min(self._pace.window, share))
        congestion = CongestionWindow(pace, self._round_trip)
        pipeline = FragmentPipeline(self._link, frames, sums, timers, congestion, number)
        self._pipeline = pipeline
        self._setting = setting

    @property
    def idle(self) -> bool:
        """Whether all submitted tensors are reduced."""
        return self._pipeline is None or self._pipeline.base == self._pipeline.end

    def submit(
        self, values: NDArray[Any], call: reduction.Call = reduction.SUM, *, late: bool = False
    ) -> reduction.Reduction:
        """Append a tensor to the stream, and return it; later steps reduce it.

        `values`: int32[N] or float32[N], contiguous; must not change until the result is done.
        `late`: whether its frames have the lowest class (docs/congestion.md).

        Raises:
            FeatureError: wrong shape or type.
            RoundMismatchError: the session has too few numbers left.
        """
        reduction.check_tensor(values)
        pipeline = self._started()
        made = reduction.Reduction(pipeline.end, values, self._setting, call, late=late)
        if made.end > LAST_NUMBER:
            raise RoundMismatchError(
                f"All {LAST_NUMBER:,} fragments of the session are used: restart all workers after "
                "`switchgnn controller install --new-session`."
            )
        pipeline.append(made)
        return made

    def step(self, seconds: float) -> None:
        """Send and repeat what is due, then receive, waiting up to ``seconds`` for frames.

        Raises:
            ExchangeTimeoutError: the switch does not answer, or a worker does not contribute; then
                it is in the error's `workers`.
            DisagreementError: the workers reduce different tensors.
            PlanMismatchError: the switch serves another plan.
            LinkError: the link fails.
        """
        pipeline = self._started()
        now = self._clock.now()
        if now >= pipeline.timers.earliest:
            # After a pause of this process, what seems late may be here.
            self._receive_all()
            pipeline, now = self._started(), self._clock.now()
        if not pipeline.in_flight:
            self.timeout.rested(now)
        self.counters.sent += pipeline.send_new(now)
        self.counters.resent += pipeline.resend(now)
        self._ask(pipeline, now)
        if now >= self._heartbeat_at:
            self._send_heartbeat(now)
        if pipeline.in_flight:
            self.timeout.check(pipeline.base, now, pipeline.first.timeout)
        due = min(self._heartbeat_at, pipeline.timers.earliest) - now
        wait = pipeline.wait()
        # Not as a time of the clock, in which a very short wait is none.
        due = due if wait is None else min(due, wait)
        if self._receive(max(0.0, min(seconds, due))):
            self._receive_all()

    def _receive_all(self) -> None:
        for _ in range(_BATCHES):
            if not self._receive(0.0):
                return

    def _started(self) -> FragmentPipeline:
        if self._pipeline is None:
            raise ValueError("The stream has not started: start it before.")
        return self._pipeline

    def _send_heartbeat(self, now: float) -> None:
        heartbeats = self._heartbeat.bit(now) << self._worker
        waits = self._pipeline is not None and self._pipeline.in_flight
        self._heartbeat_at = now + self._pace.heartbeat_interval
        if waits and self._pace.silence:
            self._heartbeat_at = now + self._pace.silence / _QUESTIONS
        number = self._pipeline.base if self._pipeline is not None and waits else _NO_FRAGMENT
        header = wire.Header(kind=wire.Kind.REDUCING, src_id=self._worker, session=self._session)
        body = wire.BarrierBody(plan=self._plan_id, heartbeats=heartbeats).pack()
        # The answer to a repeated question may be that to the first one (Karn).
        repeated = self._asked is not None and self._asked[0] == number
        self._asked = None if repeated else (number, now)
        self._link.send(self._addresses.frame(with_number(header, number).pack(body)))
        self.counters.heartbeats += 1

    def _ask(self, pipeline: FragmentPipeline, now: float) -> None:
        base = pipeline.base
        if not pipeline.in_flight or pipeline.timers.tries(base) < 2:
            return
        # A worker that lacked one sum may lack those after it, which were on their way then.
        goes_on = self._question < base < self._doubtful_until
        wait = self._round_trip.timeout if goes_on else self._ask_after
        if now - self.timeout.progress_at < wait or (now < self._ask_at and not goes_on):
            return
        self._note_question(pipeline, now)
        self._link.send(pipeline.frames.question(base))
        self.counters.asked += 1

    def _note_question(self, pipeline: FragmentPipeline, now: float) -> None:
        self._ask_at = now + self._ask_after
        self._question, self._doubtful_until = pipeline.base, pipeline.next

    def _receive(self, seconds: float) -> bool:
        batch = self._link.receive_batch(seconds)
        if batch is None:
            return False
        now = self._clock.now()
        if self._pipeline is not None:
            self._take_batch(self._pipeline, batch, now)
        else:
            for index in range(batch.first, batch.count):
                self._take_frame(batch.frame(index), now)
        return True

    def _take_batch(self, pipeline: FragmentPipeline, batch: FrameBatch, now: float) -> None:
        result = pipeline.sums.take_plain(batch)
        self.counters.ignored += result.ignored
        marked, numbers = result.marked, result.numbers
        others = [
            header for index in result.left if (header := self._take_frame(batch.frame(index), now))
        ]
        if others:
            marked += sum(header.ecn for header in others)
            more = np.array([number_of(header) for header in others], dtype=np.int64)
            numbers = np.concatenate([numbers, more])
        if marked:
            self.counters.marked += marked
            pipeline.congestion.marked(marked, now)
        if len(numbers):
            self.counters.sums += len(numbers)
            self.timeout.progressed(now)
            try:
                pipeline.arrived(numbers, now)
            except reduction.DifferentMarksError:
                self._exchange_descriptions(pipeline)

    def _exchange_descriptions(self, pipeline: FragmentPipeline) -> None:
        """Begin again, after all fragments that any worker can have sent, to find what differs.

        All workers do so at the same fragment. None of them needs the slot that it takes, as one
        that has sent the fragment with the marks has all sums of half the slots before.
        """
        own, begin = pipeline.first, pipeline.base + max(1, self._setting.slots // 2)
        self.start(begin)
        exchange = reduction.DescriptionExchange(begin, own, self._setting)
        self._started().append(exchange)

    def _take_frame(self, frame: memoryview, now: float) -> wire.Header | None:
        pipeline = self._pipeline
        if len(frame) >= wire.BODY_AT and frame[wire.KIND_AT] & wire.KIND_MASK not in _KINDS:
            self.counters.ignored += 1
            return None
        header = wire.unpack_header(frame)
        if header is None:
            self.counters.malformed += 1
        elif header.session != self._session:
            self.counters.foreign += 1
            self.timeout.foreign += 1
        elif header.kind is wire.Kind.REDUCING:
            self._take_answer(header, wire.BarrierBody.unpack(frame, header.kind), now)
        elif pipeline is None or not pipeline.sums.awaits(number_of(header)):
            self.counters.late += 1
            if pipeline is not None:
                pipeline.timers.came_again(number_of(header))
        elif pipeline.sums.take(header, frame):
            return header
        else:
            self.counters.wrong += 1
            self.timeout.wrong += 1
        return None

    def _take_answer(self, header: wire.Header, body: wire.BarrierBody, now: float) -> None:
        if body.plan == _NO_PLAN != self._plan_id:
            return  # a controller is installing it after a restart
        check_plan(self._worker, self._plan_id, body.plan)
        self.timeout.heard_at = now
        number, pipeline = number_of(header), self._pipeline
        if self._asked is not None and self._asked[0] == number and not header.resend:
            # Unlike sums, the answer waits for no other worker.
            self._round_trip.measured(now - self._asked[1])
            self._asked = None
        if pipeline is None or number == _NO_FRAGMENT:
            self._opening = StreamStart((body.magnitude & 0xFF) << 32 | body.round, header.count)
            return
        self.counters.waiting += 1
        if not pipeline.sums.awaits(number):
            if header.resend:
                self._answer(pipeline, number, now)
            return
        if header.resend and number == pipeline.base:
            self._note_question(pipeline, now)
        if number == pipeline.base and self.timeout.looked(body.workers, body.heartbeats or 0, now):
            pipeline.timers.leave_alone(number, now)

    def _answer(self, pipeline: FragmentPipeline, number: int, now: float) -> None:
        slot = number % self._setting.slots
        held = pipeline.sums.held(number)
        if held is None or now - self._answered_at.get(slot, float("-inf")) < _ANSWER_AFTER:
            return
        self._answered_at[slot] = now
        header, body = held
        own = header._replace(src_id=self._worker)
        self._link.send(self._addresses.frame(own.pack(body)))
        self.counters.answered += 1
