# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The memory that a plan needs on a switch, and refusing switches that others use."""

from collections.abc import Iterable
from dataclasses import dataclass

from switchgnn.base.network import Network
from switchgnn.controller.controls import KEYED
from switchgnn.controller.controls.access import LAST_TAGS_REGISTER
from switchgnn.controller.controls.banks import reduce_slots
from switchgnn.controller.controls.fanout import Fanout
from switchgnn.controller.controls.session import Session
from switchgnn.controller.controls.tables import Keyed
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
# Registers with a cell per slot, and those of the strawman with one per destination.
_BY_SLOT = (".value", ".state", ".free_slots")
_BY_DESTINATION = ".destinations"


@dataclass(frozen=True)
class Use:
    """The use of one table or register.

    Attributes:
        number: entries, or cells.
        room: entries or cells of the switch; None: any number.
        bits: of an entry (its key and the parameters of its widest action, without the
            hardware's overhead for hashing and action numbers) or of a cell.
    """

    name: str
    number: int
    room: int | None
    bits: int

    @property
    def bytes(self) -> int:
        """Bytes of all, each in whole bytes."""
        return self.number * -(-self.bits // _BITS)

    @property
    def fits(self) -> bool:
        """Whether the switch has enough."""
        return self.room is None or self.number <= self.room


@dataclass(frozen=True)
class MemoryUse:
    """The use of one switch: tables that are filled and all registers, the largest first."""

    tables: tuple[Use, ...]
    registers: tuple[Use, ...]

    @property
    def table_bytes(self) -> int:
        """Bytes of all entries."""
        return sum(table.bytes for table in self.tables)

    @property
    def register_bytes(self) -> int:
        """Bytes of all cells."""
        return sum(register.bytes for register in self.registers)


def memory_of(
    plan: SwitchPlan, layout: Layout, network: Network, banks: int | None = None
) -> MemoryUse:
    """Count the entries and cells that a plan needs, without making its entries.

    ``banks``: of a switch that adds to fewer slots per pass than the program; its fanout entries
    have the parameters of these alone.
    """
    tables = [
        _table(table, control.count(plan, network), _of_banks(control, banks))
        for control in (each(layout) for each in KEYED)
        for table in [control.table]
    ]
    registers = (
        Use(array.name, _cells(array, plan, reduce_slots(layout)), array.size, array.bits)
        for array in layout.registers.values()
    )
    return MemoryUse(_largest_first(tables), _largest_first(registers))


def _of_banks(control: Keyed, banks: int | None) -> frozenset[str]:
    """Return the parameters of the banks that the switch lacks."""
    if banks is None or not isinstance(control, Fanout):
        return frozenset()
    missing = range(banks, control.banks)
    return frozenset(f"{kind}{bank}" for kind in ("slot", "expected") for bank in missing)


def _table(table: Table, entries: int, left_out: frozenset[str]) -> Use:
    key = sum(field.bits for field in table.keys)
    widest = max(
        sum(field.bits for field in action.params if field.name not in left_out)
        for action in table.actions
    )
    return Use(table.name, entries, table.size, key + widest)


def _cells(register: Array, plan: SwitchPlan, reserved: int) -> int:
    if register.name == LAST_TAGS_REGISTER:
        return len(plan.switch.source_vertex)
    if register.name.endswith(_BY_SLOT):
        return plan.manifest.slots_per_bank + reserved
    if register.name.endswith(_BY_DESTINATION):
        slots = plan.switch.result_slot
        return int(slots.max()) + 1 if len(slots) else 0
    # The others do not depend on the plan.
    return register.size


def _largest_first(uses: Iterable[Use]) -> tuple[Use, ...]:
    return tuple(sorted(uses, key=lambda use: (-use.bytes, use.name)))


# P4Runtime never makes a controller with this election id the primary.
_LOOKING_ON = 0


def served_plan(client: P4RuntimeClient) -> int:
    """Return the number of the plan that an open switch serves, under any program; 0: none."""
    if client.get_pipeline_cookie() is None:
        return 0
    try:
        client.layout = None  # of an earlier program
        session = Session(client.get_layout())
        return session.decode(read_default(client, session.table)).plan
    except (OtherProgramError, TypeError):
        # Another program, or a version with another session entry.
        return 0


def refuse_other_plan(address: str, served: int, own: int) -> None:
    """Refuse a switch that serves another plan than ``own``; 0: none."""
    if served not in (0, own):
        raise OtherPlanError(
            f"Switch {address} serves plan {served:08x}, which somebody else has installed, and "
            f"not {own:08x}: a watch replaces no other plan. Watch that one, or bring yours to the "
            "switch with `switchgnn controller install`."
        )


def refuse_other_primary(client: P4RuntimeClient) -> None:
    """Refuse a switch that has a primary controller, even one that ours would outrank."""
    try:
        with client.another(_LOOKING_ON, primary=True):
            # Some switches make us the primary where there is no other.
            return
    except NoPrimaryError:
        return
