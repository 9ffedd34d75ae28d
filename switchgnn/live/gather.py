# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Collects reports of workers and switches into snapshots."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from switchgnn.base.clock import SYSTEM_CLOCK, Clock
from switchgnn.controller.controls.outcome import Outcome
from switchgnn.controller.counters import SlotsInUse
from switchgnn.controller.metrics import Reading
from switchgnn.live.snapshot import (
    ChartPoint,
    Ending,
    Epoch,
    LinkNow,
    PageSnapshot,
    Picture,
    QueueNow,
    SwitchNow,
    WorkerNow,
    WorkerState,
)

_Value = TypeVar("_Value")


class ThinnedSeries(Generic[_Value]):
    """At most `most` (two or more) values of a run, evenly thinned out, with the newest."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[_Value] = []
        self._newest: _Value | None = None
        self._stride = 1
        self._count = 0

    def add(self, value: _Value) -> None:
        """Add the next value."""
        if self._count % self._stride == 0:
            self._kept.append(value)
            if len(self._kept) >= self._most:
                self._kept = self._kept[::2]
                self._stride *= 2
        self._count += 1
        self._newest = value

    def values(self) -> tuple[_Value, ...]:
        """Return the kept values, oldest first."""
        newest = self._newest
        if newest is None or self._kept[-1] is newest:
            return tuple(self._kept)
        return (*self._kept, newest)


# Seconds between two polls.
EVERY = 0.5
# Share of an interval from which a worker counts as waiting: in any case, and if another worker
# has waited at most half as long.
_WAITS = 0.75
_WAITS_FOR_ONE = 0.35
# Intervals without a report after which a worker is silent.
_SILENT = 4
_MOST_POINTS = 240
_LEAST_POINTS = 40
# Numbers in the points of an event, at most.
_MOST_NUMBERS = 8_000
_PROGRESS = ("sums_received_total", "features_sent_total", "blocks_total", "features_fetched_total")
_REPAIRS = ("recalls_total", "fetches_total", "features_resent_total")

Values = Mapping[str, float]


@dataclass(frozen=True)
class LinkSeen:
    """A link as observed from outside; see `LinkNow`. Workers report their own bytes and losses."""

    bytes_up: int | None = None
    bytes_down: int | None = None
    lost: int | None = None
    waiting_up: int | None = None
    waiting_down: int | None = None


@dataclass
class _Told:
    """The last two reports of a worker."""

    at: float
    values: Values
    before_at: float
    before: Values
    begun: bool = False
    asked_in_vain: bool = False

    def grown(self, name: str) -> float:
        """Return the growth of a counter between the reports."""
        return self.values.get(name, 0.0) - self.before.get(name, 0.0)

    def rate(self, name: str) -> float:
        """Return the growth of a counter per second."""
        seconds = self.at - self.before_at
        return max(0.0, self.grown(name)) / seconds if seconds > 0 else 0.0


@dataclass
class _Network:
    """The state of one network, from its beginning to its end."""

    picture: Picture
    told: list[_Told]
    points: ThinnedSeries[ChartPoint]
    switches: list[SwitchNow]
    queues: list[Sequence[int]]
    links: list[LinkSeen] = field(default_factory=list)
    cables: list[LinkNow] = field(default_factory=list)
    cables_at: float = 0.0
    finished: bool = False


class Gathering:
    """The state of a run, shared by threads.

    Args:
        title: of the page.
        epochs: planned epochs; 0 if it is not a training.
        clock: replaceable in tests.
    """

    def __init__(self, title: str, epochs: int = 0, clock: Clock = SYSTEM_CLOCK) -> None:
        self._title = title
        self._asked = epochs
        self._clock = clock
        self._lock = threading.Lock()
        self._began = clock.now()
        self._number = 0
        self._step = ""
        self._network: _Network | None = None
        self._epochs: ThinnedSeries[Epoch] = ThinnedSeries(_MOST_POINTS)
        self._ended: Ending | None = None

    def step(self, name: str) -> bool:
        """Set the current step; return whether it changed."""
        with self._lock:
            before, self._step = self._step, name
            return name != before

    def begin(self, picture: Picture, *, at_zero: bool = False) -> None:
        """Begin with a network and no epochs; `at_zero` restarts the time."""
        now = self._clock.now()
        workers = len(picture.workers)
        most = max(_LEAST_POINTS, min(_MOST_POINTS, _MOST_NUMBERS // max(1, workers)))
        with self._lock:
            if at_zero:
                self._began = now
            self._epochs = ThinnedSeries(_MOST_POINTS)
            self._network = _Network(
                picture,
                [_Told(now, {}, now, {}) for _ in picture.workers],
                ThinnedSeries(most),
                [SwitchNow() for _ in picture.switches],
                [() for _ in picture.switches],
                cables=[LinkNow() for _ in picture.cables],
                cables_at=now,
            )

    def worker(self, worker: int, values: Values) -> None:
        """Record a worker's metrics, by the names of `metric_values`."""
        now = self._clock.now()
        with self._lock:
            if self._network is not None and worker < len(self._network.told):
                old = self._network.told[worker]
                self._network.told[worker] = _Told(now, values, old.at, old.values, begun=True)

    def no_answer(self, worker: int) -> None:
        """Record that a worker did not answer."""
        with self._lock:
            if self._network is not None and worker < len(self._network.told):
                self._network.told[worker].asked_in_vain = True

    def epoch(self, epoch: Epoch) -> None:
        """Record a finished epoch of a training."""
        with self._lock:
            self._epochs.add(epoch)
            self._step = f"training: {epoch.epoch} of {self._asked} epochs done"

    def switches(
        self, readings: Sequence[Reading | None], slots: Sequence[SlotsInUse | None]
    ) -> None:
        """Record readings of all switches in the order of the picture, None without an answer."""
        for place, (reading, used) in enumerate(zip(readings, slots, strict=True)):
            self.switch(place, reading, used)

    def switch(
        self,
        place: int,
        reading: Reading | None,
        used: SlotsInUse | None = None,
        *,
        up: bool = False,
    ) -> None:
        """Record one switch; `up`: it answers, even if there is no reading (no program)."""
        with self._lock:
            network = self._network
            if network is None or place >= len(network.switches):
                return
            if reading is None:
                network.switches[place] = SwitchNow(up=up)
            else:
                network.switches[place] = _switch_now(reading, used, network.queues[place])
                network.queues[place] = reading.counters.port_queue

    def links(self, workers: Sequence[LinkSeen], cables: Sequence[LinkSeen]) -> None:
        """Record observations of links in the order of the picture."""
        now = self._clock.now()
        with self._lock:
            if self._network is None:
                return
            self._network.links = list(workers)
            seconds = now - self._network.cables_at
            self._network.cables = [
                _cable_now(seen, before, seconds)
                for seen, before in zip(cables, self._network.cables, strict=True)
            ]
            self._network.cables_at = now

    def finish(self) -> None:
        """Record that all workers have finished."""
        with self._lock:
            if self._network is not None:
                self._network.finished = True

    def end(self, ending: Ending) -> None:
        """Record the end of the run; the first call counts."""
        with self._lock:
            self._ended = self._ended or ending

    def snapshot(self) -> PageSnapshot:
        """Return the current state."""
        now = self._clock.now()
        with self._lock:
            self._number += 1
            seconds = now - self._began
            network = self._network
            workers = () if network is None else _workers_now(network, now)
            if network is not None and self._ended is None:
                network.points.add(_point(network, workers, seconds))
            return PageSnapshot(
                number=self._number,
                seconds=seconds,
                title=self._title,
                step=self._step,
                picture=None if network is None else network.picture,
                workers=workers,
                switches=() if network is None else tuple(network.switches),
                cables=() if network is None else tuple(network.cables),
                points=() if network is None else network.points.values(),
                epochs=self._epochs.values(),
                epochs_asked=self._asked,
                ended=self._ended,
            )


def _workers_now(network: _Network, now: float) -> tuple[WorkerNow, ...]:
    found = []
    shares = [min(1.0, told.rate("barrier_seconds_total")) for told in network.told]
    least = min(shares, default=0.0)
    for worker, (told, waited) in enumerate(zip(network.told, shares, strict=True)):
        seen = network.links[worker] if worker < len(network.links) else LinkSeen()
        values = told.values
        waits = waited >= _WAITS or (waited >= _WAITS_FOR_ONE and least <= waited / 2)
        state = _state(network, worker, now, waits=waits)
        # Its last report is out of date.
        still = state in (WorkerState.FINISHED, WorkerState.SILENT)
        found.append(
            WorkerNow(
                state=state,
                waited=waited,
                rounds=_whole(values, "rounds_total"),
                blocks=_whole(values, "blocks_total"),
                window=values.get("window_features"),
                recalls=_whole(values, "recalls_total"),
                fetches=_whole(values, "fetches_total"),
                resent=_whole(values, "features_resent_total"),
                repairing=not still and any(told.grown(name) > 0 for name in _REPAIRS),
                link=LinkNow(
                    bytes_up=_whole(values, "link_bytes_total/up"),
                    bytes_down=_whole(values, "link_bytes_total/down"),
                    rate_up=0.0 if still else told.rate("link_bytes_total/up"),
                    rate_down=0.0 if still else told.rate("link_bytes_total/down"),
                    waiting_up=seen.waiting_up,
                    waiting_down=seen.waiting_down,
                    lost=_lost(values),
                ),
            )
        )
    return tuple(found)


def _state(network: _Network, worker: int, now: float, *, waits: bool) -> WorkerState:
    told = network.told[worker]
    if not network.picture.workers[worker].told:
        return WorkerState.UNTOLD
    if network.finished:
        return WorkerState.FINISHED
    if not told.begun:
        return WorkerState.SILENT if told.asked_in_vain else WorkerState.STARTING
    if now - told.at > _SILENT * EVERY:
        return WorkerState.SILENT
    return WorkerState.WAITING if waits else _at_work(told)


def _at_work(told: _Told) -> WorkerState:
    exchanging = told.values.get("exchanging")
    if exchanging is None:
        # Transports without the switch report only bytes of links.
        moved = told.grown("link_bytes_total/up") or told.grown("link_bytes_total/down")
        return WorkerState.EXCHANGING if moved else WorkerState.COMPUTING
    if not exchanging:
        return WorkerState.COMPUTING
    moved = any(told.grown(name) for name in _PROGRESS) or not told.before
    return WorkerState.EXCHANGING if moved else WorkerState.WAITING


def _whole(values: Values, name: str) -> int | None:
    value = values.get(name)
    return None if value is None else int(value)


def _lost(values: Values) -> int | None:
    """Return the frames that a faulty link has lost, or None if it is not reported."""
    counts = [values.get(f"injected_faults_total/{way}/lost") for way in ("up", "down")]
    known = [int(count) for count in counts if count is not None]
    return sum(known) if known else None


def _switch_now(
    reading: Reading, used: SlotsInUse | None, queue_before: Sequence[int]
) -> SwitchNow:
    counters = reading.counters
    return SwitchNow(
        up=True,
        session=reading.session.session,
        frames=sum(counters.outcomes.values()),
        contributions=counters.passes.contributions,
        completed=sum(bank.completed for bank in counters.banks),
        recalled=counters.outcomes[Outcome.RECALLED],
        fetched=counters.outcomes[Outcome.FETCHED],
        marked=counters.marked,
        slots_used=None if used is None else used.used,
        slots_seen=None if used is None else used.seen,
        slots=None if used is None else used.slots,
        queue=_queue_now(queue_before, counters.port_queue),
    )


def _queue_now(before: Sequence[int], after: Sequence[int]) -> QueueNow:
    grown = list(after)
    if len(before) == len(after) and all(map(int.__le__, before, after)):
        grown = [late - early for early, late in zip(before, after, strict=True)]
    packets = sum(grown)
    total = sum(length * count for length, count in enumerate(grown))
    longest = max((length for length, count in enumerate(grown) if count), default=0)
    return QueueNow(packets, total / packets if packets else 0.0, longest)


def _cable_now(seen: LinkSeen, before: LinkNow, seconds: float) -> LinkNow:
    def rate(early: int | None, late: int | None) -> float:
        if early is None or late is None or seconds <= 0:
            return 0.0
        return max(0, late - early) / seconds

    return LinkNow(
        bytes_up=seen.bytes_up,
        bytes_down=seen.bytes_down,
        rate_up=rate(before.bytes_up, seen.bytes_up),
        rate_down=rate(before.bytes_down, seen.bytes_down),
        waiting_up=seen.waiting_up,
        waiting_down=seen.waiting_down,
        lost=seen.lost,
    )


def _point(network: _Network, workers: Sequence[WorkerNow], seconds: float) -> ChartPoint:
    links = [*(worker.link for worker in workers), *network.cables]
    return ChartPoint(
        seconds=round(seconds, 2),
        blocks=tuple(worker.blocks or 0 for worker in workers),
        recalls=sum(worker.recalls or 0 for worker in workers),
        fetches=sum(worker.fetches or 0 for worker in workers),
        lost=sum(link.lost or 0 for link in links),
    )
