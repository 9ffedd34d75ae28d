"""The worker's side of the barriers between units."""

from collections.abc import Sequence
from typing import NamedTuple

from switchgnn.host.base.errors import named_workers
from switchgnn.host.base.silence import HeartbeatBit, SignsOfLife
from switchgnn.host.innetwork import errors
from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.innetwork.fixed_point import Largest, magnitude_from_bits
from switchgnn.host.wire import header as wire


class Following(NamedTuple):
    """A block and the word of a fragment: the next unit of a pool.

    `early`: it is in the next round, and its features may arrive while that is opened.
    """

    block: int
    fragment: int
    early: bool = False


def opening(pool: int) -> Following:
    """Return what follows the last unit of a pool in a round."""
    return Following(wire.OPENING_BLOCK, wire.in_pool(0, pool))


class Meeting:
    """One barrier of all workers, from the first `done` of this one to the `answer`.

    `magnitude`: float32 bits, as every `done` carries it, for a switch that was restarted.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        workers: int,
        unit: wire.Unit,
        following: Following,
        magnitude: int,
    ) -> None:
        self._pace = endpoint.pace
        self._round_trip = endpoint.round_trip
        self._counters = endpoint.counters
        self.unit, self.following = unit, following
        self.magnitude = magnitude
        # Before they open a round, workers may be computing.
        self.timeout = self._pace.timeout + self._pace.skew * (unit.block == wire.OPENING_BLOCK)
        self.answer: tuple[wire.Header, wire.BarrierBody] | None = None
        self.asked_at, self._workers = float("-inf"), workers
        self.begin(endpoint.clock.now())

    def begin(self, now: float) -> None:
        """Ask at once, and give the switch and the workers their whole time."""
        self.repeat_at = float("-inf")
        self.signs = SignsOfLife(self._workers)
        self._attempts = 0
        # -1: the first `done` is not answered while others are not done.
        self._unanswered = -1
        self._began, self.deadline = now, now + self._pace.timeout

    def asked(self, now: float) -> None:
        """Record a `done` that was sent."""
        self._counters.barriers_repeated += self.asked_at >= 0
        self.asked_at = now
        wait = self._round_trip.probe(self._attempts)
        if not self._round_trip.known:
            wait = min(wait, self._pace.shortest_timeout * 2**self._attempts)
        if self.signs.awaited:
            # The switch has the `done`; only its `advance` may be lost.
            wait = max(wait, min(_SHARE * (now - self._began), self._round_trip.backed_off(3)))
        self.repeat_at = now + min(wait, self._pace.heartbeat_interval)
        self._attempts += 1
        self._unanswered += 1

    def heard(self, header: wire.Header, barrier: wire.BarrierBody, now: float) -> None:
        """Take an answer without a refusal."""
        if self._unanswered > 0:
            self._round_trip.took(self._unanswered)
        if self._unanswered == 1 and not self._round_trip.known:
            self._round_trip.measured(now - self.asked_at)
        self._unanswered = 0
        if header.kind is wire.Kind.WAITING:
            self._attempts = 0
            self.signs.take(barrier.workers, barrier.heartbeats or 0, now)
            if self.signs.awaited:
                self.deadline = now + self._pace.timeout
        elif self.unit.block != wire.OPENING_BLOCK or barrier.round == self.unit.round:
            self.answer = header, barrier


# A worker asks again after this share of its wait, if the switch has its `done`.
_SHARE = 0.125
_LARGEST_FLOAT = 0x7F7FFFFF
_NO_PLAN = 0
# Session numbers are compared like TCP's sequence numbers: half of them are newer.
_NEWER = wire.SESSION_MASK >> 1
_NEW_SESSION = (
    "Workers that restart need a new session: `switchgnn controller install --new-session`."
)


class Barrier:
    """Reports `done` to the switch, one unit of each pool at a time, and takes `advance`.

    `done` is repeated until it is answered; the switch counts it once. A worker that is not done is
    waited for while it is alive: every `done` carries its worker's heartbeat, and the answer those
    of all. All magnitudes are float32 bits; `plan_id`: the first 32 bits of the plan's digest.
    """

    def __init__(self, endpoint: Endpoint, *, workers: int, pools: int, plan_id: int) -> None:
        self._endpoint = endpoint
        self._link = endpoint.link
        self._worker = endpoint.worker
        self._workers = workers
        self._plan_id = plan_id
        self._heartbeat = HeartbeatBit(endpoint.pace.heartbeat_interval)
        self._magnitude = 0
        self._meetings: list[Meeting | None] = [None] * pools
        # after a restart of the switch, those that have not passed the last barrier of this one
        self.left_behind: list[int] = []
        self.served = True  # whether the switch had a plan when it answered last

    @property
    def pending(self) -> list[Meeting]:
        """The barriers that this worker has reported and not passed."""
        return [each for each in self._meetings if each is not None and each.answer is None]

    def open_round(self, round_number: int, magnitude: int, first: Sequence[Following]) -> None:
        """Report that this worker opens a round; `first`: its first unit in each pool.

        `magnitude`: float32 bits of its largest feature.
        """
        self._magnitude = magnitude
        for pool, following in enumerate(first):
            unit = wire.Unit(round_number, wire.OPENING_BLOCK, wire.in_pool(0, pool))
            self.report(unit, following)

    def report(self, unit: wire.Unit, following: Following) -> Meeting:
        """Report a unit as done; `following`: the next one of its pool."""
        self.left_behind = []
        meeting = Meeting(self._endpoint, self._workers, unit, following, self._magnitude)
        self._meetings[wire.pool_of(unit.fragment)] = meeting
        return meeting

    def tend(self) -> float:
        """Send what is due; return the seconds until more is.

        ExchangeTimeoutError: the switch, or a worker that is waited for, is silent.
        """
        now = self._endpoint.clock.now()
        pending = self.pending
        for meeting in pending:
            self._ask(meeting, now)
        return min((meeting.repeat_at - now for meeting in pending), default=float("inf"))

    def agreed(self) -> Largest:
        """Return the largest magnitude of a round that all workers have opened."""
        largest = {self._agreed(each) for each in self._meetings if each is not None}
        if len(bits := {each.bits for each in largest}) > 1:
            culprit = max(largest, key=lambda each: each.bits).worker
            raise errors.BarrierError(
                f"Worker {culprit} has reported several magnitudes for one round, up to "
                f"{magnitude_from_bits(max(bits)):g}: it or the switch is broken."
            )
        self._magnitude = max(bits)
        return max(largest, key=lambda each: each.bits)

    def repeat_last(self) -> None:
        """Repeat the `done`s of the last barriers that this worker has passed.

        A switch that restarts while `advance` has reached only some workers forgets which were
        done. Workers that wait for this one also get its heartbeat.
        """
        for meeting in self._meetings:
            if meeting is not None and meeting.answer is not None:
                self._link.send(self._done(meeting))
                self._endpoint.counters.barriers_repeated += 1

    def begin_again(self) -> None:
        """Ask about all barriers at once."""
        for meeting in self.pending:
            meeting.begin(self._endpoint.clock.now())
        self.repeat_last()

    def overtaken(self, unit: wire.Unit) -> None:
        """Ask again, once per round trip: a packet of a later unit shows a barrier to be passed."""
        for meeting in self.pending:
            if wire.pool_of(meeting.unit.fragment) == wire.pool_of(unit.fragment):
                again = meeting.asked_at + self._endpoint.round_trip.smoothed
                meeting.repeat_at = min(meeting.repeat_at, again)

    def heed(self, header: wire.Header, frame: memoryview) -> bool:
        """Take an answer; return whether it was awaited."""
        pool = wire.pool_of(header.fragment)
        meeting = self._meetings[pool] if pool < len(self._meetings) else None
        if meeting is None or header.unit != meeting.unit:
            return False
        barrier = wire.BarrierBody.unpack(frame, header.kind)
        if meeting.answer is None:
            self._take_answer(meeting, header, barrier)
            return True
        if self._counts(header, barrier):
            if header.kind is wire.Kind.ADVANCE:
                self.left_behind = []
            else:
                self._check(header, barrier)
                everyone = range(self._workers)
                self.left_behind = [each for each in everyone if not barrier.workers >> each & 1]
        return False

    def _ask(self, meeting: Meeting, now: float) -> None:
        if now < meeting.repeat_at:
            return
        if silent := meeting.signs.silent(meeting.timeout, now):
            computing = " If it is only computing, increase --timeout."
            raise errors.ExchangeTimeoutError(
                f"{where(meeting.unit)}: worker {self._worker} waited {meeting.timeout:g} s, "
                f"without a sign of life, for {named_workers(silent)}."
                f"{computing if meeting.unit.block == wire.OPENING_BLOCK else ''}",
                silent,
            )
        if now > meeting.deadline:
            raise self._no_answer(meeting.unit)
        self._link.send(self._done(meeting))
        meeting.asked(now)

    def _take_answer(
        self, meeting: Meeting, header: wire.Header, barrier: wire.BarrierBody
    ) -> None:
        self._endpoint.counters.heard += 1
        if self._counts(header, barrier):
            self._check(header, barrier)
            unit = meeting.unit
            # Later barriers of a round may be answered when others have opened the next one.
            if unit.block == wire.OPENING_BLOCK and barrier.round > unit.round:
                raise errors.RoundMismatchError(
                    f"Worker {self._worker} is in round {unit.round}, but the switch is in round "
                    f"{barrier.round}. {_NEW_SESSION}"
                )
            meeting.heard(header, barrier, self._endpoint.clock.now())
            if meeting.answer is not None and unit.block != wire.OPENING_BLOCK:
                self._check_unchanged(unit, barrier)

    def _check_unchanged(self, unit: wire.Unit, answer: wire.BarrierBody) -> None:
        if answer.round == unit.round and answer.magnitude != self._magnitude:
            raise errors.BarrierError(
                f"Round {unit.round}: the largest magnitude has changed from "
                f"{self._magnitude:#010x} to {answer.magnitude:#010x} since the round was opened, "
                "so workers have used different scales: a worker reported a block before all "
                "workers had opened the round."
            )

    def _agreed(self, meeting: Meeting) -> Largest:
        if meeting.answer is None:
            raise ValueError("Not all workers have opened the round.")
        header, answer = meeting.answer
        agreed = answer.magnitude
        if not self._magnitude <= agreed <= _LARGEST_FLOAT:
            raise errors.BarrierError(
                f"Round {meeting.unit.round}: the largest magnitude came back as {agreed:#010x}, "
                f"which is impossible with this worker's {self._magnitude:#010x}. A worker or the "
                "switch is broken."
            )
        return Largest(agreed, header.dst_id)

    def _done(self, meeting: Meeting) -> bytes:
        heartbeat = self._heartbeat.bit(self._endpoint.clock.now()) << self._worker
        body = wire.BarrierBody(
            magnitude=meeting.magnitude, plan=self._plan_id, workers=heartbeat
        ).pack()
        header = wire.Header(
            kind=wire.Kind.DONE,
            src_id=self._worker,
            dst_id=self._endpoint.incarnation,
            count=meeting.following.block,
            is_ack=True,
            echo=meeting.following.early,
            round=meeting.unit.round,
            block_id=meeting.unit.block,
            fragment=meeting.unit.fragment,
            feature_group=meeting.following.fragment,
        )
        return self._endpoint.frame(header, body)

    def _counts(self, header: wire.Header, barrier: wire.BarrierBody) -> bool:
        """Return whether an answer is recent, and from a switch with a plan."""
        self.served = barrier.plan != _NO_PLAN or self._plan_id == _NO_PLAN
        if not self.served:
            return False  # a controller is installing it after a restart
        return (header.session - self._endpoint.session) & wire.SESSION_MASK <= _NEWER

    def _check(self, header: wire.Header, barrier: wire.BarrierBody) -> None:
        errors.check_plan(self._worker, self._plan_id, barrier.plan)
        session, culprit = self._endpoint.session, header.dst_id
        if (header.session - session) & wire.SESSION_MASK:
            raise errors.SessionMismatchError(
                f"Worker {self._worker} takes part in session {session}, but the switch was "
                "installed again since. Restart all workers in its session "
                "(`switchgnn controller show`)."
            )
        if header.count == wire.Refusal.INCARNATION:
            raise errors.RoundMismatchError(
                f"Another process was already worker {self._worker} in this round of this session. "
                f"{_NEW_SESSION}"
            )
        if header.count == wire.Refusal.TAG:
            known = culprit < self._workers
            first = f", where worker {culprit} was the first" if known else ""
            raise errors.RoundMismatchError(
                f"{where(header.unit)} is not the next one of the switch, which is in "
                f"round {barrier.round}{first}. {_NEW_SESSION}",
                [culprit] * known,
            )
        if header.count == wire.Refusal.NEXT:
            raise errors.DisagreementError(
                f"{where(header.unit)}, worker {culprit} goes on with another block or fragment "
                f"than worker {self._worker}. All workers must exchange features of the same "
                "width, in the same direction, with the same operation.",
                [culprit],
            )
        if header.count == wire.Refusal.MAGNITUDE:
            raise errors.MagnitudeError(
                f"The switch has refused the largest magnitude that worker {culprit} "
                f"reported; that of the round is {magnitude_from_bits(barrier.magnitude):g}. "
                "It is above the installed limit, or has changed since the round was opened.",
                [culprit],
            )

    def _no_answer(self, unit: wire.Unit) -> errors.InNetworkError:
        where_to, seconds = self._link.name, self._endpoint.pace.timeout
        if unit.block != wire.OPENING_BLOCK:
            return errors.ExchangeTimeoutError(
                f"{where(unit)}: the switch on {where_to} has not reported within {seconds:g} s "
                "whether the block is complete."
            )
        return errors.ExchangeTimeoutError(
            f"{where(unit)}: no answer from the switch on {where_to} after {seconds:g} s. Is it "
            "running, with the plan installed (`switchgnn controller show`)? This worker is in "
            f"session {self._endpoint.session}."
        )


def where(unit: wire.Unit) -> str:
    """Return the unit as text."""
    return f"Round {unit.round}, block {unit.block}, fragment {wire.fragment_number(unit.fragment)}"
