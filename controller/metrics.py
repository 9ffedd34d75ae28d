"""Prometheus metrics of switches, which are only read: another controller may be the primary."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from switchgnn.base.clock import SYSTEM_CLOCK, Clock
from switchgnn.base.metrics import Histogram, Metric, MetricKind
from switchgnn.controller.controls.session import SessionEntry
from switchgnn.controller.errors import ControllerError, OtherProgramError, PipelineMissingError
from switchgnn.controller.p4runtime.client import P4RuntimeClient
from switchgnn.controller.show import NO_TABLES, SwitchState, TablesInUse, count_tables, show


@dataclass
class _Watched:
    """One switch. Tables are counted, which reads them whole, only after a new install."""

    client: P4RuntimeClient
    clock: Clock
    with_tables: bool = True
    up: bool = False
    state: SwitchState | None = None
    seconds: float = 0.0
    _counted: tuple[int, SessionEntry] | None = None
    _tables: TablesInUse = NO_TABLES

    def read(self) -> None:
        """Read the switch; failures only make it ``down``."""
        self.state = None
        begin = self.clock.now()
        try:
            self.client.open()
            cookie = self.client.get_pipeline_cookie()
            if cookie is None or (self._counted or (cookie,))[0] != cookie:
                # A restarted switch may run another program, or none.
                self.client.layout = None
            self.up = True
            self.state = self._read()
            self.seconds = self.clock.now() - begin
        except (PipelineMissingError, OtherProgramError):
            self._counted = None
        except ControllerError:
            self.up = False
            self._counted = None
            self.client.layout = None
            with suppress(ControllerError):
                self.client.close()

    def _read(self) -> SwitchState:
        state = show(self.client, self._tables)
        now = state.cookie, state.session
        if self._counted == now:
            return state
        if self.with_tables:
            self._tables = count_tables(self.client)
        self._counted = now
        return replace(state, tables=self._tables)


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
            if self._clock.now() - self._read_at >= self._interval:
                with ThreadPoolExecutor(len(self._switches)) as pool:
                    list(pool.map(_Watched.read, self._switches))
                self._read_at = self._clock.now()
            return list(self._metrics())

    def close(self) -> None:
        """Disconnect from all switches."""
        for switch in self._switches:
            switch.client.close()

    def _metrics(self) -> Iterator[Metric]:
        up = [((each.client.address,), float(each.up)) for each in self._switches]
        yield Metric(
            "switchgnn_switch_up", MetricKind.GAUGE, "Whether the switch answers.", ("switch",), up
        )
        states = [each.state for each in self._switches if each.state]
        for kind in _KINDS:
            samples = [
                ((state.address, *labels), value)
                for state in states
                for labels, value in kind.values(state)
            ]
            yield Metric(
                f"switchgnn_{kind.name}", kind.type, kind.text, ("switch", *kind.labels), samples
            )
        seconds = [((each.client.address,), each.seconds) for each in self._switches if each.state]
        yield Metric(
            "switchgnn_switch_read_seconds",
            MetricKind.GAUGE,
            "How long it took to read the switch.",
            ("switch",),
            seconds,
        )


_Values = Iterable[tuple[tuple[str, ...], float | Histogram]]


class _Kind(NamedTuple):
    """A metric: its name, its text, its values by its labels, and those labels besides `switch`."""

    name: str
    text: str
    values: Callable[[SwitchState], _Values]
    labels: tuple[str, ...] = ()

    @property
    def type(self) -> MetricKind:
        if self.name.endswith("_total"):
            return MetricKind.COUNTER
        return MetricKind.HISTOGRAM if self.values is _queue_lengths else MetricKind.GAUGE


def _one(value: Callable[[SwitchState], float]) -> Callable[[SwitchState], _Values]:
    return lambda state: [((), value(state))]


def _queue_lengths(state: SwitchState) -> _Values:
    """Return the lengths in buckets of powers of two; the last cell includes longer ones."""
    packets = state.counters.port_queue
    bounds = [0]
    while bounds[-1] < len(packets) - 2:
        bounds.append(max(1, 2 * bounds[-1]))
    buckets = [
        (f"{float(bound)}", float(sum(packets[: bound + 1])))
        for bound in bounds
        if bound < len(packets) - 1
    ]
    total = sum(length * count for length, count in enumerate(packets))
    return [((), Histogram([*buckets, ("+Inf", float(sum(packets)))], float(total)))]


_KINDS = (
    _Kind(
        "session",
        "Number of the session that the switch serves; 0 before the first.",
        _one(lambda state: state.session.session),
    ),
    _Kind(
        "plan_info",
        "The plan that the switch serves, by the beginning of its digest.",
        lambda state: [((f"{state.session.plan:08x}",), 1.0)] if state.session.plan else [],
        ("plan",),
    ),
    _Kind("plan_workers", "Workers of the plan.", _one(lambda state: state.session.workers)),
    _Kind(
        "ecn_threshold_packets",
        "Length of a queue from which on packets are marked.",
        _one(lambda state: state.marking.alone),
    ),
    _Kind(
        "ecn_threshold_beside_others_packets",
        "The same, on a port with ordinary traffic.",
        _one(lambda state: state.marking.beside_others),
    ),
    _Kind(
        "table_entries",
        "Entries of a table, counted when the session changes.",
        lambda state: [((each.name,), each.entries) for each in state.tables.tables],
        ("table",),
    ),
    _Kind(
        "table_capacity_entries",
        "The most entries of a table.",
        lambda state: [((each.name,), each.size) for each in state.tables.tables],
        ("table",),
    ),
    _Kind(
        "multicast_groups",
        "Multicast groups, counted when the session changes.",
        _one(lambda state: state.tables.groups),
    ),
    _Kind(
        "frames_total",
        "Frames by what became of them; each has one outcome.",
        lambda state: [
            ((each.name.lower(),), frames) for each, frames in state.counters.outcomes.items()
        ],
        ("outcome",),
    ),
    _Kind(
        "slot_events_total",
        "Contributions that did not just add, by the bank of their slot.",
        lambda state: [
            ((str(bank), event), count)
            for bank, events in enumerate(state.counters.banks)
            for event, count in vars(events).items()
        ],
        ("bank", "event"),
    ),
    _Kind(
        "passes_total",
        "Passes of packets through the banks.",
        _one(lambda state: state.counters.passes.passes),
    ),
    _Kind(
        "contributions_total",
        "Features that were added, or tried to be.",
        _one(lambda state: state.counters.passes.contributions),
    ),
    _Kind(
        "unrouted_sums_total",
        "Complete sums that no result entry was for.",
        _one(lambda state: state.counters.unrouted),
    ),
    _Kind(
        "marked_packets_total",
        "Packets that were marked for congestion.",
        _one(lambda state: state.counters.marked),
    ),
    _Kind(
        "releases_total",
        "Slots that a worker has had released; on a spine, a leaf.",
        lambda state: [
            ((str(worker),), count)
            for worker, count in enumerate(state.counters.releases[: state.session.workers])
        ],
        ("worker",),
    ),
    _Kind(
        "queue_length_packets",
        "Packets by the length of the queue that they found at their port.",
        _queue_lengths,
    ),
)
