"""Collects the sums of one block and repairs losses.

1. A sum that the network lost is still in its slot; a *recall* makes the switch send it again.
   A single sum is recalled first, as most often other workers are merely slow. If it comes, packets
   get lost: the other sums are recalled, and the partial sums of the leaves. With bundles, it may
   have waited for the rest of its bundle, so only as many as a bundle has show a loss.
2. If the slot stays incomplete, a contribution was lost inside the switch. The worker *fetches* the
   features of that sum's sources from their owners, which releases the slot, and adds them itself,
   never to a part of the switch (invariant 2). A fetched feature serves every sum of this worker
   that needs it in the round, except with a cache, where contributions depend on the sum.
"""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from switchgnn.base.array_types import Int32s
from switchgnn.host.base.compression import WHOLE_BITS
from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.innetwork.schedule import BlockSchedule
from switchgnn.host.wire import header as wire
from switchgnn.host.wire.narrow import unpack_lanes

# int32[W] by vertex; or by vertex and sum, see `SumReceiver`.
Features = dict[int, Int32s]
_VERTEX_BITS = 32
_LANE_BYTES = 4


class FetchedFeatures:
    """The features that one worker has fetched in the current round (paper, section 3.4)."""

    def __init__(self) -> None:
        self._round = 0
        self._by_fragment: dict[int, Features] = {}

    def of(self, round_number: int, fragment: int) -> Features:
        """Return those of a fragment, to read and extend; those of other rounds are dropped."""
        if round_number != self._round:
            self._round, self._by_fragment = round_number, {}
        return self._by_fragment.setdefault(wire.in_pool(fragment, 0), {})


# Seconds without a change before the features of a slot are fetched raw: fetching discards the
# switch's work, and another worker may just be slow.
_STANDSTILL = 0.25
# Time-outs as shares of the elapsed time, which shows how slow the others are.
_RECALL_SHARE = 0.25
_FETCH_SHARE = 0.5
_FETCH_TIMEOUT_SHARE = 0.5
_MOST_UNANSWERED = 16
# So few sums are more likely lost than still awaited by the switch, and are asked for together.
_FEW = 4
# From this share of the standstill before a fetch on, many are asked for at once.
_EARNEST_SHARE = 0.25
# A feature owed for less than this share of the longest time is not late.
_LATE_SHARE = 0.5
# States of a sum: received; awaited; awaited, but not to be taken by a fast path.
HERE, AWAITED, IN_DOUBT = 0, 1, 2


@dataclass
class _Doubt:
    count: int = -1
    since: float = 0.0
    awaited: set[int] = field(default_factory=set)
    fetching: bool = False
    unanswered: int = 0


class SumReceiver:
    """Receives the sums of one fragment of one block; the fast path may take those without repair.

    All times are in seconds of the endpoint's clock; `began`: when the fragment was begun.
    `awaited`: uint8[Q], the state of each sum. `payloads`: uint8[Q · 4 W], the sums as received.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        schedule: BlockSchedule,
        *,
        unit: wire.Unit,
        began: float,
        fetched: Features | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._schedule = schedule
        self._unit = unit
        self._round_trip = endpoint.round_trip
        self._counters = endpoint.counters
        awaited = len(schedule.receive_vertex)
        self._lanes = wire.lanes_of(unit.fragment) // schedule.rows
        self.payloads = np.zeros(_LANE_BYTES * self._lanes * awaited, dtype=np.uint8)
        self._sums = self.payloads.view(">i4").reshape(awaited, self._lanes)
        self.awaited = np.full(awaited, AWAITED, dtype=np.uint8)
        # Access to elements is faster through a view.
        self._awaited = self.awaited.data
        self._left = awaited
        # The order of questions, empty until a sum is late; how many may be asked this time.
        self._turns: deque[int] = deque()
        self._late = 0
        self._doubts: dict[int, _Doubt] = {}
        self._features: Features = {} if fetched is None else fetched
        self._wanted: dict[int, set[int]] = {}
        self._asked_at: dict[int, float] = {}
        self._heard_at: dict[int, float] = {}
        self._attempts = 0
        self._in_vain = False
        # Questions about sums that others were still working on.
        self._too_early = 0
        # When each sum was recalled, if only once.
        self._recalled_at: dict[int, float] = {}
        self._unanswered: set[int] = set()
        self._lossy = False
        # Sums that came on request since one came by itself.
        self._recalled = 0
        self._quiet_since = 0.0
        # When the last sum came by itself; the longest time between two.
        self._came_at = self._gap = 0.0
        self._began = began
        self._grew_at = began

    def begin_again(self, now: float) -> None:
        """Restart all timers: nothing could be late before now."""
        self._began = self._grew_at = self._quiet_since = now

    @property
    def done(self) -> bool:
        """Whether all sums have arrived."""
        return not self._left

    @property
    def share(self) -> float:
        """The share of the sums that have arrived."""
        return 1 - self._left / max(1, len(self._awaited))

    @property
    def missing_vertices(self) -> list[int]:
        """The vertices whose sums are missing."""
        vertices: list[int] = self._schedule.receive_vertex[self.awaited > 0].tolist()
        return vertices

    @property
    def silent_workers(self) -> list[int]:
        """The workers that probably do not answer fetches.

        Excluded are workers that were asked only lately, and those that have answered a later
        question. If none remain, all that owe a feature are named.
        """
        owners, now = self._schedule.neighbour_owner, self._endpoint.clock.now()
        oldest: dict[int, float] = {}
        for key, asked in self._asked_at.items():
            owner = owners[_source_of(key)]
            oldest[owner] = min(asked, oldest.get(owner, asked))
        late = _LATE_SHARE * max((now - asked for asked in oldest.values()), default=0.0)
        silent = [
            owner
            for owner, asked in oldest.items()
            if now - asked >= late and self._heard_at.get(owner, asked) <= asked
        ]
        return sorted(silent or oldest)

    def sums(self) -> Int32s:
        """Return int32[Q, W], one sum per awaited vertex."""
        return self._sums.astype(np.int32)

    def took(self, sums: int, now: float) -> bool:
        """Count sums that a fast path has taken; return whether there are any."""
        if sums:
            self._left -= sums
            self._counters.sums_received += sums
            self._attempts, self._in_vain, self._recalled = 0, False, 0
            self._quiet_since = self._grew_at = now
            self._came(now)
        return sums > 0

    def _came(self, now: float) -> None:
        self._gap = max(self._gap, now - (self._came_at or now))
        self._came_at = now

    def take_sum(self, header: wire.Header, frame: memoryview, now: float) -> bool:
        """Take a sum of the switch; return whether it is news."""
        if self._schedule.rows > 1:
            return self._take_bundle(header, frame, now)
        index = self._schedule.receive_index.get(header.dst_id)
        if index is None or header.count != self._schedule.receive_count[index]:
            self._counters.wrong += 1
            return False
        return self._take_row(index, header, self._rows_of(header, frame)[0], now)

    def _take_bundle(self, header: wire.Header, frame: memoryview, now: float) -> bool:
        places = np.full(wire.PLACES, wire.NO_PLACE)
        if header.dst_id >= wire.SUM_BUNDLES:
            places = np.frombuffer(frame, dtype=">u2", count=wire.PLACES, offset=wire.BODY_AT)
        named = np.flatnonzero(places != wire.NO_PLACE)
        fits = len(named) and named[-1] < self._schedule.rows
        if not fits or places[named].max() >= len(self._awaited):
            self._counters.wrong += 1
            return False
        rows = self._rows_of(header, frame)
        news = [self._take_row(int(places[at]), header, rows[at], now) for at in named.tolist()]
        return any(news)

    def _take_row(self, index: int, header: wire.Header, lanes: Int32s, now: float) -> bool:
        if header.is_fetch:
            self._note_answer(index)
            if recalled := self._recalled_at.pop(index, 0.0):
                self._endpoint.sum_trip.measured(now - recalled)
        if not self._awaited[index]:
            self._counters.repeated += 1
            return False
        if index in self._doubts:
            self._counters.sums_recalled += 1
        self._counters.sums_received += 1
        self._finish(index, lanes, now)
        if header.is_fetch:
            self._recalled += 1
            self._lossy |= self._recalled >= self._schedule.rows
            self._too_early = 0
            most = _MOST_UNANSWERED if self._lossy else self._schedule.rows
            self._ask_some(most - len(self._unanswered))
        else:
            self._recalled, self._grew_at = 0, now
            self._came(now)
        return True

    def take_missing(self, header: wire.Header, now: float) -> bool:
        """Take the answer that a sum is incomplete; return whether it has grown."""
        index = self._schedule.receive_index.get(header.dst_id)
        if index is None:
            return False
        # Once for all that were asked for together.
        self._too_early += self._in_vain
        self._note_answer(index)
        self._recalled_at.pop(index, None)
        if not self._awaited[index]:
            return False
        self._attempts = self._round_trip.answered(self._attempts)
        doubt = self._doubt(index)
        if doubt.fetching:
            return False
        if doubt.count != header.count:
            if doubt.count >= 0:
                self._grew_at = now
            doubt.count, doubt.since = header.count, now
            return True
        # While sums still grow, the others are slow, and fetching would slow them down further.
        if now - max(doubt.since, self._grew_at) > self._standstill(now):
            self._start_fetching(index, doubt)
        return False

    def _standstill(self, now: float) -> float:
        """Return the seconds without a change that show a contribution lost in the switch."""
        share = _FETCH_SHARE * (now - self._began)
        standstill = max(_STANDSTILL, 8 * self._round_trip.timeout, share)
        # Fetch before the timeout.
        return min(standstill, _FETCH_TIMEOUT_SHARE * self._endpoint.pace.timeout)

    def take_feature(self, header: wire.Header, frame: memoryview, now: float) -> bool:
        """Take a fetched feature; return whether it is news."""
        if not header.resend:
            self._counters.ignored += 1
            return False
        source, owners = header.src_id, self._schedule.neighbour_owner
        if source in owners:
            self._heard_at[owners[source]] = now
        key = self._key(source, self._schedule.receive_index.get(header.dst_id, 0))
        if key not in self._wanted:
            self._counters.repeated += 1
            # Its worker is alive and may owe others.
            return any(owners[_source_of(owed)] == owners.get(source) for owed in self._asked_at)
        self._counters.features_fetched += 1
        # The features that are still awaited were asked for at the same time: overdue soon.
        self._attempts = 0
        self._quiet_since = now
        self._keep_feature(key, self._rows_of(header, frame)[0], now)
        return True

    def _key(self, source: int, index: int) -> int:
        """Return the key of a fetched feature: its vertex, and its sum if that matters."""
        return index << _VERTEX_BITS | source if self._endpoint.per_sum else source

    def _rows_of(self, header: wire.Header, frame: memoryview) -> Int32s:
        size = wire.payload_bytes(self._unit.fragment, header.bits)
        begin = wire.BODY_AT + wire.places_bytes(header)
        body = np.frombuffer(frame, dtype=np.uint8, count=size, offset=begin)
        lanes = self._lanes * self._schedule.rows
        numbers = unpack_lanes(body.reshape(1, size), lanes, header.bits)
        return numbers.reshape(self._schedule.rows, self._lanes)

    def _keep_feature(self, key: int, lanes: Int32s, now: float) -> None:
        self._features[key] = lanes
        self._asked_at.pop(key, None)
        for index in self._wanted.pop(key, ()):
            # None: the sum has come meanwhile.
            if (doubt := self._doubts.get(index)) is None:
                continue
            doubt.awaited.discard(key)
            if not doubt.awaited:
                self._add_up(index, now)

    def ask_for_what_is_late(self, now: float) -> bool:
        """Recall or fetch if nothing has come for a while; return whether that was so."""
        if self._quiet_since == 0.0:
            self._quiet_since = now
        if not self._left or now - self._quiet_since < self._silence(now):
            return False
        self._attempts += 1
        self._quiet_since = now
        turns = self._turns or range(len(self._awaited))
        self._turns = deque(index for index in turns if self._awaited[index])
        # How often one is asked about until an answer comes shows how many get lost.
        self._turns.rotate(self._in_vain)
        self._in_vain = True
        self._late = len(self._turns)
        self._unanswered.clear()
        still = now - self._grew_at > _EARNEST_SHARE * self._standstill(now)
        few = self._attempts == 1 and self._left <= max(_FEW, self._schedule.rows)
        self._ask_some(_MOST_UNANSWERED if self._lossy or still or few else 1)
        return True

    def _ask_some(self, most: int) -> None:
        asked = 0
        while asked < most and self._late:
            self._late -= 1
            index = self._turns.popleft()
            if self._awaited[index]:
                self._turns.append(index)
                asked += self._ask(index)

    def next_timer(self, now: float) -> float:
        """Return the seconds until something is overdue."""
        return max(0.0, self._quiet_since + self._silence(now) - now)

    def _silence(self, now: float) -> float:
        # The first question waits for slow workers. A fetch goes on to the owner of the feature.
        legs = 2 if self._wanted else int(self._in_vain)
        share = min(self._round_trip.longest(legs), _RECALL_SHARE * (now - self._began))
        # A lost sum is noticed at once; only answers show that others are slow.
        share = min(share, self._round_trip.probe(self._too_early, legs))
        sum_trip = self._endpoint.sum_trip
        queue = sum_trip.probe() if sum_trip.known else 0.0
        wait = self._round_trip.backed_off if self._wanted else self._round_trip.probe
        usual = max(share, queue, wait(self._attempts, legs))
        if self._attempts or self._too_early or not self._came_at:
            return usual
        # Sums came one after another, and now none for twice as long as ever.
        return min(usual, max(queue, self._round_trip.least, 2 * self._gap))

    def _ask(self, index: int) -> int:
        doubt = self._doubt(index)
        vertex = int(self._schedule.receive_vertex[index])
        if not doubt.fetching:
            self._send(wire.Kind.RECALL, 0, vertex, resend=self._lossy or self._attempts > 1)
            self._unanswered.add(index)
            now = self._endpoint.clock.now()
            self._recalled_at[index] = 0.0 if index in self._recalled_at else now
            doubt.unanswered += 1
            self._counters.recalls += 1
            return 1
        for key in doubt.awaited:
            self._send(wire.Kind.FETCH, _source_of(key), vertex)
        self._counters.fetches += len(doubt.awaited)
        return len(doubt.awaited)

    def _doubt(self, index: int) -> _Doubt:
        self._awaited[index] = IN_DOUBT
        return self._doubts.setdefault(index, _Doubt())

    def _note_answer(self, index: int) -> None:
        """Count how many recalls an answer took; further answers were late, not lost."""
        self._in_vain = False
        doubt = self._doubts.get(index, _Doubt())
        self._round_trip.took(max(1, doubt.unanswered))
        doubt.unanswered = 0

    def _start_fetching(self, index: int, doubt: _Doubt) -> None:
        doubt.fetching = True
        vertex = int(self._schedule.receive_vertex[index])
        neighbours = self._schedule.neighbours_of(index)
        to_fetch = []
        for source in neighbours:
            key = self._key(source, index)
            if key in self._features:
                continue
            doubt.awaited.add(key)
            if key not in self._wanted:
                to_fetch.append(source)
            self._wanted.setdefault(key, set()).add(index)
            self._asked_at.setdefault(key, self._endpoint.clock.now())
        # If all are here or awaited for another sum, one fetch still has to release the slot.
        for source in to_fetch or neighbours[:1]:
            self._send(wire.Kind.FETCH, source, vertex)
            self._counters.fetches += 1
        if not doubt.awaited:
            self._add_up(index, doubt.since)

    def _add_up(self, index: int, now: float) -> None:
        neighbours = self._schedule.neighbours_of(index)
        rows = np.stack([self._features[self._key(each, index)] for each in neighbours])
        total = wire.combine_of(self._unit.fragment).reduce(rows.view(np.uint32), dtype=np.uint32)
        self._counters.sums_made += 1
        self._finish(index, total.view(np.int32), now)

    def _finish(self, index: int, lanes: Int32s, now: float) -> None:
        self._sums[index] = lanes
        self._awaited[index] = HERE
        self._left -= 1
        self._unanswered.discard(index)
        self._doubts.pop(index, None)
        self._attempts, self._in_vain = 0, False
        self._quiet_since = now

    def _send(self, kind: wire.Kind, source: int, vertex: int, *, resend: bool = False) -> None:
        header = wire.Header(
            kind=kind,
            src_id=source,
            dst_id=vertex,
            block_id=self._unit.block,
            fragment=self._unit.fragment,
            round=self._unit.round,
            is_fetch=True,
            resend=resend,
            bits=0 if self._endpoint.narrow and kind is wire.Kind.RECALL else WHOLE_BITS,
        )
        self._endpoint.send(header)


def _source_of(key: int) -> int:
    return key & (1 << _VERTEX_BITS) - 1
