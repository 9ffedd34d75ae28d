# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Collects the sums of one block, and gets those that do not come by themselves.

Three steps, each only when the one before did not help:

1. A sum that the network lost is still in its slot: a *recall* makes the switch
   send it again. One is recalled first, and most often it turns out that others are slow.
   If a sum comes on request, packets get lost: the others follow, and partial sums of the
   leaves are asked for as well.
2. If the slot is not complete, and stays as it is, a contribution was lost inside
   the switch. The worker *fetches* the features of that sum's sources from their
   owners, which releases the slot, and adds them itself.
3. A feature that was fetched serves every sum of this worker that needs it, also in later
   blocks of the round.

A sum is either one result of the switch with the expected count, or the worker's
own sum of all raw features: never a mixture (invariant 2).
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.innetwork.schedule import BlockSchedule
from switchgnn.host.wire.batches import FrameBatch
from switchgnn.host.wire.header import BODY_AT, Header, Kind, lanes_of, payload_bytes
from switchgnn.host.wire.native import Sifted, SumSieve, native_frames

# int32[32] by vertex.
Features = dict[int, NDArray[np.int32]]


class FetchedFeatures:
    """What one worker has fetched in the round that is under way (paper, section 3.4)."""

    def __init__(self) -> None:
        self._round = 0
        self._by_fragment: dict[int, Features] = {}

    def of(self, round_number: int, fragment: int) -> Features:
        """Return those of a fragment, to look at and to add to.

        Those of other rounds are forgotten, so no more are held than one round has.
        """
        if round_number != self._round:
            self._round, self._by_fragment = round_number, {}
        return self._by_fragment.setdefault(fragment, {})


# For how many seconds a slot must have stood still before its features are fetched raw:
# fetching gives the switch's work up, and a slow worker is no lost packet.
_STANDSTILL = 0.25
# How slow the others are shows in the time that has passed. A worker that asks in shares of it
# asks a number of times that grows with its logarithm, and is late by that share at most.
_RECALL_SHARE = 0.25
_FETCH_SHARE = 0.5
_FETCH_PATIENCE = 0.5
# Questions without an answer, at most.
_AT_ONCE = 16
# How many more sums are asked for when one comes on request.
_NEXT = 2
# Who owes a feature for so much shorter than another one is not late.
_LATE_SHARE = 0.5
# What a sum may be: here; awaited; and awaited, but a sieve must not take it.
HERE, AWAITED, IN_DOUBT = 0, 1, 2


@dataclass
class _Doubt:
    """What is known of a sum that was recalled."""

    count: int = -1
    since: float = 0.0
    awaited: set[int] = field(default_factory=set)
    fetching: bool = False
    unanswered: int = 0


class SumReceiver:
    """The sums of one fragment of one block, as they come in.

    Most are plainly right, and a sieve may put them into their places.

    `began`: when the fragment was begun, in seconds of the endpoint's clock.

    Attributes:
        awaited: uint8[Q], what each sum is: HERE, AWAITED or IN_DOUBT.
        payloads: uint8[Q · 4 W], the sums as they came.
    """

    _awaits = AWAITED

    def __init__(
        self,
        endpoint: Endpoint,
        schedule: BlockSchedule,
        *,
        place: tuple[int, int, int],
        began: float,
        fetched: Features | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._schedule = schedule
        self._place = place
        self._round_trip = endpoint.round_trip
        self._tally = endpoint.tally
        awaited = len(schedule.receive_vertex)
        self._lanes = lanes_of(place[2])
        self._bytes = payload_bytes(place[2])
        self.payloads = np.zeros(self._bytes * awaited, dtype=np.uint8)
        self.awaited = np.full(awaited, self._awaits, dtype=np.uint8)
        # One element of an array costs more than one of a view.
        self._staging, self._awaited = self.payloads.data, self.awaited.data
        self._left = awaited
        # In which order they are asked for; empty before anything is late.
        self._turns: dict[int, None] = {}
        self._doubts: dict[int, _Doubt] = {}
        self._features: Features = {} if fetched is None else fetched
        self._wanted: dict[int, set[int]] = {}
        # When each of these was asked for first.
        self._asked_at: dict[int, float] = {}
        # When each worker has answered a fetch last.
        self._heard_at: dict[int, float] = {}
        self._attempts = 0
        # Whether the last question has no answer yet.
        self._in_vain = False
        self._late: deque[int] = deque()
        self._unanswered: set[int] = set()
        self._lossy = False
        self._marked = False
        self._quiet_since = 0.0
        self._began = began
        self._grew_at = began

    def begin_again(self, now: float) -> None:
        """Count all times from now on: before, nothing could be late."""
        self._began = self._grew_at = self._quiet_since = now

    @property
    def done(self) -> bool:
        """Whether all sums are here."""
        return not self._left

    @property
    def share(self) -> float:
        """The share of the sums that are here."""
        return 1 - self._left / max(1, len(self._awaited))

    @property
    def missing_vertices(self) -> list[int]:
        """The vertices whose sums are not here."""
        vertices: list[int] = self._schedule.receive_vertex[self.awaited > 0].tolist()
        return vertices

    @property
    def silent_workers(self) -> list[int]:
        """The workers that owe features which were fetched, and seem to be why they do not come.

        Where one does not answer, others that were asked only lately may be about to; and of one
        that has answered later questions a packet was lost. If that leaves nobody, all that owe
        one are named.
        """
        owners, now = self._schedule.neighbour_owner, self._endpoint.clock.now()
        oldest: dict[int, float] = {}
        for source, asked in self._asked_at.items():
            owner = owners[source]
            oldest[owner] = min(asked, oldest.get(owner, asked))
        late = _LATE_SHARE * max((now - asked for asked in oldest.values()), default=0.0)
        silent = [
            owner
            for owner, asked in oldest.items()
            if now - asked >= late and self._heard_at.get(owner, asked) <= asked
        ]
        return sorted(silent or oldest)

    def sums(self) -> NDArray[np.int32]:
        """Return int32[Q, W], one sum per awaited vertex."""
        return self.payloads.view(">i4").reshape(-1, self._lanes).astype(np.int32)

    def took(self, sums: int, now: float) -> bool:
        """Take note of sums that a sieve has put into their places; tell whether there are any.

        `now`: the time, in seconds of the endpoint's clock.
        """
        if sums:
            self._left -= sums
            self._tally.sums_received += sums
            self._attempts, self._in_vain = 0, False
            self._quiet_since = self._grew_at = now
        return sums > 0

    def take_sum(self, header: Header, frame: memoryview, now: float) -> bool:
        """Take a sum of the switch.

        `now`: the time, in seconds of the endpoint's clock. Returns whether it is news.
        """
        place = self._schedule.receive_place.get(header.dst_id)
        if place is None or header.count != self._schedule.receive_count[place]:
            self._tally.wrong += 1
            return False
        if header.is_fetch:
            self._note_answer(place)
        if not self._awaited[place]:
            self._tally.repeated += 1
            return False
        if place in self._doubts:
            self._tally.sums_recalled += 1
        self._tally.sums_received += 1
        self._finish(place, frame[BODY_AT : BODY_AT + self._bytes], now)
        if header.is_fetch:
            self._lossy = True
            self._ask_some(min(_NEXT, _AT_ONCE - len(self._unanswered)))
        else:
            self._grew_at = now
        return True

    def take_overflow(self, header: Header, frame: memoryview, now: float) -> bool:
        """Take a feature that found no slot, which only the strawman's switch sends.

        `now`: the time, in seconds of the endpoint's clock. Returns whether it is news.
        """
        self._tally.ignored += 1
        return False

    def take_missing(self, header: Header, now: float) -> bool:
        """Take the switch's word that a sum is not complete; tell whether it has grown."""
        place = self._schedule.receive_place.get(header.dst_id)
        if place is None:
            return False
        self._note_answer(place)
        if not self._awaited[place]:
            return False
        self._attempts = self._round_trip.answered(self._attempts)
        doubt = self._doubt(place)
        if doubt.fetching:
            return False
        if doubt.count != header.count:
            if doubt.count >= 0:
                self._grew_at = now
            doubt.count, doubt.since = header.count, now
            return True
        share = _FETCH_SHARE * (now - self._began)
        standstill = max(_STANDSTILL, 8 * self._round_trip.timeout, share)
        # After its patience the worker would give up in place of fetching.
        standstill = min(standstill, _FETCH_PATIENCE * self._endpoint.pace.patience)
        # While sums still grow, the others are slow, and fetching would make them slower.
        if now - max(doubt.since, self._grew_at) > standstill:
            self._start_fetching(place, doubt)
        return False

    def take_feature(self, header: Header, frame: memoryview, now: float) -> bool:
        """Take a fetched feature.

        `now`: the time, in seconds of the endpoint's clock. Returns whether it is news.
        """
        source, owners = header.src_id, self._schedule.neighbour_owner
        if source in owners:
            self._heard_at[owners[source]] = now
        if source not in self._wanted:
            self._tally.repeated += 1
            # It shows that its worker is alive, which may owe others.
            return any(owners[owed] == owners.get(source) for owed in self._asked_at)
        self._tally.features_fetched += 1
        # What is still awaited was asked for at the same time, so it is overdue soon.
        self._attempts = 0
        self._quiet_since = now
        lanes = np.frombuffer(frame, dtype=">i4", count=self._lanes, offset=BODY_AT)
        self._keep_feature(source, lanes.astype(np.int32), now)
        return True

    def _keep_feature(self, source: int, lanes: NDArray[np.int32], now: float) -> None:
        """Keep a raw feature, and add up the sums that waited for it last."""
        self._features[source] = lanes
        self._asked_at.pop(source, None)
        for place in self._wanted.pop(source, ()):
            doubt = self._doubts.get(place)
            if doubt is None or not self._awaited[place]:
                continue
            doubt.awaited.discard(source)
            if not doubt.awaited:
                self._add_up(place, now)

    def note_mark(self) -> None:
        """Note that the queue to this worker was long.

        What does not come is then lost there rather than late, and the shortest time-out, which is
        for software that is slow, does not hold.
        """
        self._marked = self._endpoint.pace.congestion_control

    def ask_for_what_is_late(self, now: float) -> bool:
        """Recall or fetch when nothing has come for a while; tell whether it was so."""
        if self._quiet_since == 0.0:
            self._quiet_since = now
        if not self._left or now - self._quiet_since < self._patience(now):
            return False
        self._attempts += 1
        self._in_vain = True
        self._quiet_since = now
        turns = self._turns or range(len(self._awaited))
        self._turns = dict.fromkeys(place for place in turns if self._awaited[place])
        self._late = deque(self._turns)
        self._unanswered.clear()
        self._ask_some(_AT_ONCE if self._in_earnest else 1)
        return True

    @property
    def _in_earnest(self) -> bool:
        """Whether more is known than that nothing has come for a while."""
        return self._lossy or self._attempts > 1

    def _ask_some(self, most: int) -> None:
        """Ask for what is late, with ``most`` questions or a few more."""
        asked = 0
        while asked < most and self._late:
            place = self._late.popleft()
            if not self._awaited[place]:
                continue
            # To the end of the queue: the next time others have their turn.
            self._turns.pop(place)
            self._turns[place] = None
            asked += self._ask(place)

    def next_timer(self, now: float) -> float:
        """Return the seconds until something is overdue."""
        return max(0.0, self._quiet_since + self._patience(now) - now)

    def _patience(self, now: float) -> float:
        # The first question waits for those that are slow. A fetch passes on to the owner of a
        # feature, and its answer back.
        legs = 2 if self._wanted else int(self._in_vain)
        share = min(self._round_trip.longest(legs), _RECALL_SHARE * (now - self._began))
        bounded = not self._marked
        return max(share, self._round_trip.backed_off(self._attempts, bounded=bounded, legs=legs))

    def _ask(self, place: int) -> int:
        doubt = self._doubt(place)
        vertex = int(self._schedule.receive_vertex[place])
        if not doubt.fetching:
            self._send(Kind.RECALL, 0, vertex, resend=self._in_earnest)
            self._unanswered.add(place)
            doubt.unanswered += 1
            self._tally.recalls += 1
            return 1
        for source in doubt.awaited:
            self._send(Kind.FETCH, source, vertex)
        self._tally.fetches += len(doubt.awaited)
        return len(doubt.awaited)

    def _fetch_all(self, place: int, now: float) -> bool:
        """Fetch the features of a sum, unless that is under way; tell whether it was not."""
        doubt = self._doubt(place)
        if doubt.fetching:
            return False
        doubt.since = now
        self._start_fetching(place, doubt)
        return True

    def _doubt(self, place: int) -> _Doubt:
        """Return what is known of a sum that does not come by itself."""
        self._awaited[place] = IN_DOUBT
        return self._doubts.setdefault(place, _Doubt())

    def _note_answer(self, place: int) -> None:
        """Learn from the answer to a recall how many it took.

        One that was answered already was not lost, but slow.
        """
        self._in_vain = False
        doubt = self._doubts.get(place, _Doubt())
        self._round_trip.took(max(1, doubt.unanswered))
        doubt.unanswered = 0

    def _start_fetching(self, place: int, doubt: _Doubt) -> None:
        doubt.fetching = True
        vertex = int(self._schedule.receive_vertex[place])
        neighbours = self._schedule.neighbours_of(place)
        released = False
        for source in neighbours:
            if source in self._features:
                continue
            doubt.awaited.add(source)
            asked = source in self._wanted
            self._wanted.setdefault(source, set()).add(place)
            self._asked_at.setdefault(source, self._endpoint.clock.now())
            if not asked:
                self._send(Kind.FETCH, source, vertex)
                self._tally.fetches += 1
                released = True
        if not released:
            # All are here or on their way for another sum, but the slot must go.
            self._send(Kind.FETCH, neighbours[0], vertex)
            self._tally.fetches += 1
        if not doubt.awaited:
            self._add_up(place, doubt.since)

    def _add_up(self, place: int, now: float) -> None:
        total = np.zeros(self._lanes, dtype=np.int32)
        for source in self._schedule.neighbours_of(place):
            total += self._features[source]
        self._tally.sums_made += 1
        self._finish(place, memoryview(total.astype(">i4").tobytes()), now)

    def _finish(self, place: int, lanes: memoryview, now: float) -> None:
        at = place * self._bytes
        self._staging[at : at + self._bytes] = lanes
        self._awaited[place] = HERE
        self._left -= 1
        self._unanswered.discard(place)
        self._doubts.pop(place, None)
        self._attempts, self._in_vain = 0, False
        self._quiet_since = now

    def _send(self, kind: Kind, source: int, vertex: int, *, resend: bool = False) -> None:
        round_number, block_id, fragment = self._place
        header = Header(
            kind=kind,
            src_id=source,
            dst_id=vertex,
            block_id=block_id,
            fragment=fragment,
            round=round_number,
            is_fetch=True,
            resend=resend,
        )
        self._endpoint.send(header)


def sieves(schedules: Sequence[BlockSchedule]) -> tuple[SumSieve | None, ...]:
    """Return a sieve for each block; None where there is no native code."""
    frames = native_frames()
    if frames is None:
        return (None,) * len(schedules)
    return tuple(
        SumSieve(frames, each.receive_vertex, np.array(each.receive_count, dtype=np.uint32))
        for each in schedules
    )


def sift(sieve: SumSieve | None, batch: FrameBatch) -> Sifted:
    """Take what can be taken of a batch; without a sieve all of it is left."""
    return sieve.sift(batch) if sieve else Sifted(0, (), range(batch.first, batch.count))
