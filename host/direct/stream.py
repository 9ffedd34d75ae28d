"""One round piece by piece: rows are sent as they are computed, sums made as rows arrive."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from switchgnn.base.array_types import Float32s, Int64s
from switchgnn.host.base.errors import FeatureError
from switchgnn.host.direct.exchange import DirectExchange, Round
from switchgnn.host.direct.sampling import Sample
from switchgnn.host.direct.schedule import DirectSchedule, RowSums

Waiter = Callable[[Callable[[], bool]], None]


@dataclass(frozen=True, eq=False)
class Side:
    """One direction of a worker's schedule, with the current sample."""

    worker: int
    send: RowSums  # Makes the S outgoing rows from the worker's n rows.
    needed_by: RowSums  # The outgoing rows that contain each of the n rows.
    out_indptr: Int64s  # Int64[W + 1], the outgoing rows for each worker.
    add: RowSums  # Adds the scheduled incoming rows to the worker's n rows.
    in_indptr: Int64s  # Int64[W + 1], the rows that each worker sends.
    # Int64[M], the index of each scheduled incoming row among the R rows that were drawn; -1 for
    # the others.
    arrival: Int64s
    scale: Float32s  # Float32[R], the factors of those rows.


def make_side(schedule: DirectSchedule, sent: Sample, awaited: Sample) -> Side:
    """Put a schedule and its samples together."""
    drawn = schedule.send.rows(sent.index)
    arrival = np.full(schedule.add.width, -1, dtype=np.int64)
    arrival[awaited.index] = np.arange(len(awaited.index))
    return Side(
        worker=schedule.worker,
        send=drawn,
        needed_by=drawn.transposed(),
        out_indptr=sent.indptr,
        add=schedule.add,
        in_indptr=awaited.indptr,
        arrival=arrival,
        scale=awaited.scale,
    )


@dataclass(eq=False)
class Stream:
    """One round of one worker, which must feed all its rows eventually, in any order.

    `side`: the schedule and sample of its direction. `wait_until`: see ``DirectExchange``.
    """

    exchange: DirectExchange
    round: Round
    side: Side
    wait_until: Waiter

    def __post_init__(self) -> None:
        side, width = self.side, self.round.width
        self._rows = np.zeros((side.send.width, width), dtype=np.float32)
        self._fed = np.zeros(side.send.width, dtype=np.bool_)
        self._lacks = side.send.sizes
        self._incoming = np.zeros((side.add.width, width), dtype=np.float32)

    def feed(self, indices: Int64s, rows: Float32s) -> None:
        """Feed rows, float32[K, F], for distinct indices, int64[K], and send what is complete.

        FeatureError: wrong shape or type, or rows that were fed before.
        """
        if rows.shape != (len(indices), self.round.width) or rows.dtype != np.float32:
            raise FeatureError(
                f"Worker {self.side.worker} feeds {len(indices)} rows of "
                f"{self.round.width} float32, not {rows.dtype}{list(rows.shape)}."
            )
        if self._fed[indices].any():
            twice = indices[np.argmax(self._fed[indices])]
            raise FeatureError(f"Worker {self.side.worker} feeds row {twice} twice in a round.")
        self._fed[indices] = True
        self._rows[indices] = rows
        touched, times = np.unique(self.side.needed_by.rows(indices).column, return_counts=True)
        self._lacks[touched] -= times
        ready = touched[self._lacks[touched] == 0]
        if len(ready):
            send = self.side.send.rows(ready)
            self.exchange.give(self.round, ready, send.apply(self._rows), send.sizes)

    def needs(self, indices: Int64s) -> Int64s:
        """Return the incoming rows that the sums at some indices need, for `wait_any`."""
        needed = self.side.arrival[self.side.add.rows(indices).column]
        return np.unique(needed[needed >= 0])

    def wait_any(self, needs: Sequence[Int64s]) -> int:
        """Wait until one of several sets of incoming rows is complete; return its index."""
        found = -1

        def one_is_here() -> bool:
            nonlocal found
            arrived = map(self.round.incoming.arrived, needs)
            found = next((index for index, here in enumerate(arrived) if here), -1)
            return found >= 0

        self.wait_until(one_is_here)
        return found

    def sums(self, indices: Int64s) -> Float32s:
        """Wait for the sums over the remote neighbours of K rows; return float32[K, F]."""
        needs = self.needs(indices)
        self.wait_any([needs])
        add = self.side.add.rows(indices)
        received = self.round.incoming.rows(needs)
        scheduled = np.flatnonzero(self.side.arrival >= 0)[needs]
        self._incoming[scheduled] = received * self.side.scale[needs, np.newaxis]
        return add.apply(self._incoming)


# Rows that are given while the thread waits for a frame leave after at most this number of
# seconds. A caller that waits for the thread gives none.
_GLANCE = 0.001
_FOREVER = float("inf")
_JOIN = 5.0
# Shorter blocks end before another worker misses an answer.
_LONG = 0.05


class Driver:
    """A thread that steps while a round is under way. A context manager."""

    def __init__(self, exchange: DirectExchange) -> None:
        self._exchange = exchange
        self._changed = threading.Condition()
        self._error: BaseException | None = None
        self._stopping = False
        self._waited_for = False
        # Set while no worker needs answers.
        self._attended = threading.Event()
        self._attended.set()
        self._seconds = 0.0
        self._since: float | None = None
        self._thread = threading.Thread(target=self._run, name="exchange", daemon=True)

    def __enter__(self) -> "Driver":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping = True
        self._exchange.wake()
        self._thread.join(_JOIN)

    @property
    def seconds(self) -> float:
        """Seconds so far in which a round was under way."""
        since = self._since
        return self._seconds + (0.0 if since is None else time.perf_counter() - since)

    @contextmanager
    def attending(self) -> Iterator[None]:
        """Answer other workers during a long block; see ``DirectTransport.attend``."""
        over = threading.Event()
        later = threading.Timer(_LONG, self._attend, args=(over,))
        later.daemon = True
        later.start()
        try:
            yield
        finally:
            over.set()
            later.cancel()

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """Wait until a condition holds or the exchange has stopped."""
        with self._changed:
            try:
                while not ready():
                    if self._error is not None:
                        raise self._error
                    self._waited_for = True
                    self._changed.wait()
            finally:
                self._waited_for = False

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._exchange.sleep()
                self._since = time.perf_counter()
                while not self._stopping and (
                    self._exchange.under_way or not self._attended.is_set()
                ):
                    if self._exchange.step(_FOREVER if self._waited_for else _GLANCE):
                        self._notify()
                self._seconds += time.perf_counter() - self._since
                self._since = None
        except BaseException as error:
            # The waiting thread raises it.
            self._error = error
            self._notify()

    def _attend(self, over: threading.Event) -> None:
        self._attended = over
        self._exchange.wake()

    def _notify(self) -> None:
        with self._changed:
            self._waited_for = False
            self._changed.notify_all()
