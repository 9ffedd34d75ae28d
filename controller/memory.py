# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a plan takes of a switch's memory: entries of tables, cells of registers."""

from collections.abc import Iterable
from dataclasses import dataclass

from switchgnn.base.network import Network
from switchgnn.controller.controls.claim import LAST_TAGS_REGISTER, Destination, Partial, Source
from switchgnn.controller.controls.departure import Departure
from switchgnn.controller.controls.fanout import Fanout
from switchgnn.controller.controls.forward import Forward
from switchgnn.controller.controls.loop import Result
from switchgnn.controller.controls.session import Session, Worker
from switchgnn.controller.errors import (
    NoPrimaryError,
    OtherPlanError,
    OtherProgramError,
)
from switchgnn.controller.p4runtime.client import P4RuntimeClient
from switchgnn.controller.p4runtime.layout import Array, Layout, Table
from switchgnn.controller.p4runtime.state import read_default
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


# P4Runtime never makes a controller with this one the primary: it may only look.
_LOOKING_ON = 0


def served_plan(client: P4RuntimeClient) -> int:
    """Return the number of the plan that a switch serves, whatever program it runs; 0: none.

    Args:
        client: an open one.
    """
    if client.get_pipeline_cookie() is None:
        return 0
    try:
        session = Session(client.read_layout())
        return session.decode(read_default(client, session.table)).plan
    except (OtherProgramError, TypeError):
        # No program of ours, or one of a version that told its session otherwise.
        return 0


def refuse_other_plan(address: str, served: int, own: int) -> None:
    """Refuse a switch that serves a plan which is not ours.

    Args:
        address: of the switch.
        served: the number of the plan that it serves; 0: none.
        own: the number of ours.

    Raises:
        OtherPlanError: it serves another plan.
    """
    if served not in (0, own):
        raise OtherPlanError(
            f"Switch {address} serves plan {served:08x}, which somebody else has installed, and "
            f"not {own:08x}: a watch replaces no other plan. Watch that one, or bring yours to the "
            "switch with `switchgnn controller install`."
        )


def refuse_other_primary(client: P4RuntimeClient) -> None:
    """Refuse a switch that has a primary controller, even if ours would take its place.

    Args:
        client: one that is not open yet.

    Raises:
        NotPrimaryError: it has one.
    """
    try:
        with client.with_election_id(_LOOKING_ON):
            # Some switches make us the primary where there is no other.
            return
    except NoPrimaryError:
        return
