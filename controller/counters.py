# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a switch has counted since its program was loaded."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from finsy.proto import p4r

from switchgnn.controller.controls.banks import PASSES_COUNTER, BankEvents, Banks, Passes
from switchgnn.controller.controls.outcome import COUNTER as OUTCOME_COUNTER
from switchgnn.controller.controls.outcome import Outcome, decode_outcomes
from switchgnn.controller.p4runtime.client import P4RuntimeClient
from switchgnn.controller.p4runtime.layout import Array, Layout

UNROUTED_COUNTER = "unrouted"
MARKED_COUNTER = "marked"
QUEUE_COUNTER = "port_queue"
RELEASES_COUNTER = "releases"


@dataclass(frozen=True)
class Totals:
    """What one switch has counted, for all workers together.

    Attributes:
        outcomes: frames by what became of them.
        passes: passes and contributions.
        banks: events in the slots of each bank.
        unrouted: complete sums that no result entry was for.
        marked: packets that were marked for congestion.
    """

    outcomes: Mapping[Outcome, int]
    passes: Passes
    banks: tuple[BankEvents, ...]
    unrouted: int
    marked: int

    def named(self) -> dict[str, int]:
        """Return the totals by name, outcomes first."""
        return {
            **{outcome.name.lower(): self.outcomes[outcome] for outcome in Outcome},
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


@dataclass(frozen=True)
class Counters(Totals):
    """All counters of one switch.

    Attributes:
        releases: how often each worker has had a slot released; on a spine each leaf.
        port_queue: packets by the length of the queue that they found at their port, in
            packets; the last also counts what is longer.
    """

    releases: tuple[int, ...]
    port_queue: tuple[int, ...]


def read_totals(client: P4RuntimeClient) -> Totals:
    """Return a switch's totals: a few dozen cells, so it may be asked often.

    Raises:
        OtherProgramError: the switch runs a program without them.
        PipelineMissingError: it runs none.
    """
    layout = client.get_layout()
    return _totals(layout, _read_cells(client, layout, _names_of_totals(layout)))


def read_counters(client: P4RuntimeClient) -> Counters:
    """Return all counters of a switch.

    Raises:
        OtherProgramError: the switch runs a program without them.
        PipelineMissingError: it runs none.
    """
    layout = client.get_layout()
    names = (*_names_of_totals(layout), RELEASES_COUNTER, QUEUE_COUNTER)
    cells = _read_cells(client, layout, names)
    totals = _totals(layout, cells)
    return Counters(
        **{each.name: getattr(totals, each.name) for each in fields(totals)},
        releases=tuple(cells[RELEASES_COUNTER]),
        port_queue=tuple(cells[QUEUE_COUNTER]),
    )


def _names_of_totals(layout: Layout) -> tuple[str, ...]:
    return (
        OUTCOME_COUNTER,
        PASSES_COUNTER,
        UNROUTED_COUNTER,
        MARKED_COUNTER,
        *Banks(layout).event_counters,
    )


def _totals(layout: Layout, cells: Mapping[str, list[int]]) -> Totals:
    banks = Banks(layout)
    return Totals(
        outcomes=decode_outcomes(cells[OUTCOME_COUNTER]),
        passes=Passes(tuple(cells[PASSES_COUNTER])),
        banks=tuple(banks.decode_events(cells[name]) for name in banks.event_counters),
        unrouted=cells[UNROUTED_COUNTER][0],
        marked=cells[MARKED_COUNTER][0],
    )


def _read_cells(
    client: P4RuntimeClient, layout: Layout, names: tuple[str, ...]
) -> dict[str, list[int]]:
    arrays: list[Array] = [layout.counter(name) for name in names]
    cells = {array.id: [0] * array.size for array in arrays}
    # One request for all, so that they are of nearly one moment.
    queries = [p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=array.id)) for array in arrays]
    for entity in client.read(queries):
        entry = entity.counter_entry
        own, index = cells.get(entry.counter_id), entry.index.index
        if own is not None and index < len(own):
            own[index] = entry.data.packet_count
    return {array.name: cells[array.id] for array in arrays}
