"""Exchange without help from the switch: workers send rows to each other."""

import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

import numpy as np

from switchgnn.base.array_types import Bools, Float32s, Int64s
from switchgnn.base.clock import SYSTEM_CLOCK, Clock
from switchgnn.base.network import Station
from switchgnn.host.base.compression import NO_COMPRESSION, Compression, Savings
from switchgnn.host.base.errors import DirectError
from switchgnn.host.base.operations import SUM, Operation
from switchgnn.host.base.pace import Pace
from switchgnn.host.base.status import DirectCounters
from switchgnn.host.direct.compressed import CompressedRows
from switchgnn.host.direct.exchange import DirectExchange, Round
from switchgnn.host.direct.frames import PROTOCOL
from switchgnn.host.direct.framing import Framing
from switchgnn.host.direct.sampling import Sampling, sample_rows
from switchgnn.host.direct.schedule import DirectSchedule, read_schedule
from switchgnn.host.direct.stream import Driver, Side, Stream, Waiter, make_side
from switchgnn.host.links import transport
from switchgnn.host.wire.link import Link, Traffic
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.sending.phases import Phases, shortest_phases

_EXACT = Sampling()
_USUAL = Framing()
# Seconds between two checks whether `attend` may stop.
_GLANCE = 0.005


class DirectTransport(transport.Transport):
    """One worker of `host` or `host-partial`, as its schedule says.

    BACKWARD is the transpose of FORWARD, also of a sampled one: it is the gradient of the sums of
    the same epoch.

    Args:
        link: an open link for ``PROTOCOL``; the caller closes it, after ``close``.
        backward: this worker's part of the backward direction; None: ``schedule.transposed()``.
        sampling: which rows are sent; by default all.
        compression: what `aggregate` leaves out of the rows; streams are plain.
        peers: the workers that may exchange rows in either direction by schedules that follow;
            None: there are no others.
        phases: send in the order of ``shortest_phases``.

    Raises:
        DirectError: stations for another number of workers, or sampling with `backward` or
            compression.
    """

    def __init__(
        self,
        schedule: DirectSchedule,
        link: Link,
        stations: tuple[Station, ...],
        *,
        pace: Pace | None = None,
        backward: DirectSchedule | None = None,
        sampling: Sampling = _EXACT,
        framing: Framing = _USUAL,
        clock: Clock = SYSTEM_CLOCK,
        compression: Compression = NO_COMPRESSION,
        peers: frozenset[int] | None = None,
        phases: bool = False,
    ) -> None:
        if len(stations) != schedule.workers:
            raise DirectError(
                f"The schedule is for {schedule.workers} workers, but {len(stations)} have "
                "addresses."
            )
        if backward is not None and sampling.rate < 1:
            raise DirectError(
                "A schedule with its own backward order cannot be sampled: use all rows, or the "
                "transport host."
            )
        sampling.refuse(compression)
        self._schedules = {
            Direction.FORWARD: schedule,
            Direction.BACKWARD: schedule.transposed() if backward is None else backward,
        }
        self.vertices, self.worker = len(schedule.vertices), schedule.worker
        self._sampling, self._framing = sampling, framing
        self._phased, self._phases = phases, dict[tuple[Direction, int], Phases]()
        self._epoch = 0
        self._sides = self._draw()
        self.epsilon, self.savings = 0.0, Savings()
        self._compressed: CompressedRows | None = None
        self._link = link
        self._start = link.traffic
        self._terms = f"{sampling.rate}/{sampling.seed}"
        if framing.packed:
            self._terms += f"mtu {framing.mtu}"
        self._agreement = self._agreed(schedule)
        self.compress(compression)
        # By later schedules any pair may exchange one way only.
        both, one_way = _peers(self._schedules.values()) if peers is None else (peers, peers)
        self._exchange = DirectExchange(
            schedule.worker,
            stations,
            link,
            pace=pace or Pace(),
            peers=both,
            one_way=one_way,
            session=self._agreement,
            framing=framing,
            clock=clock,
        )
        self.counters: DirectCounters = self._exchange.counters
        self._wait_until: Waiter = self._exchange.wait_until

    def compress(self, compression: Compression) -> None:
        """Send rows in fewer bytes from the next exchange on, as all workers must."""
        if compression.active:
            self._compressed = CompressedRows(compression, self.worker, self._sides, self.savings)
            self._agreement = zlib.crc32(repr(compression).encode(), self._agreement)

    def reschedule(self, forward: DirectSchedule, backward: DirectSchedule) -> None:
        """Exchange by other schedules from the next round on, as all workers must.

        Their rounds have another mark, so no worker takes rows of another schedule. It does not
        depend on earlier ones: a worker that has no round by a schedule may leave it out.
        """
        self._schedules = {Direction.FORWARD: forward, Direction.BACKWARD: backward}
        self._sides = self._draw()
        self._agreement = self._agreed(forward)

    def _agreed(self, schedule: DirectSchedule) -> int:
        return zlib.crc32(self._terms.encode(), zlib.crc32(schedule.digest.tobytes()))

    @property
    def traffic(self) -> Traffic:
        """Frames and bytes so far, acknowledgements included."""
        return transport.traffic_since(self._start, self._link.traffic)

    def expected_traffic(self, width: int, direction: Direction) -> Traffic:
        """Return the prediction of schedule and sample for one exchange; see ``Transport``."""
        side = self._sides[direction]
        phases = self._phases_of(direction, width)
        return self._exchange.expected_traffic(side.out_indptr, side.in_indptr, width, phases)

    def next_epoch(self) -> None:
        """Draw the sample of the next epoch; the first epoch is 0."""
        self._epoch += 1
        if self._sampling.rate < 1:
            self._sides = self._draw()

    def aggregate(
        self, rows: Float32s, direction: Direction, tensor_id: int = 0, operation: Operation = SUM
    ) -> Float32s:
        """Sum over remote neighbours, float32[n, F]; see ``Transport.aggregate``."""
        operation.refuse("An exchange between hosts")
        transport.check_rows(rows, self.vertices, self.worker)
        if self._compressed is not None:
            return self._compressed.aggregate(
                rows,
                direction,
                tensor_id,
                epsilon=self.epsilon,
                swap=partial(self._swap, direction),
            )
        stream = self.begin(rows.shape[1], direction)
        everything = np.arange(self.vertices)
        stream.feed(everything, rows)
        self.wait_for(stream)
        return stream.sums(everything)

    @property
    def copied_edges(self) -> Int64s | None:
        """See ``Transport``; None also for partial sums, samples and compressed rows."""
        send, add = (getattr(self._schedules[Direction.FORWARD], it) for it in ("send", "add"))
        if self._sampling.rate < 1 or self._compressed is not None or np.any(send.sizes != 1):
            return None
        return np.stack([add.column, np.repeat(np.arange(len(add)), add.sizes)])

    def copies(self, rows: Float32s, direction: Direction) -> Float32s:
        """Return copies of rows, or sums of those of copies; see ``Transport.copies``."""
        schedule = self._schedules[Direction.FORWARD]
        forward = direction is Direction.FORWARD
        sent = schedule.send.apply(rows) if forward else rows
        ways = (schedule.out_indptr, schedule.in_indptr)[:: 1 if forward else -1]
        once = np.ones(len(sent), dtype=np.int64)
        found = self._swap(
            direction, f"copies {direction.value}/{rows.shape[1]}", sent, once, *ways
        )
        return found if forward else schedule.send.transposed().apply(found)

    def skip(self, tensor_id: int, vertices: Bools | None) -> None:
        """Take rows of a tensor as unchanged; see ``Transport.skip``."""
        if self._compressed is not None:
            self._compressed.skipped.skip(tensor_id, vertices)

    def forget(self, tensor_id: int) -> None:
        """Drop all that is kept of a tensor, as all workers must between the same exchanges."""
        if self._compressed is not None:
            self._compressed.forget(tensor_id)

    def begin(self, width: int, direction: Direction) -> Stream:
        """Begin a round that is fed piece by piece; all workers begin them in the same order.

        Waits until the round before the last is complete, so its rows must have been fed.
        """
        side = self._sides[direction]
        # Frames of one fragment carry its number; their mark is that of earlier versions.
        packed = f"/{width}" if self._framing.packed else ""
        name = f"{direction.value}{packed}"
        begun = self._begin(direction, name, width, side.out_indptr, side.in_indptr)
        return Stream(self._exchange, begun, side, self._wait_until)

    def wait_for(self, stream: Stream, *, until: Callable[[], bool] = lambda: False) -> None:
        """Wait until a round is complete, here and at the workers that send to this one.

        `until` ends the wait earlier; it is called at least once a second.
        """
        self._wait_until(lambda: stream.round.complete or until())

    def tend(self, *, arrived: bool) -> float:
        """Send and receive a little without waiting; ``arrived``: whether a frame is here.

        Returns the seconds without anything to do unless a frame arrives.
        """
        if not arrived and not self._exchange.under_way:
            return float("inf")
        self._exchange.step(0.0)
        return self._exchange.pause if self._exchange.under_way else float("inf")

    def attend(self, until: Callable[[], bool], glance: float = _GLANCE) -> None:
        """Answer other workers' questions about completed rounds, until ``until()`` holds.

        The last acknowledgement of a round may be lost; workers that wait for it ask again.
        `glance`: the most seconds between two looks at ``until``.
        """
        while not until():
            self._exchange.step(glance)

    def stop(self) -> None:
        """End an exchange in another thread; see ``Transport.stop``."""
        self._exchange.stopped = True

    def finish(self) -> None:
        """Wait until all rounds are complete."""
        self._wait_until(lambda: self._exchange.all_complete)

    @contextmanager
    def in_background(self) -> Iterator[Driver]:
        """Exchange in another thread during the block, so that computation overlaps with it."""
        foreground = self._wait_until
        with Driver(self._exchange) as driver:
            self._wait_until = driver.wait_until
            try:
                yield driver
            finally:
                self._wait_until = foreground

    def close(self) -> None:
        """Take leave of the other workers; takes two seconds at most."""
        self._exchange.close()

    def _phases_of(self, direction: Direction, width: int) -> Phases | None:
        """Return those of the frames of a whole exchange; other ones are sent in proportion."""
        key = direction, width
        if self._phased and key not in self._phases:
            frames = self._framing.frames(self._schedules[direction].pairs, width)
            self._phases[key] = shortest_phases(frames)
        return self._phases.get(key)

    def _begin(self, direction: Direction, name: str, width: int, *indptrs: Int64s) -> Round:
        self._wait_until(lambda: self._exchange.may_begin)
        mark = zlib.crc32(f"{self._epoch}/{name}".encode(), self._agreement)
        phases = self._phases_of(direction, width)
        own = None if phases is None else phases.of_worker(self.worker)
        return self._exchange.begin(width, *indptrs, mark=mark, phases=own)

    def _swap(
        self, direction: Direction, name: str, rows: Float32s, counts: Int64s, *indptrs: Int64s
    ) -> Float32s:
        begun = self._begin(direction, name, rows.shape[1], *indptrs)
        self._exchange.give(begun, np.arange(len(rows)), rows, counts)
        # Complete, and not just here: see ``arrivals`` for how far workers may be ahead.
        self._wait_until(lambda: begun.complete)
        return begun.incoming.rows(np.arange(int(indptrs[1][-1])))

    def _draw(self) -> dict[Direction, Side]:
        """Return both directions with the epoch's sample; the backward one is its reverse."""
        draw = partial(sample_rows, self._sampling, self._epoch, self.worker)
        samples = {
            each: [draw(own.out_indptr, outgoing=True), draw(own.in_indptr, outgoing=False)]
            for each, own in self._schedules.items()
        }
        if self._sampling.rate < 1:
            # The same rows as forward.
            samples[Direction.BACKWARD] = samples[Direction.FORWARD][::-1]
        return {each: make_side(own, *samples[each]) for each, own in self._schedules.items()}


class ReplicaTransport(DirectTransport):
    """Sums of the replicas of a vertex cut, gathered by masters and scattered (CDFGNN).

    An exchange has two rounds: forward along the edges from mirrors to masters, and back.
    """

    def aggregate(
        self, rows: Float32s, direction: Direction, tensor_id: int = 0, operation: Operation = SUM
    ) -> Float32s:
        """Return the sums of each vertex's replicas, this one included; 0 where there is one."""
        # Both directions of a tensor have rows of their own.
        tensor_id = 2 * tensor_id + (direction is Direction.BACKWARD)
        gathered = super().aggregate(rows, Direction.FORWARD, tensor_id, operation)
        totals = rows + gathered
        found = super().aggregate(totals, Direction.BACKWARD, tensor_id, operation)
        masters = self._schedules[Direction.FORWARD].add.sizes > 0
        found[masters] = totals[masters]
        return found

    def expected_traffic(self, width: int, _direction: Direction) -> Traffic:
        """Return that of both rounds; see ``Transport``."""
        expected = super().expected_traffic
        return transport.add_traffic(*(expected(width, direction) for direction in Direction))

    @property
    def copied_edges(self) -> None:
        """None: there are only sums."""
        return None

    def skip(self, tensor_id: int, vertices: Bools | None) -> None:
        """Take rows of a tensor as unchanged; see ``Transport.skip``."""
        super().skip(2 * tensor_id, vertices)

    def forget(self, tensor_id: int) -> None:
        """Drop what is kept of a tensor, in both directions."""
        for each in range(2 * tensor_id, 2 * tensor_id + 2):
            super().forget(each)


def open_direct(end: transport.WorkerEnd) -> AbstractContextManager[DirectTransport]:
    """Open a transport between hosts, as the worker's schedule says."""
    schedule = read_schedule(end.schedule_file())
    kind = ReplicaTransport if schedule.scatters else DirectTransport
    return open_schedule(end, schedule, kind=kind)


@contextmanager
def open_schedule(
    end: transport.WorkerEnd,
    schedule: DirectSchedule,
    *,
    backward: DirectSchedule | None = None,
    kind: type[DirectTransport] = DirectTransport,
) -> Iterator[DirectTransport]:
    """Open a worker's link for frames between hosts, and a transport on it."""
    sampling, framing = Sampling(end.sampling, end.seed), Framing.parse(end.mtu)
    transport.check_packets_fit(end.link, framing.packet_bytes)
    with end.open_link(PROTOCOL) as link:
        yield kind(
            schedule,
            link,
            end.stations,
            pace=end.pace,
            backward=backward,
            sampling=sampling,
            framing=framing,
            clock=end.clock,
            compression=end.compression,
            phases=end.phases,
        )


def _peers(schedules: Iterable[DirectSchedule]) -> tuple[frozenset[int], frozenset[int]]:
    with_rows = [(np.diff(each.out_indptr) > 0, np.diff(each.in_indptr) > 0) for each in schedules]
    any_way = np.any([sends | gets for sends, gets in with_rows], axis=0)
    one_way = np.any([sends ^ gets for sends, gets in with_rows], axis=0)
    any_way, one_way = (frozenset(np.flatnonzero(each).tolist()) for each in (any_way, one_way))
    return any_way, one_way
