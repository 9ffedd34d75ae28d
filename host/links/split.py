"""One link for two exchanges, which run in two threads or take turns in one.

A thread that needs frames reads the link itself, and puts frames of the other half into that half's
queue. A thread that finds the link being read waits for its queue. One half leads: the one that
frames came for last. The other half reads only if the leader stays away from the link for a while,
so two active threads do not take turns at every batch.

In one thread, the exchange of one half goes on where that of the other one would wait for frames.
"""

import threading
from collections import deque
from collections.abc import Callable
from math import inf

import numpy as np

from switchgnn.base.array_types import Bools
from switchgnn.base.clock import SYSTEM_CLOCK, Clock
from switchgnn.host.base.errors import LinkError
from switchgnn.host.wire.batches import FrameBatch, FrameRows, new_batch
from switchgnn.host.wire.header import ETHERNET_BYTES, KIND_AT, KIND_MASK, PROTOCOL
from switchgnn.host.wire.link import LARGEST_FRAME, Link, Traffic

# Frames that a half keeps until its thread takes them.
KEPT_AT_MOST = 4096
_PROTOCOL_AT = ETHERNET_BYTES + 9
_AT_ONCE = 64
# Seconds that the leader may spend on a batch before the other half reads; also the most by which
# frames of the other half prolong a wait.
_ABSENCE = 0.002
# Seconds after which a waiting half looks whether the leader is away.
_LOOK_AGAIN = 0.005
# Seconds after which the other exchange of a thread has its turn, though frames never pause.
_TURN = 0.001

# Returns bool[N] for the N frames of a batch that were not taken yet: those of the second half.
OfSecond = Callable[[FrameBatch], Bools]


def kinds_from(first_kind: int, protocol: int = PROTOCOL) -> OfSecond:
    """Return the choice of frames of one IPv4 protocol with at least that packet kind."""
    # By the byte with the kind: one look-up costs less than two operations.
    by_kind = np.arange(256) & KIND_MASK >= first_kind
    kind_at, protocol_at = np.uint32(KIND_AT), np.uint32(_PROTOCOL_AT)

    def of_second(batch: FrameBatch) -> Bools:
        begins = batch.begins[batch.first : batch.count]
        # The last frame may be too short, and the room end with it.
        chosen: Bools = by_kind.take(batch.room.take(begins + kind_at, mode="clip"))
        if np.count_nonzero(chosen):
            chosen &= batch.room.take(begins + protocol_at, mode="clip") == protocol
            chosen &= batch.sizes[batch.first : batch.count] > KIND_AT
        return chosen

    return of_second


def split_link(
    link: Link, of_second: OfSecond, kept_at_most: int = KEPT_AT_MOST, clock: Clock = SYSTEM_CLOCK
) -> tuple["LinkHalf", "LinkHalf"]:
    """Split a link without pending frames, which belongs to the halves from now on.

    `of_second`: which frames belong to the second half. A half keeps `kept_at_most` frames, and
    drops older ones. `clock`: that of the link.
    """
    shared = _Shared(link, of_second, kept_at_most, clock)
    return shared.halves


class _Shared:
    def __init__(self, link: Link, of_second: OfSecond, kept_at_most: int, clock: Clock) -> None:
        self.link, self.of_second, self.now = link, of_second, clock.now
        # whether batches of the link may be used while the other half reads
        self.passes = link.keep_batch()
        # protects `reader`, `leader`, `left_at`, and what the halves say of their waits
        self.lock = threading.Lock()
        self.one_thread = False  # whether the halves take turns, and none of them leads
        self.reader: LinkHalf | None = None  # the half that reads the link
        self.leader: LinkHalf | None = None  # the half that frames came for last
        self.left_at = -inf  # when the leader last stopped reading
        # the half that uses the link's own batch; only the reader looks and changes it
        self.lent: LinkHalf | None = None
        self.counting = threading.Lock()  # protects the counters of what the halves send
        self.halves = LinkHalf(self, kept_at_most), LinkHalf(self, kept_at_most)
        self.halves[0].other, self.halves[1].other = self.halves[1], self.halves[0]


class LinkHalf(Link):
    """One half of a split link, for one thread that receives; any thread may send.

    An error of the link is raised in both halves: by the call that met it, and by the next call
    that receives on the other half.
    """

    other: "LinkHalf"

    def __init__(self, shared: _Shared, kept_at_most: int) -> None:
        self.closed = False
        self._meanwhile: Callable[[], float] | None = None
        self._next_turn = -inf
        self._shared = shared
        self._queue: deque[bytes] = deque(maxlen=kept_at_most)
        self._own = self._batch = new_batch(_AT_ONCE, LARGEST_FRAME)
        self._taken = 0
        self._changed = threading.Condition(shared.lock)
        self._waits = False
        self._error: LinkError | None = None
        self._frames_up = self._bytes_up = self._frames_down = self._bytes_down = 0

    @property
    def name(self) -> str:
        """See ``Link``."""
        return self._shared.link.name

    @property
    def whole(self) -> Link:
        """The link that both halves share."""
        return self._shared.link

    def take_turns(self, meanwhile: Callable[[], float]) -> None:
        """Share one thread with the other half, whose exchange goes on where this one would wait.

        `meanwhile` lets it go on, and returns the seconds without anything to do for it; infinite:
        until a frame arrives for it, or this method is called again.
        """
        self._meanwhile, self._shared.one_thread = meanwhile, True
        self._next_turn = -inf

    @property
    def arrived(self) -> bool:
        """Whether frames are here that were not taken."""
        return bool(self._queue) or self._taken < self._batch.count

    @property
    def traffic(self) -> Traffic:
        """The frames that this half has sent, and those that have arrived for it."""
        return Traffic(self._frames_up, self._bytes_up, self._frames_down, self._bytes_down)

    def send(self, frame: bytes | memoryview) -> None:
        """See ``Link``."""
        self._send(lambda link: link.send(frame), 1, len(frame))

    def send_rows(self, rows: FrameRows, first: int, count: int) -> None:
        """See ``Link``."""
        self._send(
            lambda link: link.send_rows(rows, first, count), count, rows.bytes_of(first, count)
        )

    def _send(self, send: Callable[[Link], None], frames: int, size: int) -> None:
        # The halves do not wait for each other: the link lets frames of a higher class go first.
        self._check_open()
        send(self._shared.link)
        with self._shared.counting:
            self._frames_up += frames
            self._bytes_up += size

    def receive(self, seconds: float) -> memoryview | None:
        """See ``Link``."""
        if self._taken >= self._batch.count and not self._next(seconds):
            return None
        self._taken += 1
        return self._batch.frame(self._taken - 1)

    def receive_batch(self, seconds: float) -> FrameBatch | None:
        """See ``Link``."""
        if self._taken >= self._batch.count and not self._next(seconds):
            return None
        self._batch.first, self._taken = self._taken, self._batch.count
        return self._batch

    def _next(self, seconds: float) -> bool:
        if self._meanwhile is None:
            return self._get(seconds)
        # Nothing to do for the other half leaves this one its own way to wait.
        until, pause = self._shared.now() + seconds, inf if self._next_turn == inf else 0.0
        while True:
            here = self._get(max(0.0, min(until - self._shared.now(), pause)))
            now = self._shared.now()
            if self.other.arrived or now >= self._next_turn or (not here and now < until):
                pause = self._meanwhile()
                self._next_turn = inf if pause == inf else self._shared.now() + _TURN
            if here or now >= until:
                return here

    def _get(self, seconds: float) -> bool:
        # The last one may be the link's, which changes as soon as anybody reads.
        self._batch, self._own.count, self._taken = self._own, 0, 0
        until = self._shared.now() + seconds
        while self._begin_to_read(until):
            leader: LinkHalf | None = None
            try:
                leader = self._read(until)
            finally:
                self._end_reading(leader)
            if leader is not self.other or self._meanwhile is not None:
                break
        # Frames of a mixed batch are in the queue.
        while self._queue and self._batch.count < _AT_ONCE and self._batch is self._own:
            self._own.put(self._queue.popleft())
        return self._batch.count > 0

    def _begin_to_read(self, until: float) -> bool:
        """Wait for frames in the queue or a turn to read; return whether this half reads."""
        shared = self._shared
        with shared.lock:
            while True:
                self._check_open()
                if self._error is not None:
                    error, self._error = self._error, None
                    raise LinkError(str(error)) from error
                if self._queue:
                    return False
                now, turn = shared.now(), self._turn()
                # A last look at the end of a wait disturbs nobody.
                if turn <= now or (until <= now and turn < inf):
                    shared.reader = self
                    return True
                if until <= now:
                    return False
                # A leader that leaves with frames wakes nobody: that would cost it more than a look
                # at times costs this half.
                self._wait(min(until, turn, now + _LOOK_AGAIN) - now)

    def _turn(self) -> float:
        shared = self._shared
        if shared.reader is self.other:
            return inf
        return shared.left_at + _ABSENCE if shared.leader is self.other else -inf

    def _wait(self, seconds: float) -> None:
        self._waits = True
        try:
            self._changed.wait(seconds)
        finally:
            self._waits = False

    def _read(self, until: float) -> "LinkHalf | None":
        """Read the link until frames for a waiting half come; return it, or None: time is over."""
        shared, seconds = self._shared, until - self._shared.now()
        while True:
            if shared.lent is self.other:
                shared.link.keep_batch()
            shared.lent = None
            try:
                batch = shared.link.receive_batch(max(0.0, seconds))
            except LinkError as error:
                self.other._error = error
                raise
            if batch is None:
                return None
            if self._take_own(batch):
                return self
            if self.other._waits or self._meanwhile is not None:
                return self.other
            seconds = until - self._shared.now()
            if seconds < -_ABSENCE:
                return None

    def _take_own(self, batch: FrameBatch) -> bool:
        shared = self._shared
        of_second = shared.of_second(batch)
        all_frames, own = len(of_second), int(np.count_nonzero(of_second))
        if self is shared.halves[0]:
            own = all_frames - own
        if own < all_frames or not shared.passes:
            with shared.lock:
                for index, second in enumerate(of_second.tolist(), batch.first):
                    shared.halves[second]._keep(batch.frame(index))
            return own > 0
        self._batch, self._taken, shared.lent = batch, batch.first, self
        self._frames_down += all_frames
        self._bytes_down += int(np.add.reduce(batch.sizes[batch.first : batch.count]))
        return True

    def _end_reading(self, leader: "LinkHalf | None") -> None:
        """Let the other half read; `leader`: the half that frames have come for."""
        shared = self._shared
        with shared.lock:
            shared.reader = None
            if leader is not None and not shared.one_thread:
                shared.leader, shared.left_at = leader, self._shared.now()
            if leader is not self or self.other._queue:
                self.other._changed.notify()
            self._close_link_if_unused()

    def _keep(self, frame: memoryview) -> None:
        if self.closed:
            return
        self._frames_down += 1
        self._bytes_down += len(frame)
        self._queue.append(bytes(frame[:LARGEST_FRAME]))

    def close(self) -> None:
        """Close this half; the link is closed with the second one, once nobody reads it."""
        with self._shared.lock:
            if self.closed:
                return
            self.closed = True
            self._queue.clear()
            for half in self._shared.halves:
                half._changed.notify()
            self._close_link_if_unused()

    def _close_link_if_unused(self) -> None:
        if self.closed and self.other.closed and self._shared.reader is None:
            self._shared.link.close()

    def _check_open(self) -> None:
        if self.closed:
            raise LinkError(f"This half of {self.name} is closed.")
