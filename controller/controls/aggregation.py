# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The counters and sizes of banks.p4 and aggregator.p4, and of the strawman's banks."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.network import Network
from switchgnn.controller.controls.passage import decode_default, encode_default, neighbour_ports
from switchgnn.controller.errors import OtherProgramError
from switchgnn.controller.p4runtime.layout import Layout, Table
from switchgnn.controller.p4runtime.rows import (
    Numbers,
    Record,
    Rows,
    Value,
    concatenate,
    make_rows,
    records,
)
from switchgnn.controller.plan import SwitchPlan
from switchgnn.planner.graphs.graph import FIRST_RESERVED_ID
from switchgnn.planner.plan.leaf_spine import NOBODY, LeafSpinePart, partial_senders
from switchgnn.planner.plan.plan import SwitchPart

PASSES_COUNTER = "passes"
# A cell that only the banks of the strawman have, behind the others.
OVERFLOWED_CELL = 4


class SlotEvent(IntEnum):
    """What became of a contribution in its slot, beyond being added."""

    SLOT_COMPLETED = 0
    SLOT_STALE = 1
    SLOT_OVERFULL = 2
    SLOT_RELEASED = 3


@dataclass(frozen=True)
class BankEvents:
    """Contributions to one bank that did not just add.

    Attributes:
        completed: they completed a slot.
        stale: they came too late.
        overfull: they were one too many.
        released: the worker of the slot's vertex sums for itself.
        overflowed: they found no slot and went to the worker as they came.
    """

    completed: int
    stale: int
    overfull: int
    released: int
    overflowed: int


@dataclass(frozen=True)
class Passes:
    """How much the switch has worked.

    Attributes:
        by_contributions: cell n counts the passes that made n contributions.
    """

    by_contributions: tuple[int, ...]

    @property
    def passes(self) -> int:
        """All passes."""
        return sum(self.by_contributions)

    @property
    def contributions(self) -> int:
        """All contributions."""
        return sum(number * passes for number, passes in enumerate(self.by_contributions))


class Banks:
    """All banks."""

    def __init__(self, layout: Layout) -> None:
        self._values = [
            layout.registers[name]
            for name in sorted(layout.registers)
            if name.startswith(("bank", "lanes")) and name.endswith(".value")
        ]
        if not self._values:
            raise OtherProgramError("The P4 program has no banks of aggregators.")
        self.event_counters = [f"bank{bank}.events" for bank in range(len(self._values))]

    @property
    def banks(self) -> int:
        """Number of banks."""
        return len(self._values)

    @property
    def slots_per_bank(self) -> int:
        """Slots of the smallest bank."""
        return min(value.size for value in self._values)

    @staticmethod
    def decode_events(cells: Sequence[int]) -> BankEvents:
        """Return one bank's events from the cells of its counter."""
        return BankEvents(
            completed=cells[SlotEvent.SLOT_COMPLETED],
            stale=cells[SlotEvent.SLOT_STALE],
            overfull=cells[SlotEvent.SLOT_OVERFULL],
            released=cells[SlotEvent.SLOT_RELEASED],
            overflowed=sum(cells[OVERFLOWED_CELL : OVERFLOWED_CELL + 1]),
        )


POOL_ACTION = "set_limits"
TABLE = "pool"


def has_pool(layout: Layout) -> bool:
    """Tell whether the program is the strawman's, which hands its slots out itself."""
    return TABLE in layout.tables


class Pool:
    """The pool table; it has no key, its default action is the setting."""

    def __init__(self, layout: Layout) -> None:
        self.table: Table = layout.table(TABLE)
        self._destinations = [
            register.size
            for name, register in layout.registers.items()
            if name.startswith("bank") and name.endswith(".destinations")
        ]

    @property
    def destinations_per_bank(self) -> int:
        """How many destinations a bank can tell apart."""
        return min(self._destinations, default=0)

    def encode(self, slots: int) -> bytes:
        """Return the default action that splits `slots` slots over the banks."""
        banks = len(self.table.action(POOL_ACTION).params)
        limits = {f"limit{bank}": slots // banks + (bank < slots % banks) for bank in range(banks)}
        return encode_default(self.table, POOL_ACTION, limits)

    def decode(self, default: bytes) -> int:
        """Return the slots of all banks in a default action."""
        return sum(decode_default(self.table, POOL_ACTION, default).values())


PARTIAL_ACTION = "set_senders"
# Of a set of workers, one bit each.
_SET_BYTES = 16


class Partial:
    """The table of who sends partial sums."""

    def __init__(self, layout: Layout) -> None:
        self.table: Table = layout.table("partial")

    def count(self, plan: SwitchPlan) -> int:
        """Return the number of entries."""
        return len(np.unique(partial_senders(plan.switch).result))

    def rows(self, plan: SwitchPlan) -> Rows:
        """Return one entry for each destination of each block that awaits partial sums.

        It has a bit for each worker that sends one; at a spine for each that is behind a leaf
        that does.
        """
        switch, pairs = plan.switch, partial_senders(plan.switch)
        awaiting, first = np.unique(pairs.result, return_index=True)
        members = b"".join(each.to_bytes(_SET_BYTES, "big") for each in plan.members)
        sets = np.frombuffer(members, np.uint8).reshape(-1, _SET_BYTES)[pairs.neighbour]
        values: dict[str, Value] = {
            "block_id": switch.result_block[awaiting],
            "dst_id": switch.result_vertex[awaiting],
            "senders": np.bitwise_or.reduceat(sets, first, axis=0) if len(first) else sets,
        }
        return make_rows(self.table, PARTIAL_ACTION, values, len(awaiting))

    def records(self, rows: Rows) -> list[Record]:
        """Return vertex and senders, as hexadecimal digits, of each entry."""
        plain = records(rows.key_columns() | rows.param_columns(self.table.action(PARTIAL_ACTION)))
        return [each | {"senders": f"{each['senders']:x}"} for each in plain]


# As in sizes.p4.
FIRST_LOOP_PORT = 256
LOOP_LANES = 32
ALL_WORKERS_GROUP = 1
ALL_STATIONS_GROUP = 2
# Groups below are left for others.
FIRST_RESULT_GROUP = 16


def result_group(neighbour: int) -> int:
    """Return the first of a neighbour's groups; the others follow, one per loop port."""
    return FIRST_RESULT_GROUP + neighbour * LOOP_LANES


class Loop:
    """The multicast groups."""

    def groups(self, plan: SwitchPlan, network: Network) -> dict[int, tuple[int, ...]]:
        """Return the sorted ports of each group by its number."""
        ports = neighbour_ports(plan, network)
        below = len(plan.below)
        groups = {ALL_WORKERS_GROUP: tuple(sorted(ports[:below]))}
        if plan.above:
            # One spine passes broadcasts on.
            groups[ALL_STATIONS_GROUP] = tuple(sorted(ports[: below + 1]))
        for neighbour, port in enumerate(ports):
            for lane in range(LOOP_LANES):
                groups[result_group(neighbour) + lane] = (port, FIRST_LOOP_PORT + lane)
        return groups


RESULT_ACTION = "set_result"
PARTIAL = "set_partial"


class Result:
    """The result table."""

    def __init__(self, layout: Layout) -> None:
        self.table: Table = layout.table("result")

    def count(self, plan: SwitchPlan) -> int:
        """Return the number of entries."""
        return len(plan.switch.result_block)

    def rows(self, plan: SwitchPlan, network: Network) -> Rows:
        """Return one entry for each destination of each block."""
        switch = plan.switch
        ports = np.array(neighbour_ports(plan, network), np.int64)
        groups = np.array([result_group(worker) for worker in range(len(ports))], np.int64)
        values: dict[str, Value] = {
            "block_id": switch.result_block,
            "bank": switch.result_bank,
            "slot": switch.result_slot,
            "vertex": switch.result_vertex,
            "port": ports[switch.result_worker],
            "group": groups[switch.result_worker],
        }
        sums = make_rows(self.table, RESULT_ACTION, values, len(switch.result_block))
        if plan.part is None:
            return sums
        ids = plan.part.result_partial
        partial = make_rows(self.table, PARTIAL, {**values, "source": ids}, len(ids))
        return concatenate(self.table, sums.select(ids == 0), partial.select(ids > 0))

    def records(self, rows: Rows) -> list[Record]:
        """Return slot, vertex, or id of the partial sum, and port of each entry."""
        return records(rows.key_columns() | rows.param_columns(self.table.action(RESULT_ACTION)))


DESTINATION_ACTION = "set_destination"
DISTANT = "set_distant"


class Destination:
    """The destination table."""

    def __init__(self, layout: Layout) -> None:
        self.table: Table = layout.table("destination")

    def count(self, plan: SwitchPlan) -> int:
        """Return the number of entries."""
        return len(plan.switch.result_block if plan.part is None else plan.part.route_block)

    def rows(self, plan: SwitchPlan, network: Network) -> Rows:
        """Return one entry for each destination of each block."""
        if plan.part is not None:
            return self._leaf_spine_rows(plan.part, neighbour_ports(plan, network))
        switch = plan.switch
        ports = np.array(neighbour_ports(plan, network), np.int64)
        values: dict[str, Value] = {
            "block_id": switch.result_block,
            "dst_id": switch.result_vertex,
            "port": ports[switch.result_worker],
            "bank": switch.result_bank,
            "slot": switch.result_slot,
            "expected": switch.result_expected,
        }
        return make_rows(self.table, DESTINATION_ACTION, values, len(switch.result_block))

    def _leaf_spine_rows(self, part: LeafSpinePart, neighbours: list[int]) -> Rows:
        """Return one entry for each destination that a leaf or a spine knows."""
        ports, switch, slot = np.array(neighbours, np.int64), part.switch, part.route_result
        placed = slot >= 0
        values: dict[str, Numbers] = {
            "block_id": part.route_block,
            "dst_id": part.route_vertex,
            "port": ports[part.route_neighbour],
        }
        for name in ("bank", "slot", "expected"):
            values[name] = np.zeros(len(slot), np.int64)
            values[name][placed] = getattr(switch, f"result_{name}")[slot[placed]]
        distant = part.route_above != NOBODY
        own: dict[str, Value] = {name: column[~distant] for name, column in values.items()}
        others: dict[str, Value] = {name: column[distant] for name, column in values.items()}
        others["above"] = ports[part.route_above[distant]]
        return concatenate(
            self.table,
            make_rows(self.table, DESTINATION_ACTION, own, int((~distant).sum())),
            make_rows(self.table, DISTANT, others, int(distant.sum())),
        )

    def records(self, rows: Rows) -> list[Record]:
        """Return vertex, port and slot of each entry."""
        return records(
            rows.key_columns() | rows.param_columns(self.table.action(DESTINATION_ACTION))
        )


FANOUT_ACTION = "set_slots"


class Fanout:
    """The fanout table."""

    def __init__(self, layout: Layout) -> None:
        self.table: Table = layout.table("fanout")

    @property
    def banks(self) -> int:
        """How many slots an entry has room for."""
        names = {field.name for field in self.table.action(FANOUT_ACTION).params}
        return sum(1 for name in names if name.startswith("slot"))

    def count(self, plan: SwitchPlan) -> int:
        """Return the number of entries."""
        return int(np.count_nonzero(_of_vertices(plan.switch)))

    def rows(self, plan: SwitchPlan) -> Rows:
        """Return one entry for each (block, source, hop), of sources that are vertices."""
        switch = plan.switch
        some = _of_vertices(switch)
        expected, slot = switch.entry_expected[some], switch.entry_slot[some]
        used = expected > 0
        values: dict[str, Value] = {
            "block_id": switch.entry_block[some],
            "src_id": switch.entry_source[some],
            "hop": switch.entry_hop[some],
            "last_hop": switch.entry_last[some].astype(np.uint8),
            "last_bank": _last_bank(used),
        }
        for bank in range(self.banks):
            values[f"slot{bank}"] = np.where(used[:, bank], slot[:, bank], 0)
            values[f"expected{bank}"] = expected[:, bank]
        return make_rows(self.table, FANOUT_ACTION, values, len(used))

    def records(self, rows: Rows) -> list[Record]:
        """Return key, flags and used slots, as bank:slot(expected), of each entry."""
        params = rows.param_columns(self.table.action(FANOUT_ACTION))
        slots = [params.pop(f"slot{bank}") for bank in range(self.banks)]
        expected = [params.pop(f"expected{bank}") for bank in range(self.banks)]
        plain = records(rows.key_columns() | params)
        for row, record in enumerate(plain):
            record["slots"] = " ".join(
                f"{bank}:{int(slots[bank][row])}({int(expected[bank][row])})"
                for bank in range(self.banks)
                if expected[bank][row]
            )
        return plain


def _of_vertices(switch: SwitchPart) -> NDArray[np.bool_]:
    own: NDArray[np.bool_] = switch.entry_source < FIRST_RESERVED_ID
    return own


def _last_bank(used: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the highest used bank of each entry; 0 when it uses none."""
    banks = used.shape[1]
    from_behind = used[:, ::-1].argmax(axis=1)
    last: NDArray[np.intp] = np.where(used.any(axis=1), banks - 1 - from_behind, 0)
    return last
