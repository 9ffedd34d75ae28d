"""Prometheus metrics of switches, which are only read: another controller may be the primary."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace

from prometheus_client import Metric
from prometheus_client.core import HistogramMetricFamily

from switchgnn.base.clock import SYSTEM_CLOCK, Clock
from switchgnn.base.metrics import Values, families
from switchgnn.controller.base.errors import (
    ControllerError,
    OtherProgramError,
    PipelineMissingError,
)
from switchgnn.controller.controls.session import SessionEntry
from switchgnn.controller.p4runtime.client import P4RuntimeClient
from switchgnn.controller.show import NO_TABLES, SwitchState, TablesInUse, count_tables, show

_PREFIX = "switchgnn_"
# Metrics, with the names of their labels besides `switch`.
_DESCRIBED = {
    "switch_up": ("Whether the switch answers.",),
    "switch_read_seconds": ("How long it took to read the switch.",),
    "session": ("Number of the session that the switch serves; 0 before the first.",),
    "plan_info": ("The plan that the switch serves, by the beginning of its digest.", "plan"),
    "plan_workers": ("Workers of the plan.",),
    "ecn_threshold_packets": ("Length of a queue from which on packets are marked.",),
    "ecn_threshold_beside_others_packets": ("The same, on a port with ordinary traffic.",),
    "table_entries": ("Entries of a table, counted when the session changes.", "table"),
    "table_capacity_entries": ("The most entries of a table.", "table"),
    "multicast_groups": ("Multicast groups, counted when the session changes.",),
    "frames_total": ("Frames by what became of them; each has one outcome.", "outcome"),
    "slot_events_total": (
        *("Contributions that did not just add, by the bank of their slot.", "bank", "event"),
    ),
    "passes_total": ("Passes of packets through the banks.",),
    "contributions_total": ("Features that were added, or tried to be.",),
    "unrouted_sums_total": ("Complete sums that no result entry was for.",),
    "marked_packets_total": ("Packets that were marked for congestion.",),
    "releases_total": ("Slots that a worker has had released; on a spine, a leaf.", "worker"),
}


@dataclass
class _Watched:
    """One switch. Tables are counted, which reads them whole, only after a new install."""

    client: P4RuntimeClient
    clock: Clock
    with_tables: bool = True
    state: SwitchState | None = None
    values: dict[str, float] = field(default_factory=dict)
    _counted: tuple[int, SessionEntry] | None = None
    _tables: TablesInUse = NO_TABLES

    def read(self) -> None:
        """Read the switch; failures only make it ``down``."""
        self.state = None
        self.values = {"switch_up": 0.0}
        begin = self.clock.now()
        try:
            self.client.open()
            cookie = self.client.get_pipeline_cookie()
            if cookie is None or (self._counted or (cookie,))[0] != cookie:
                # A restarted switch may run another program, or none.
                self.client.layout = None
            self.values["switch_up"] = 1.0
            self.state = self._read()
            self.values |= _values(self.state)
            self.values["switch_read_seconds"] = self.clock.now() - begin
        except (PipelineMissingError, OtherProgramError):
            self._counted = None
        except ControllerError:
            self.values["switch_up"] = 0.0
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
    """Reads switches on demand, at most once per ``interval`` seconds; collects for Prometheus.

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

    def values(self) -> list[Values]:
        """Return the numbers of each switch, without its queues."""
        with self._lock:
            self._read()
            return [switch.values for switch in self._switches]

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        queues = HistogramMetricFamily(
            f"{_PREFIX}queue_length_packets",
            "Packets by the length of the queue that they found at their port.",
            labels=["switch"],
        )
        with self._lock:
            self._read()
            values = {switch.client.address: switch.values for switch in self._switches}
            for switch in self._switches:
                if switch.state:
                    packets = switch.state.counters.port_queue
                    total = sum(length * count for length, count in enumerate(packets))
                    queues.add_metric([switch.client.address], _buckets(packets), total)
        yield from families(_PREFIX, "switch", _DESCRIBED, values)
        yield queues

    def close(self) -> None:
        """Disconnect from all switches."""
        for switch in self._switches:
            switch.client.close()

    def _read(self) -> None:
        if self._clock.now() - self._read_at >= self._interval:
            with ThreadPoolExecutor(len(self._switches)) as pool:
                list(pool.map(_Watched.read, self._switches))
            self._read_at = self._clock.now()


def _values(state: SwitchState) -> dict[str, float]:
    session, counters = state.session, state.counters
    found: dict[str, float] = {
        "session": session.session,
        "plan_workers": session.workers,
        "ecn_threshold_packets": state.marking.alone,
        "ecn_threshold_beside_others_packets": state.marking.beside_others,
        "multicast_groups": state.tables.groups,
        "passes_total": counters.passes.passes,
        "contributions_total": counters.passes.contributions,
        "unrouted_sums_total": counters.unrouted,
        "marked_packets_total": counters.marked,
    }
    if session.plan:
        found[f"plan_info/{session.plan:08x}"] = 1
    for table in state.tables.tables:
        found[f"table_entries/{table.name}"] = table.entries
        found[f"table_capacity_entries/{table.name}"] = table.size
    for outcome, frames in counters.outcomes.items():
        found[f"frames_total/{outcome.name.lower()}"] = frames
    for bank, events in enumerate(counters.banks):
        for event, count in vars(events).items():
            found[f"slot_events_total/{bank}/{event}"] = count
    for worker, count in enumerate(counters.releases[: session.workers]):
        found[f"releases_total/{worker}"] = count
    return found


def _buckets(packets: Sequence[int]) -> list[tuple[str, float]]:
    """Return cumulative counts up to powers of two; the last cell includes longer queues."""
    bounds = [0, *(1 << power for power in range((len(packets) - 2).bit_length()))]
    buckets = [(f"{float(bound)}", float(sum(packets[: bound + 1]))) for bound in bounds]
    return [*buckets, ("+Inf", float(sum(packets)))]
