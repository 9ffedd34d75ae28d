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
from switchgnn.controller.show import (
    NO_TABLES,
    JobState,
    SwitchState,
    TablesInUse,
    count_tables,
    show,
)

_PREFIX = "switchgnn_"
# Metrics, with the names of their labels besides `switch`.
_DESCRIBED = {
    "switch_up": ("Whether the switch answers.",),
    "switch_read_seconds": ("How long it took to read the switch.",),
    "newest_session": ("Number of the newest session of any job; 0 before the first.",),
    "session": ("Number of a job's session; 0 while the switch does not serve it.", "job"),
    "plan_info": ("The plan of a job, by the beginning of its digest.", "job", "plan"),
    "plan_workers": ("Workers of a job's plan.", "job"),
    "job_slots": ("Slots of each bank that a job has.", "job"),
    "job_first_slot": ("The first of them, counted from 0.", "job"),
    "job_frames_total": ("Frames of jobs with this one's number, by outcome.", "job", "outcome"),
    "job_passes_total": ("Passes of their packets through the banks.", "job"),
    "job_contributions_total": ("Features of theirs that were added, or tried to be.", "job"),
    "ecn_threshold_packets": ("Length of a queue from which on packets are marked.", "job"),
    "ecn_threshold_beside_others_packets": (
        *("The same, on a port with ordinary traffic.", "job"),
    ),
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
    "releases_total": (
        *("Slots that a worker has had released; on a spine, a leaf.", "job", "worker"),
    ),
}


@dataclass
class _Watched:
    """One switch. Tables are counted, which reads them whole, only after a new install."""

    client: P4RuntimeClient
    clock: Clock
    with_tables: bool = True
    state: SwitchState | None = None
    values: dict[str, float] = field(default_factory=dict)
    _counted: tuple[int, tuple[SessionEntry, ...]] | None = None
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
        now = state.cookie, tuple(job.session for job in state.jobs)
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
    counters = state.counters
    found: dict[str, float] = {
        "newest_session": state.newest_session,
        "multicast_groups": state.tables.groups,
        "passes_total": counters.passes.passes,
        "contributions_total": counters.passes.contributions,
        "unrouted_sums_total": counters.unrouted,
        "marked_packets_total": counters.marked,
    }
    for job in state.jobs:
        found |= _values_of(job)
    for table in state.tables.tables:
        found[f"table_entries/{table.name}"] = table.entries
        found[f"table_capacity_entries/{table.name}"] = table.size
    for outcome, frames in counters.outcomes.items():
        found[f"frames_total/{outcome.name.lower()}"] = frames
    for bank, events in enumerate(counters.banks):
        for event, count in vars(events).items():
            found[f"slot_events_total/{bank}/{event}"] = count
    return found


def _values_of(job: JobState) -> dict[str, float]:
    name, session, passes = job.place.name, job.session, job.counters.passes
    found: dict[str, float] = {
        f"session/{name}": session.session,
        f"plan_workers/{name}": session.workers,
        f"job_slots/{name}": 0 if job.place.shared else job.place.slots,
        f"job_first_slot/{name}": job.place.first_slot,
        f"job_passes_total/{name}": passes.passes,
        f"job_contributions_total/{name}": passes.contributions,
        f"ecn_threshold_packets/{name}": job.marking.alone,
        f"ecn_threshold_beside_others_packets/{name}": job.marking.beside_others,
    }
    if session.plan:
        found[f"plan_info/{name}/{session.plan:08x}"] = 1
    for outcome, frames in job.counters.outcomes.items():
        if frames:
            found[f"job_frames_total/{name}/{outcome.name.lower()}"] = frames
    for worker, count in enumerate(job.releases):
        found[f"releases_total/{name}/{worker}"] = count
    return found


def _buckets(packets: Sequence[int]) -> list[tuple[str, float]]:
    """Return cumulative counts up to powers of two; the last cell includes longer queues."""
    bounds = [0, *(1 << power for power in range((len(packets) - 2).bit_length()))]
    buckets = [(f"{float(bound)}", float(sum(packets[: bound + 1]))) for bound in bounds]
    return [*buckets, ("+Inf", float(sum(packets)))]
