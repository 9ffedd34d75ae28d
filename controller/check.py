"""What a plan needs of a switch, and whether it fits, before anything is sent."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from switchgnn.base.network import Network
from switchgnn.controller.base.errors import PlanRefusedError
from switchgnn.controller.base.place import FIRST_LOOP_PORT
from switchgnn.controller.base.plan import SwitchPlan
from switchgnn.controller.controls import entries_in
from switchgnn.controller.controls.access import LAST_TAGS_REGISTER, last_tags
from switchgnn.controller.controls.banks import Banks, SlotLimits, all_reduce_slots, hands_out_slots
from switchgnn.controller.controls.fanout import Fanout
from switchgnn.controller.controls.one_bank import fitted
from switchgnn.controller.controls.session import Session, Tier
from switchgnn.controller.controls.tables import Entries
from switchgnn.controller.counters import bank_slots
from switchgnn.controller.p4runtime.layout import Array, Layout, Table
from switchgnn.p4src import Program
from switchgnn.planner.base.lanes import BANK_LANES, ROWS, TOFINO_LANES

_BITS = 8
# Registers with a cell per slot, and those of the strawman with one per destination.
_BY_SLOT = (".value", ".state", ".free_slots", ".owners")
_BY_DESTINATION = ".destinations"
# Of sums that wait for others of a bundle.
_SHELF_REGISTER = "shelf0"


@dataclass(frozen=True)
class Use:
    """The use of one table or register."""

    name: str
    number: int  # entries, or cells
    room: int | None  # entries or cells of the switch; None: any number
    # of an entry (its key and the parameters of its widest action, without the hardware's overhead
    # for hashing and action numbers) or of a cell
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
    plan = fitted(plan, layout)
    tables = [
        _table(control.table, control.count(plan, network), _of_banks(control, banks))
        for control in entries_in(layout)
    ]
    registers = (
        Use(array.name, _cells(array, plan, all_reduce_slots(layout)), array.size, array.bits)
        for array in layout.registers.values()
    )
    return MemoryUse(_largest_first(tables), _largest_first(registers))


def _of_banks(control: Entries, banks: int | None) -> frozenset[str]:
    """Return the parameters of the banks that the switch lacks."""
    if banks is None or not isinstance(control, Fanout):
        return frozenset()
    missing = range(banks, control.banks)
    return frozenset(f"{kind}{bank}" for kind in ("slot", "expected", "row") for bank in missing)


def _table(table: Table, entries: int, left_out: frozenset[str]) -> Use:
    key = sum(field.bits for field in table.keys)
    widest = max(
        sum(field.bits for field in action.params if field.name not in left_out)
        for action in table.actions
    )
    return Use(table.name, entries, table.size, key + widest)


def _cells(register: Array, plan: SwitchPlan, reserved: int) -> int:
    if register.name == LAST_TAGS_REGISTER:
        return plan.manifest.pools * len(plan.switch.source_vertex)
    if register.name.endswith(_BY_SLOT):
        return plan.manifest.slots_per_bank + reserved
    if register.name.endswith(_BY_DESTINATION):
        return bank_slots(plan.switch)
    # The others do not depend on the plan.
    return register.size


def _largest_first(uses: Iterable[Use]) -> tuple[Use, ...]:
    return tuple(sorted(uses, key=lambda use: (-use.bytes, use.name)))


def check_plan(plan: SwitchPlan, program: Program, layout: Layout, network: Network) -> None:
    """Refuse a plan for another program, or too large for this one or for the network."""
    if plan.manifest.strawman != hands_out_slots(layout):
        kinds = ("a plan with a slot for each destination", "the strawman's plan")
        raise PlanRefusedError(
            f"This is {kinds[plan.manifest.strawman]}, but the P4 program is for "
            f"{kinds[hands_out_slots(layout)]}: plan again, or install it with its own program."
        )
    if plan.manifest.program != program.digest:
        raise PlanRefusedError(
            f"The plan is for another P4 program ({plan.manifest.program[:12]}; this one is "
            f"{program.digest[:12]}): make the plan again."
        )
    _check_network(plan, network)
    if plan.part is not None and not Tier.is_in(layout):
        raise PlanRefusedError(
            "The P4 program is for a single switch: leave out leaves and spines, or take "
            "--target embedded."
        )
    plan = fitted(plan, layout)
    planned, banks = plan.switch.entry_slot.shape[1], Fanout(layout).banks
    if planned != banks:
        raise PlanRefusedError(
            f"The plan uses {planned} banks, the P4 program has {banks}: make the plan again."
        )
    for needed, room, what, fix in _needs(plan, layout, network):
        if needed > room:
            raise PlanRefusedError(
                f"The plan has {needed:,} {what}, but the P4 program has room for {room:,}: {fix}."
            )


def _check_network(plan: SwitchPlan, network: Network) -> None:
    ports = [each.port for each in network.neighbours]
    if plan.neighbours > len(ports):
        raise PlanRefusedError(
            f"The plan has {plan.neighbours} workers, but the network has {len(ports)} ports: plan "
            "for fewer workers, or connect more."
        )
    if len(set(ports)) < len(ports):
        raise PlanRefusedError("Two workers of the network are on the same port of the switch.")
    if any(not 0 < port < FIRST_LOOP_PORT for port in ports):
        raise PlanRefusedError(
            f"A worker's port must be from 1 to {FIRST_LOOP_PORT - 1}; the network has "
            f"{min(ports)} to {max(ports)}."
        )


def _needs(
    plan: SwitchPlan, layout: Layout, network: Network
) -> Iterator[tuple[int, int, str, str]]:
    """Yield how much a plan needs of what, how much there is, and the remedy."""
    yield plan.manifest.workers, Session(layout).max_workers, "workers", "plan for fewer"
    banks = Fanout(layout).banks
    lanes = TOFINO_LANES if banks == 1 else BANK_LANES * banks
    rows = ROWS[-1] if _SHELF_REGISTER in layout.registers else 1
    yield plan.manifest.lanes, lanes, "numbers in a row of a frame", f"plan with --lanes {lanes}"
    yield plan.manifest.rows, rows, "rows in a frame", f"plan with --rows {rows}"
    smaller = "partition the graph with a smaller boundary, or compile the program with more"
    if hands_out_slots(layout):
        room = SlotLimits(layout).destinations_per_bank
        yield _highest_slot(plan) + 1, room, "destinations in one bank", smaller
    fix = "plan for less memory, or compile the program with more"
    slots = max(plan.manifest.slots_per_bank, slots_per_bank(plan, layout))
    yield slots, Banks(layout).slots_per_bank, "slots in each bank", fix
    room = sum(each.size for each in last_tags(layout)) // Session(layout).max_pools
    yield len(plan.switch.source_vertex), room, "sources", f"send without partial sums, {smaller}"
    for use in memory_of(plan, layout, network).tables:
        if use.room is not None:
            fix = "make a plan with fewer, or compile the program with a larger table"
            yield use.number, use.room, f"entries for table {use.name}", fix


def slots_per_bank(plan: SwitchPlan, layout: Layout) -> int:
    """Return how many slots of each bank a plan uses, from the first to the last of its pools."""
    if hands_out_slots(layout):
        return 0
    return (plan.manifest.pools - 1) * plan.manifest.pool_slots + _highest_slot(plan) + 1


def _highest_slot(plan: SwitchPlan) -> int:
    switch = plan.switch
    used = np.where(switch.entry_expected > 0, switch.entry_slot, 0)
    return max(int(used.max(initial=0)), int(switch.result_slot.max(initial=0)))
