# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a switch has counted since its program was loaded."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from finsy.proto import p4r

from switchgnn.controller.controls.banks import PASSES_COUNTER, BankEvents, Banks, Passes
from switchgnn.controller.controls.outcome import COUNTER as OUTCOME_COUNTER
from switchgnn.controller.controls.outcome import Outcome, decode_outcomes
from switchgnn.controller.errors import ControllerError, SwitchUnreachableError
from switchgnn.controller.p4runtime.client import P4RuntimeClient
from switchgnn.controller.p4runtime.layout import Array, Layout
from switchgnn.planner.plan.plan import SwitchPart

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


# The switch copies each cell by itself, between two turns of forwarding.
_MOST_CELLS = 256
# The low bits of a state are a count, those above the tag of a block; see banks.p4.
_COUNT_BITS = 16


@dataclass(frozen=True)
class SlotsInUse:
    """Slots of one switch, at one moment.

    Attributes:
        used: hold contributions to the newest block of those that were looked at, also if
            their sums are complete.
        seen: that were looked at, evenly spread.
        slots: that the plan may use.
    """

    used: int
    seen: int
    slots: int


def bank_slots(switch: SwitchPart) -> int:
    """Return how many slots of each bank the results of a switch are in, at most."""
    return int(switch.result_slot.max()) + 1 if len(switch.result_slot) else 0


def read_slots_in_use(client: P4RuntimeClient, slots_per_bank: int) -> SlotsInUse | None:
    """Return how many slots are in use; None where the switch does not say.

    Args:
        client: may be one that only reads.
        slots_per_bank: how many of each bank the plan uses.

    Raises:
        SwitchUnreachableError: the switch does not answer.
        PipelineMissingError: it runs no program.
    """
    layout = client.get_layout()
    banks = [
        array
        for name, array in sorted(layout.registers.items())
        if name.startswith("bank") and name.endswith(".state")
    ]
    if not banks:
        return None
    each = min(slots_per_bank, *(bank.size for bank in banks))
    step = -(-each * len(banks) // _MOST_CELLS)
    cells = [(bank, index) for bank in banks for index in range(0, each, step)]
    try:
        answers = client.read([_cell(bank, index) for bank, index in cells])
    except SwitchUnreachableError:
        raise
    except ControllerError:
        return None
    if len(answers) != len(cells):
        return None
    states = [int.from_bytes(each.register_entry.data.bitstring, "big") for each in answers]
    newest = max((state >> _COUNT_BITS for state in states), default=0)
    used = sum(newest > 0 and state >> _COUNT_BITS == newest for state in states)
    return SlotsInUse(used, len(states), each * len(banks))


def _cell(bank: Array, index: int) -> p4r.Entity:
    return p4r.Entity(
        register_entry=p4r.RegisterEntry(register_id=bank.id, index=p4r.Index(index=index))
    )
