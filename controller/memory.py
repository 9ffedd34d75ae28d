# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a plan takes of a switch's memory: entries of tables, cells of registers."""

from collections.abc import Iterable
from dataclasses import dataclass

from switchgnn.base.network import Network
from switchgnn.controller.controls.departure import Departure
from switchgnn.controller.controls.destination import Destination
from switchgnn.controller.controls.fanout import Fanout
from switchgnn.controller.controls.forward import Forward
from switchgnn.controller.controls.partial import Partial
from switchgnn.controller.controls.result import Result
from switchgnn.controller.controls.source import LAST_TAGS_REGISTER, Source
from switchgnn.controller.controls.worker import Worker
from switchgnn.controller.p4runtime.layout import Array, Layout, Table
from switchgnn.controller.plan import SwitchPlan

_BITS = 8
# Registers of a bank that have a cell for each of its slots.
_BY_SLOT = (".value", ".state", ".free_slots")
# Those of the strawman that have one for each destination.
_BY_DESTINATION = ".destinations"


@dataclass(frozen=True)
class Use:
    """What a plan takes of one table or register.

    Attributes:
        name: of the table or register.
        number: entries, or cells.
        room: how many the switch has; None: any number.
        bits: of one: of a table's entry its key and the parameters of its widest action. What
            hardware needs on top, for hashing and for an action's number, is left out.
    """

    name: str
    number: int
    room: int | None
    bits: int

    @property
    def bytes(self) -> int:
        """Of all of them, each in whole bytes."""
        return self.number * -(-self.bits // _BITS)

    @property
    def fits(self) -> bool:
        """Whether the switch has as many."""
        return self.room is None or self.number <= self.room


@dataclass(frozen=True)
class MemoryUse:
    """What a plan takes of one switch.

    Attributes:
        tables: those that a plan or a network fills, the largest first.
        registers: all of them, the largest first.
    """

    tables: tuple[Use, ...]
    registers: tuple[Use, ...]

    @property
    def table_bytes(self) -> int:
        """Of all entries together."""
        return sum(table.bytes for table in self.tables)

    @property
    def register_bytes(self) -> int:
        """Of all cells together."""
        return sum(register.bytes for register in self.registers)


def memory_of(
    plan: SwitchPlan, layout: Layout, network: Network, banks: int | None = None
) -> MemoryUse:
    """Count what a plan takes of a switch, without making its entries.

    Args:
        plan: the part of the plan for this switch.
        layout: of the P4 program.
        network: what is around the switch.
        banks: of a switch that adds to fewer slots in a pass than the program: an entry of its
            fanout has the parameters of these alone. None: of the program.

    Returns:
        The tables and registers.
    """
    worker, forward, departure = Worker(layout), Forward(layout), Departure(layout)
    fanout, source = Fanout(layout), Source(layout)
    destination, partial, result = Destination(layout), Partial(layout), Result(layout)
    tables = (
        _table(fanout.table, fanout.count(plan), _of_banks(fanout.banks, banks)),
        _table(source.table, source.count(plan)),
        _table(destination.table, destination.count(plan)),
        _table(partial.table, partial.count(plan)),
        _table(result.table, result.count(plan)),
        _table(worker.table, len(worker.rows(plan, network))),
        _table(forward.table, len(forward.rows(plan, network))),
        _table(departure.table, len(departure.rows(plan, network))),
    )
    registers = (
        Use(array.name, _cells(array, plan), array.size, array.bits)
        for array in layout.registers.values()
    )
    return MemoryUse(_largest_first(tables), _largest_first(registers))


def _of_banks(program: int, banks: int | None) -> frozenset[str]:
    """Return the parameters of the banks that the program has and the switch has not."""
    missing = range(program if banks is None else banks, program)
    return frozenset(f"{kind}{bank}" for kind in ("slot", "expected") for bank in missing)


def _table(table: Table, entries: int, left_out: frozenset[str] = frozenset()) -> Use:
    key = sum(field.bits for field in table.keys)
    widest = max(
        sum(field.bits for field in action.params if field.name not in left_out)
        for action in table.actions
    )
    return Use(table.name, entries, table.size, key + widest)


def _cells(register: Array, plan: SwitchPlan) -> int:
    if register.name == LAST_TAGS_REGISTER:
        return len(plan.switch.source_vertex)
    if register.name.endswith(_BY_SLOT):
        return plan.manifest.slots_per_bank
    if register.name.endswith(_BY_DESTINATION):
        slots = plan.switch.result_slot
        return int(slots.max()) + 1 if len(slots) else 0
    # All others are there whatever the plan is.
    return register.size


def _largest_first(uses: Iterable[Use]) -> tuple[Use, ...]:
    return tuple(sorted(uses, key=lambda use: (-use.bytes, use.name)))
