"""One worker's exchange with the others, round after round."""

import queue
from collections.abc import Callable

import numpy as np

from switchgnn.base.array_types import Float32s, Int64s
from switchgnn.base.clock import SYSTEM_CLOCK, Clock
from switchgnn.base.network import Station
from switchgnn.host.base.congestion import CongestionWindow
from switchgnn.host.base.errors import LinkError, SilentWorkerError, TransportError, named_workers
from switchgnn.host.base.pace import Pace, RoundTrip
from switchgnn.host.base.status import DirectCounters
from switchgnn.host.direct.arrivals import MOST_OPEN, Arrivals, Incoming
from switchgnn.host.direct.frames import (
    CONTROL_FRAME_BYTES,
    Envelopes,
    Outgoing,
    Packet,
    data_frames,
    send_order,
    unpack,
)
from switchgnn.host.direct.framing import Framing, Runs
from switchgnn.host.direct.outbox import Cargo, Outbox, asking_frames
from switchgnn.host.wire.header import Header, Kind
from switchgnn.host.wire.link import Link, Traffic
from switchgnn.planner.sending.phases import Phases, WorkerPhases

# Seconds for which a leaving worker answers those that may have missed its last acknowledgement.
_LINGER = 2.0
_LONGEST_WAIT = 1.0


class Round:
    """One round of one worker; all workers must have the same `mark`, 32 bits.

    It is `complete` when all rows have arrived, here and at the others. Frames leave in `phases`,
    if there are any.
    """

    def __init__(
        self, number: int, mark: int, outgoing: Runs, awaited: Runs, phases: WorkerPhases | None
    ) -> None:
        self.number = number
        self.phases = phases
        self.width = outgoing.width
        self.mark = mark
        self.outgoing = Outgoing(outgoing)
        self.incoming = Incoming(mark, awaited)
        self.complete = False
        self.began_at = 0.0
        # Workers that owe rows show by these that they are in the round, others by answers.
        self.incoming.unheard |= set(np.flatnonzero(np.diff(outgoing.first)).tolist())
        self.seconds = 0.0  # From when all were in the round until it was complete.


class DirectExchange:
    """Sends rows to other workers and collects theirs.

    Rounds begin one after another, and two of them may be under way. One thread begins rounds,
    gives rows and waits; `step` may be called by one other thread.
    """

    def __init__(
        self,
        worker: int,
        stations: tuple[Station, ...],
        link: Link,
        *,
        pace: Pace,
        framing: Framing,
        peers: frozenset[int],
        one_way: frozenset[int],
        session: int,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.counters = DirectCounters()
        self.stopped = False  # whether exchanges must end, see `Transport.stop`
        self._worker, self._workers = worker, len(stations)
        self._link = link
        self._pace = pace = framing.paced(pace)
        self._framing = framing
        self._clock = clock
        # Workers that owe rows may be computing them.
        self._timeout = pace.timeout + pace.skew
        self._peers = peers
        self._session = session
        self._begun: list[Round] = []
        self._next_round = 1
        self._handed: queue.SimpleQueue[Round | Cargo | None] = queue.SimpleQueue()
        # The rest belongs to the thread that steps.
        self._rounds: dict[int, Round] = {}
        # All rounds up to `_finished` are complete; `_newest` is the newest complete one.
        self._finished = self._newest = 0
        self._envelopes = Envelopes(worker, stations)
        self._round_trip = RoundTrip(pace.shortest_timeout)
        congestion = CongestionWindow(pace, self._round_trip, framing.segment)
        self._deadline = 0.0
        self._gone: dict[int, int] = {}
        self._closing = False
        self._more = False
        self._heard: dict[int, float] = {}
        self._arrivals = Arrivals(worker, link, self._envelopes, one_way, self.counters)
        self._outbox = Outbox(link, self._envelopes, congestion, self._round_trip, self.counters)

    @property
    def under_way(self) -> bool:
        """Whether a round has begun and is not complete; for the thread that steps."""
        return bool(self._rounds) or not self._handed.empty()

    @property
    def may_begin(self) -> bool:
        """Whether the round before the last is complete."""
        self._begun = [each for each in self._begun if not each.complete]
        return not self._begun or self._begun[0].number > self._next_round - MOST_OPEN

    @property
    def all_complete(self) -> bool:
        """Whether every round that has begun is complete."""
        return all(each.complete for each in self._begun)

    def begin(
        self,
        width: int,
        out_indptr: Int64s,
        in_indptr: Int64s,
        *,
        mark: int,
        phases: WorkerPhases | None = None,
    ) -> Round:
        """Begin a round, if `may_begin`; `out_indptr` and `in_indptr`: as in ``DirectSchedule``."""
        outgoing, awaited = (
            Runs(self._framing, width, indptr) for indptr in (out_indptr, in_indptr)
        )
        begun = Round(self._next_round, mark, outgoing, awaited, phases)
        begun.began_at = self._clock.now()
        self._next_round += 1
        self._begun.append(begun)
        self._handed.put(begun)
        return begun

    def give(self, to: Round, indices: Int64s, rows: Float32s, counts: Int64s) -> None:
        """Give some rows of a round, each only once; complete frames leave soon.

        `indices`: int64[K], ascending, which of the round's rows, receiver by receiver. `rows`:
        float32[K, F]. `counts`: int64[K], how many rows of vertices each of them adds up.
        """
        whole = to.outgoing.give(indices, rows, counts)
        if not len(whole):
            return
        order = send_order(self._worker, to.outgoing.runs.first, whole, to.phases)
        asking = asking_frames(order, self._pace)
        frames = data_frames(
            order,
            to.outgoing,
            worker=self._worker,
            envelopes=self._envelopes,
            round_number=to.number,
            mark=to.mark,
            asking=asking,
        )
        to.outgoing.forget()
        self._handed.put(Cargo(to.number, order, frames, asking))

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """Exchange until a condition holds."""
        self._deadline = self._clock.now() + self._timeout
        while not ready():
            self.step()

    def step(self, longest: float = float("inf")) -> bool:
        """Send and receive a little, at most `longest` seconds; return whether there is news."""
        if self.stopped:
            raise TransportError("The exchange was stopped.")
        while not self._handed.empty():
            self._accept(self._handed.get())
        now = self._clock.now()
        # A round without any rows is complete immediately.
        news = self._close_rounds(now)
        self._more = more = self._outbox.send_some(now) or news
        batch = self._link.receive_batch(0.0 if more else min(longest, self._wait(now)))
        now = self._clock.now()
        if batch is not None:
            left = self._arrivals.take_plain(batch, now, self._heard)
            news |= len(left) < batch.count - batch.first
            for index in left:
                news |= self._take(batch.frame(index), now)
        news |= self._close_rounds(now)
        # Without more rows from this worker the others may have done all they can.
        idle = self._outbox.idle and all(each.incoming.done for each in self._rounds.values())
        if news or idle:
            self._deadline = now + self._timeout
        self._check_timeout(now)
        self._outbox.ask_about_what_is_late(now)
        return news

    @property
    def pause(self) -> float:
        """Seconds without anything to do unless a frame comes; to be read after a step."""
        return 0.0 if self._more else self._wait(self._clock.now())

    def sleep(self) -> None:
        """Wait for `begin` or `wake` without receiving; for the thread that steps."""
        self._accept(self._handed.get())

    def wake(self) -> None:
        """End a `sleep`."""
        self._handed.put(None)

    def expected_traffic(
        self, out_indptr: Int64s, in_indptr: Int64s, width: int, phases: Phases | None = None
    ) -> Traffic:
        """Count the frames of one round without losses: rows and acknowledgements.

        `out_indptr` and `in_indptr`: as in ``DirectSchedule``; `phases`: of the frames.
        """
        sent, sent_bytes = self._frames(out_indptr, width)
        awaited, awaited_bytes = self._frames(in_indptr, width)
        acks_down = acks_up = 0
        for peer in range(len(sent)):
            acks_down += self._acks(self._worker, peer, int(sent[peer]), phases)
            acks_up += self._acks(peer, self._worker, int(awaited[peer]), phases)
        return Traffic(
            frames_up=int(sent.sum()) + acks_up,
            bytes_up=sent_bytes + acks_up * CONTROL_FRAME_BYTES,
            frames_down=int(awaited.sum()) + acks_down,
            bytes_down=awaited_bytes + acks_down * CONTROL_FRAME_BYTES,
        )

    def _frames(self, indptr: Int64s, width: int) -> tuple[Int64s, int]:
        rows = np.diff(indptr)
        sent_bytes = int(self._framing.frame_bytes(rows, width).sum())
        return self._framing.frames(rows, width), sent_bytes

    def _acks(self, sender: int, receiver: int, frames: int, phases: Phases | None) -> int:
        """Count the acknowledgements of a pair's frames, whatever is sent to others."""
        indptr = np.zeros(self._workers + 1, dtype=np.int64)
        indptr[receiver + 1 :] = frames
        own = None if phases is None else phases.of_worker(sender)
        order = send_order(sender, indptr, np.arange(frames), own)
        return int(asking_frames(order, self._pace).sum())

    def close(self) -> None:
        """Take leave of the other workers and wait for theirs, at most two seconds.

        A worker that misses an acknowledgement asks again during this time.
        """
        if self._closing:
            return
        self._closing = True
        deadline = self._clock.now() + _LINGER
        try:
            for peer in sorted(self._peers):
                self._say_farewell(peer)
            attempts = 0
            while self._peers - self._gone.keys() and self._clock.now() < deadline:
                again = self._clock.now() + self._round_trip.backed_off(attempts)
                self._linger(min(again, deadline))
                for peer in sorted(self._peers - self._gone.keys()):
                    self._say_farewell(peer, echo=True)
                attempts += 1
        except LinkError:
            return

    def _wait(self, now: float) -> float:
        left = max(0.001, min(_LONGEST_WAIT, self._deadline - now))
        return left if self._outbox.idle else min(left, max(0.001, self._outbox.next_timer(now)))

    def _accept(self, order: Round | Cargo | None) -> None:
        self._deadline = self._clock.now() + self._timeout
        if isinstance(order, Cargo):
            self._outbox.load(order)
        elif order is not None:
            frames = np.diff(order.outgoing.runs.first)
            self._rounds[order.number] = order
            self._outbox.open_round(order.number, order.mark, frames.tolist())
            self._arrivals.open_round(order.number, order.incoming)

    def _close_rounds(self, now: float) -> bool:
        complete = [
            number
            for number, each in self._rounds.items()
            if self._outbox.done(number) and each.incoming.done
        ]
        for number in complete:
            self._outbox.close_round(number)
            self._arrivals.close_round(number)
            closed = self._rounds.pop(number)
            self._newest = max(self._newest, number)
            self._finished = min(self._rounds, default=self._newest + 1) - 1
            closed.seconds = max(0.0, now - max(closed.began_at, closed.incoming.joined_at))
            closed.complete = True
        return bool(complete)

    def _take(self, frame: memoryview, now: float) -> bool:
        packet = unpack(frame, self._worker)
        if packet is None or packet.sender not in self._peers:
            self.counters.malformed += 1
            return False
        self._heard[packet.sender] = now
        if packet.kind is Kind.DONE:
            return self._take_farewell(packet)
        if packet.round in self._rounds:
            self._rounds[packet.round].incoming.hear((packet.sender,), now)
        if packet.kind is Kind.ACK:
            return self._outbox.take_ack(packet, now)
        return self._arrivals.take(packet)

    def _take_farewell(self, packet: Packet) -> bool:
        if packet.tag != self._session:
            self.counters.foreign += 1
            return False
        self._gone[packet.sender] = packet.round
        if packet.echo and self._closing:
            self._say_farewell(packet.sender)
        return self._outbox.take_farewell(packet.sender, packet.round)

    def _linger(self, until: float) -> None:
        while self._peers - self._gone.keys() and (left := until - self._clock.now()) > 0:
            frame = self._link.receive(left)
            if frame is not None:
                self._take(frame, self._clock.now())

    def _say_farewell(self, peer: int, *, echo: bool = False) -> None:
        header = Header(
            kind=Kind.DONE,
            is_ack=True,
            echo=echo,
            src_id=self._worker,
            dst_id=self._session,
            round=self._finished,
        )
        self._link.send(self._envelopes.control(peer, header))
        self.counters.farewells += 1

    def _check_timeout(self, now: float) -> None:
        late = now > self._deadline
        newest = max(self._rounds, default=self._finished)
        if not late and all(last >= newest for last in self._gone.values()):
            return
        for number in sorted(self._rounds):
            owing = self._rounds[number].incoming.waiting_for
            deaf = self._outbox.waiting_for(number)
            left = sorted(
                peer for peer, last in self._gone.items() if last < number and peer in owing | deaf
            )
            if left:
                last = self._gone[left[0]]
                raise SilentWorkerError(
                    f"Round {number}: {named_workers(left)} left after round {last}.", left
                )
            if late and (owing or deaf):
                raise self._complaint(number, owing, deaf, now)

    def _complaint(
        self, number: int, owing: set[int], deaf: set[int], now: float
    ) -> SilentWorkerError:
        long_ago = now - self._timeout
        # A worker that owes rows may wait for another one; a worker that does not answer is gone.
        silent = sorted(
            peer for peer in deaf or owing if self._heard.get(peer, float("-inf")) <= long_ago
        )
        parts = []
        if owing:
            parts.append(f"rows of {named_workers(sorted(owing))} are missing")
        if deaf:
            parts.append(f"{named_workers(sorted(deaf))} did not acknowledge theirs")
        told = f"Nothing was heard of {named_workers(silent)}." if silent else "All of them answer."
        if self.counters.foreign:
            told += (
                " Frames of another schedule arrived: do all workers have the same graph, "
                "partition, sampling, epoch and direction, width and compression of rows, and MTU?"
            )
        return SilentWorkerError(
            f"Round {number}: {' and '.join(parts)} after {self._timeout:g} s "
            f"without progress. {told}",
            silent,
        )
