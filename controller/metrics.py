# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Prometheus metrics of switches, which are only read: another controller may be the primary."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from switchgnn.base.clock import SYSTEM_CLOCK, Clock
from switchgnn.base.metrics import Histogram, Metric, MetricKind
from switchgnn.controller.controls.congestion import Congestion, Marking
from switchgnn.controller.controls.session import Session, SessionEntry
from switchgnn.controller.counters import Counters, read_counters
from switchgnn.controller.errors import (
    ControllerError,
    OtherProgramError,
    PipelineMissingError,
)
from switchgnn.controller.p4runtime.client import P4RuntimeClient
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.controller.p4runtime.state import (
    keyed_tables,
    read_default,
    read_groups,
    table_entity,
)
from switchgnn.controller.p4runtime.wire import count_entities

_SWITCH = ("switch",)


@dataclass(frozen=True)
class Reading:
    """One reading of a switch.

    Attributes:
        marking: when packets are marked.
        tables: entries and size of each table, by its name.
        groups: number of multicast groups.
        seconds: that reading took.
    """

    session: SessionEntry
    marking: Marking
    counters: Counters
    tables: dict[str, tuple[int, int]]
    groups: int
    seconds: float


@dataclass
class _Watched:
    """One switch. Tables are counted, which reads them whole, only after a new install."""

    client: P4RuntimeClient
    clock: Clock
    with_tables: bool = True
    up: bool = False
    reading: Reading | None = None
    _counted: tuple[int, SessionEntry] | None = None
    _tables: dict[str, tuple[int, int]] = field(default_factory=dict)
    _groups: int = 0

    def read(self) -> None:
        """Read the switch; failures only make it ``down``."""
        self.reading = None
        begin = self.clock.now()
        try:
            self.client.open()
            cookie = self.client.get_pipeline_cookie()
            if cookie is None or (self._counted or (cookie,))[0] != cookie:
                # A restarted switch may run another program, or none.
                self.client.layout = None
            self.up = True
            self.reading = self._read(cookie or 0, begin)
        except (PipelineMissingError, OtherProgramError):
            self._counted = None
        except ControllerError:
            self.up = False
            self._counted = None
            self.client.layout = None
            with suppress(ControllerError):
                self.client.close()

    def _read(self, cookie: int, begin: float) -> Reading:
        layout = self.client.get_layout()
        session, congestion = Session(layout), Congestion(layout)
        entry = session.decode(read_default(self.client, session.table))
        if self._counted != (cookie, entry):
            if self.with_tables:
                self._count(layout)
            self._counted = cookie, entry
        return Reading(
            session=entry,
            marking=congestion.decode(read_default(self.client, congestion.table)),
            counters=read_counters(self.client),
            tables=self._tables,
            groups=self._groups,
            seconds=self.clock.now() - begin,
        )

    def _count(self, layout: Layout) -> None:
        self._tables = {
            table.name: (
                sum(map(count_entities, self.client.read_responses([table_entity(table)]))),
                table.size,
            )
            for table in keyed_tables(layout)
        }
        self._groups = len(read_groups(self.client))


class SwitchMetrics:
    """Reads switches on demand, at most once per ``interval`` seconds.

    ``with_tables`` False: does not count entries, which reads whole tables.
    """

    def __init__(
        self,
        clients: Sequence[P4RuntimeClient],
        interval: float = 1.0,
        clock: Clock = SYSTEM_CLOCK,
        *,
        with_tables: bool = True,
    ) -> None:
        self._switches = [_Watched(client, clock, with_tables) for client in clients]
        self._interval = interval
        self._clock = clock
        self._lock = threading.Lock()
        self._read_at = float("-inf")

    def collect(self) -> list[Metric]:
        """Return the metrics."""
        with self._lock:
            self._read()
            return list(self._metrics())

    def _read(self) -> None:
        if self._clock.now() - self._read_at >= self._interval:
            with ThreadPoolExecutor(len(self._switches)) as pool:
                list(pool.map(_Watched.read, self._switches))
            self._read_at = self._clock.now()

    def close(self) -> None:
        """Disconnect from all switches."""
        for switch in self._switches:
            switch.client.close()

    def _metrics(self) -> Iterator[Metric]:
        yield Metric(
            "switchgnn_switch_up",
            MetricKind.GAUGE,
            "Whether the switch answers.",
            _SWITCH,
            [((each.client.address,), float(each.up)) for each in self._switches],
        )
        read = [(each.client.address, each.reading) for each in self._switches if each.reading]
        yield from _of_sessions(read)
        yield from _of_tables(read)
        yield from _of_counters(read)
        yield _gauge(
            "switchgnn_switch_read_seconds",
            "How long it took to read the switch.",
            [((name,), reading.seconds) for name, reading in read],
        )


_Read = Sequence[tuple[str, Reading]]
_Samples = Sequence[tuple[tuple[str, ...], float]]


def _gauge(name: str, text: str, samples: _Samples, *labels: str) -> Metric:
    return Metric(name, MetricKind.GAUGE, text, (*_SWITCH, *labels), samples)


def _counter(name: str, text: str, samples: _Samples, *labels: str) -> Metric:
    return Metric(name, MetricKind.COUNTER, text, (*_SWITCH, *labels), samples)


def _of_sessions(read: _Read) -> Iterator[Metric]:
    yield _gauge(
        "switchgnn_session",
        "Number of the session that the switch serves; 0 before the first.",
        [((name,), reading.session.session) for name, reading in read],
    )
    yield _gauge(
        "switchgnn_plan_info",
        "The plan that the switch serves, by the beginning of its digest.",
        [
            ((name, f"{reading.session.plan:08x}"), 1.0)
            for name, reading in read
            if reading.session.plan
        ],
        "plan",
    )
    yield _gauge(
        "switchgnn_plan_workers",
        "Workers of the plan.",
        [((name,), reading.session.workers) for name, reading in read],
    )
    yield _gauge(
        "switchgnn_ecn_threshold_packets",
        "Length of a queue from which on packets are marked.",
        [((name,), reading.marking.alone) for name, reading in read],
    )
    yield _gauge(
        "switchgnn_ecn_threshold_beside_others_packets",
        "The same, on a port with ordinary traffic.",
        [((name,), reading.marking.beside_others) for name, reading in read],
    )


def _of_tables(read: _Read) -> Iterator[Metric]:
    tables = [
        (name, table, entries, size)
        for name, reading in read
        for table, (entries, size) in reading.tables.items()
    ]
    yield _gauge(
        "switchgnn_table_entries",
        "Entries of a table, counted when the session changes.",
        [((name, table), entries) for name, table, entries, _ in tables],
        "table",
    )
    yield _gauge(
        "switchgnn_table_capacity_entries",
        "The most entries of a table.",
        [((name, table), size) for name, table, _, size in tables],
        "table",
    )
    yield _gauge(
        "switchgnn_multicast_groups",
        "Multicast groups, counted when the session changes.",
        [((name,), reading.groups) for name, reading in read],
    )


def _of_counters(read: _Read) -> Iterator[Metric]:
    counted = [(name, reading.counters) for name, reading in read]
    yield _counter(
        "switchgnn_frames_total",
        "Frames by what became of them; each has one outcome.",
        [
            ((name, outcome.name.lower()), frames)
            for name, counters in counted
            for outcome, frames in counters.outcomes.items()
        ],
        "outcome",
    )
    yield _counter(
        "switchgnn_slot_events_total",
        "Contributions that did not just add, by the bank of their slot.",
        [
            ((name, str(bank), event), count)
            for name, counters in counted
            for bank, events in enumerate(counters.banks)
            for event, count in vars(events).items()
        ],
        "bank",
        "event",
    )
    for name, text in (
        ("passes", "Passes of packets through the banks."),
        ("contributions", "Features that were added, or tried to be."),
    ):
        yield _counter(
            f"switchgnn_{name}_total",
            text,
            [((switch,), getattr(counters.passes, name)) for switch, counters in counted],
        )
    for field_name, name, text in (
        ("unrouted", "unrouted_sums", "Complete sums that no result entry was for."),
        ("marked", "marked_packets", "Packets that were marked for congestion."),
    ):
        yield _counter(
            f"switchgnn_{name}_total",
            text,
            [((switch,), getattr(counters, field_name)) for switch, counters in counted],
        )
    yield _counter(
        "switchgnn_releases_total",
        "Slots that a worker has had released; on a spine, a leaf.",
        [
            ((name, str(worker)), count)
            for name, reading in read
            for worker, count in enumerate(reading.counters.releases[: reading.session.workers])
        ],
        "worker",
    )
    yield Metric(
        "switchgnn_queue_length_packets",
        MetricKind.HISTOGRAM,
        "Packets by the length of the queue that they found at their port.",
        _SWITCH,
        [((name,), _queue(counters.port_queue)) for name, counters in counted],
    )


def _queue(packets: Sequence[int]) -> Histogram:
    """Return the lengths in buckets of powers of two; the last cell includes longer ones."""
    bounds = [0]
    while bounds[-1] < len(packets) - 2:
        bounds.append(max(1, 2 * bounds[-1]))
    buckets = [
        (f"{float(bound)}", float(sum(packets[: bound + 1])))
        for bound in bounds
        if bound < len(packets) - 1
    ]
    total = sum(length * count for length, count in enumerate(packets))
    return Histogram([*buckets, ("+Inf", float(sum(packets)))], float(total))
