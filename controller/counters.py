"""The counters of a switch since its program was loaded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from finsy.proto import p4r

from switchgnn.controller.base.place import Place
from switchgnn.controller.controls.banks import (
    PASS_CELLS,
    PASSES_COUNTER,
    BankEvents,
    Banks,
    Passes,
)
from switchgnn.controller.controls.outcome import COUNTER as OUTCOME_COUNTER
from switchgnn.controller.controls.outcome import ORDINARY, OUTCOME_CELLS, Outcome
from switchgnn.controller.p4runtime.client import P4RuntimeClient
from switchgnn.controller.p4runtime.layout import Array, Layout
from switchgnn.planner.plan.plan import SwitchPart

UNROUTED_COUNTER = "unrouted"
MARKED_COUNTER = "marked"
QUEUE_COUNTER = "port_queue"
RELEASES_COUNTER = "releases"


@dataclass(frozen=True)
class JobCounters:
    """The counters of one job of a switch, or of all."""

    outcomes: Mapping[Outcome, int]  # frames by their outcome
    passes: Passes

    @property
    def frames(self) -> int:
        """Frames of our protocol."""
        return sum(frames for outcome, frames in self.outcomes.items() if outcome not in ORDINARY)


@dataclass(frozen=True)
class Counters:
    """The counters of one switch."""

    jobs: tuple[JobCounters, ...]  # by the number of the job; 0: frames of ports without one
    banks: tuple[BankEvents, ...]  # events in the slots of each bank
    unrouted: int  # complete sums without a result entry
    marked: int  # packets that were marked for congestion
    # released slots by worker, from the first one of a job on; on a spine, by leaf
    releases: tuple[int, ...]
    # packets by the length, in packets, of the queue that they found at their port; the last cell
    # includes all longer queues
    port_queue: tuple[int, ...]

    @property
    def outcomes(self) -> Mapping[Outcome, int]:
        """Frames of all jobs by their outcome."""
        return {each: sum(job.outcomes[each] for job in self.jobs) for each in Outcome}

    @property
    def passes(self) -> Passes:
        """The passes of all jobs."""
        cells = [job.passes.by_contributions for job in self.jobs]
        return Passes(tuple(map(sum, zip(*cells, strict=True))))

    def of_job(self, place: Place) -> "Counters":
        """Return them with one job's outcomes, passes and releases; the rest is of all jobs."""
        releases = self.releases[place.first_worker :][: place.workers]
        return replace(self, jobs=(self.jobs[place.job],), releases=releases)

    def named(self) -> dict[str, int]:
        """Return the counters that do not distinguish workers or queues by name, outcomes first."""
        return {
            **{outcome.name.lower(): frames for outcome, frames in self.outcomes.items()},
            "passes": self.passes.passes,
            "contributions": self.passes.contributions,
            "completed": sum(bank.completed for bank in self.banks),
            "slot_stale": sum(bank.stale for bank in self.banks),
            "slot_overfull": sum(bank.overfull for bank in self.banks),
            "slot_released": sum(bank.released for bank in self.banks),
            "slot_overflowed": sum(bank.overflowed for bank in self.banks),
            "unrouted": self.unrouted,
            "marked": self.marked,
        }


def read_counters(client: P4RuntimeClient) -> Counters:
    """Return all counters of a switch."""
    layout = client.get_layout()
    events = Banks(layout).event_counters
    single = (OUTCOME_COUNTER, PASSES_COUNTER, UNROUTED_COUNTER, MARKED_COUNTER)
    cells = _read_cells(client, layout, (*single, *events, RELEASES_COUNTER, QUEUE_COUNTER))
    return Counters(
        jobs=_by_job(cells[OUTCOME_COUNTER], cells[PASSES_COUNTER], len(events)),
        banks=tuple(BankEvents(*cells[name]) for name in events),
        unrouted=cells[UNROUTED_COUNTER][0],
        marked=cells[MARKED_COUNTER][0],
        releases=tuple(cells[RELEASES_COUNTER]),
        port_queue=tuple(cells[QUEUE_COUNTER]),
    )


def _by_job(outcomes: Sequence[int], passes: Sequence[int], banks: int) -> tuple[JobCounters, ...]:
    return tuple(
        JobCounters(
            {each: outcomes[job * OUTCOME_CELLS + each] for each in Outcome},
            Passes(tuple(passes[job * PASS_CELLS : job * PASS_CELLS + banks + 1])),
        )
        for job in range(len(outcomes) // OUTCOME_CELLS)
    )


def _read_cells(
    client: P4RuntimeClient, layout: Layout, names: tuple[str, ...]
) -> dict[str, list[int]]:
    arrays: list[Array] = [layout.counter(name) for name in names]
    cells = {array.id: [0] * array.size for array in arrays}
    # One request for all, so that they are nearly simultaneous.
    queries = [p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=array.id)) for array in arrays]
    for entity in client.read(queries):
        entry = entity.counter_entry
        own, index = cells.get(entry.counter_id), entry.index.index
        if own is not None and index < len(own):
            own[index] = entry.data.packet_count
    return {array.name: cells[array.id] for array in arrays}


def bank_slots(switch: SwitchPart) -> int:
    """Return how many slots of each bank the results of a switch are in, at most."""
    return int(switch.result_slot.max()) + 1 if len(switch.result_slot) else 0
