"""Receives packets: answers fetches, passes marks on, and leaves the rest to the exchange."""

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence, Set

import numpy as np

from switchgnn.base.array_types import Int32s, Int64s
from switchgnn.host.base.compression import WHOLE_BITS
from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.innetwork.schedule import BlockSchedule
from switchgnn.host.wire import header as wire
from switchgnn.host.wire.narrow import bits_needed, pack_lanes
from switchgnn.planner.plan.manifest import Manifest

# The slice of each row in a fragment, by the word of the fragment.
Fragments = Mapping[int, Int32s]
# Returns int32[W], what a local row contributes to a requested sum; None: it does not.
Contribution = Callable[[wire.Header, int], Int32s | None]


class Responder:
    """Answers other workers' fetches; `vertices`: int64[n], those of this worker, ascending."""

    def __init__(self, endpoint: Endpoint, vertices: Int64s) -> None:
        self._endpoint = endpoint
        self._counters = endpoint.counters
        self._row = {int(vertex): row for row, vertex in enumerate(vertices)}
        self._round = 0
        self._units: Set[tuple[int, int]] = frozenset()
        self._contribution: Contribution = lambda _request, _row: None

    def serve(self, number: int, units: Set[tuple[int, int]], contribution: Contribution) -> None:
        """Serve features of a round from now on; `units`: block and word of each fragment."""
        self._round, self._units, self._contribution = number, units, contribution

    def answer(self, request: wire.Header) -> None:
        """Send the requested feature, if it is of a unit of this round, in the unit's pool."""
        row = self._row.get(request.src_id)
        if row is None or request.round != self._round:
            self._counters.late += 1
            return
        served = (request.block_id, request.fragment) in self._units
        lanes = self._contribution(request, row) if served else None
        if lanes is None:
            self._counters.wrong += 1
            return
        # The row of a fetched feature is the first one of a whole frame.
        lanes = np.pad(lanes, (0, wire.lanes_of(request.fragment) - len(lanes)))
        bits = int(bits_needed(lanes[np.newaxis])[0]) if self._endpoint.narrow else WHOLE_BITS
        header = wire.Header(
            kind=wire.Kind.FEATURE,
            src_id=request.src_id,
            dst_id=request.dst_id,
            block_id=request.block_id,
            count=1,
            resend=True,
            bits=bits,
            fragment=request.fragment,
            round=request.round,
        )
        self._endpoint.send(header, pack_lanes(lanes[np.newaxis], bits).tobytes())
        self._counters.features_served += 1


_MOST_COUNT = 0xFFFF


class Notifier:
    """Reports marks to all workers in a NOTICE, at most once per round trip, and takes theirs.

    By block, a notice counts for as many of this worker's features as it sends for each sum that
    all workers get; and of each worker, at most twice its average sums in a fragment count, so that
    nobody can stop the others by claiming more.
    """

    def __init__(
        self, endpoint: Endpoint, manifest: Manifest, schedules: Sequence[BlockSchedule]
    ) -> None:
        self._endpoint = endpoint
        self._features_per_sum = [0.0] * len(schedules)
        self._most_marks: list[list[int]] = [[] for _ in schedules]
        for direction in manifest.directions.values():
            blocks, down = direction.block_numbers, direction.prediction.packets_down
            for block in blocks:
                self._most_marks[block - 1] = [-(-2 * sums // len(blocks)) for sums in down]
                if any(down):
                    sent = schedules[block - 1].frames.count * len(blocks)
                    self._features_per_sum[block - 1] = sent / sum(down)
        # By pool, the newest unit, and the marks of each worker that count in it.
        self._claimed: dict[int, tuple[wire.Unit, Counter[int]]] = {}
        self._last = float("-inf")
        self._untold = 0

    def notify(self, marked: wire.Header) -> None:
        """Report that this packet came marked, if it is a sum or a feature."""
        if marked.kind not in (wire.Kind.SUM, wire.Kind.FEATURE):
            return
        self._untold += 1
        now = self._endpoint.clock.now()
        if now - self._last < self._endpoint.round_trip.smoothed:
            return
        self._last = now
        header = wire.Header(
            kind=wire.Kind.NOTICE,
            src_id=self._endpoint.worker,
            count=min(self._untold, _MOST_COUNT),
            round=marked.round,
            block_id=marked.block_id,
            fragment=marked.fragment,
        )
        self._untold = 0
        self._endpoint.send(header)
        self._endpoint.counters.notices += 1

    def take(self, notice: wire.Header) -> None:
        """Take the report of a worker, possibly this one."""
        if not 1 <= notice.block_id <= len(self._features_per_sum):
            return
        pool = wire.pool_of(notice.fragment)
        unit, claimed = self._claimed.get(pool, (None, Counter()))
        if notice.unit != unit:
            claimed = Counter()
            self._claimed[pool] = notice.unit, claimed
        worker, most = notice.src_id, self._most_marks[notice.block_id - 1]
        count = notice.count
        if worker < len(most):
            count = min(count, most[worker] - claimed[worker])
            claimed[worker] += count
        features = count * self._features_per_sum[notice.block_id - 1]
        self._endpoint.congestion.marked(features, self._endpoint.clock.now())


_KEPT_AT_MOST = 1 << 17
Packet = tuple[wire.Header, memoryview]


class Inbox:
    """Opens the frames of a link, and keeps early packets."""

    def __init__(self, endpoint: Endpoint, responder: Responder, notifier: Notifier) -> None:
        self._session = endpoint.session & wire.SESSION_MASK
        self._counters = endpoint.counters
        self._responder = responder
        self._notifier = notifier
        self._kept: deque[tuple[wire.Header, bytes]] = deque(maxlen=_KEPT_AT_MOST)

    def open(self, frame: memoryview) -> Packet | None:
        """Return the packet in a frame; None if there is no sound one, or it was served here.

        Of other sessions only WAITING is returned: there may be a newer session.
        """
        header = wire.unpack_header(frame)
        if header is None:
            self._counters.malformed += 1
            return None
        if header.session != self._session and header.kind is not wire.Kind.WAITING:
            self._counters.foreign += 1
            return None
        if header.ecn:
            self._counters.marked += 1
            self._notifier.notify(header)
        if header.kind is wire.Kind.NOTICE:
            self._counters.noticed += 1
            self._notifier.take(header)
            return None
        if header.kind is wire.Kind.FETCH:
            self._responder.answer(header)
            return None
        return header, frame

    def keep(self, packet: Packet) -> None:
        """Keep an early packet."""
        self._kept.append((packet[0], bytes(packet[1])))

    def take_kept(self) -> list[Packet]:
        """Return the kept packets in the order of arrival, and forget them."""
        packets = [(header, memoryview(frame)) for header, frame in self._kept]
        self._kept.clear()
        return packets
