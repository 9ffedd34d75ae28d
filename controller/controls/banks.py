"""banks.p4: the sizes and counters of the banks, and the limits of the strawman's."""

from collections.abc import Callable
from dataclasses import dataclass

from switchgnn.controller.base.errors import OtherProgramError
from switchgnn.controller.controls.tables import NamedTable
from switchgnn.controller.p4runtime.layout import Layout, Table
from switchgnn.controller.p4runtime.rows import decode_default, encode_default

PASSES_COUNTER = "passes"
# Of the counter of passes, one for each number of contributions; as in metadata.p4.
PASS_CELLS = 16
# One cell for each slot of the all-reduces.
FRAGMENTS_REGISTER = "fragment_tag"
TABLE = "slot_limits"
ONLY_BANK = "state"
# Milliseconds without a contribution after which another destination may take over a shared slot:
# longer than workers wait for each other, and soon enough after the end of a job.
SHARED_AGE = 5000


@dataclass(frozen=True)
class BankEvents:
    """Contributions to one bank that did not just add, in the order of the counter's cells."""

    completed: int  # they completed a slot
    stale: int  # they came too late
    overfull: int  # they were one too many
    released: int  # the worker of the slot's vertex sums for itself
    # they found no slot and went to the worker as they came; the strawman's only
    overflowed: int = 0


@dataclass(frozen=True)
class Passes:
    """How much the switch has worked."""

    by_contributions: tuple[int, ...]  # cell n counts the passes that made n contributions

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
        values = [
            layout.registers[name]
            for name in sorted(layout.registers)
            if name.startswith(("bank", "lanes")) and name.endswith(".value")
        ]
        self.event_counters = [f"bank{bank}.events" for bank in range(len(values))]
        if ONLY_BANK in layout.registers:
            # The Tofino program's, whose slots are in many registers.
            values, self.event_counters = [layout.registers[ONLY_BANK]], ["events"]
        if not values:
            raise OtherProgramError("The P4 program has no banks of aggregators.")
        # Slots of the smallest bank that a plan may use.
        self.slots_per_bank = min(value.size for value in values) - all_reduce_slots(layout)


def hands_out_slots(layout: Layout) -> bool:
    """Tell whether the program is the strawman's, which hands its slots out itself."""
    return TABLE in layout.tables


def shared_slots(layout: Layout, default: Callable[[Table], bytes]) -> int | None:
    """Return how many slots jobs share, or None; `default` returns a table's default action."""
    if not hands_out_slots(layout):
        return None
    limits = SlotLimits(layout)
    return limits.decode_shared(default(limits.table))


def all_reduce_slots(layout: Layout) -> int:
    """Return how many slots of each bank are those of all-reduces; the strawman's has none."""
    none = hands_out_slots(layout) or FRAGMENTS_REGISTER not in layout.registers
    return 0 if none else layout.registers[FRAGMENTS_REGISTER].size


def reduce_slots(layout: Layout) -> int:
    """Return how many of them a job has."""
    return all_reduce_slots(layout) // layout.table("job").size


class SlotLimits(NamedTable):
    """The slot_limits table."""

    name, action = TABLE, "set_limits"

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        sizes = (
            register.size
            for name, register in layout.registers.items()
            if name.startswith("bank") and name.endswith(".destinations")
        )
        # How many destinations a bank can tell apart.
        self.destinations_per_bank = min(sizes, default=0)

    def encode(self, slots: int, age: int = 0) -> bytes:
        """Return the default action that splits `slots` slots over the banks.

        `age`: of slots that jobs share, in milliseconds, as `SHARED_AGE`; 0: they do not.
        """
        banks = len(self.table.action(self.action).params) - 1
        limits = {f"limit{bank}": slots // banks + (bank < slots % banks) for bank in range(banks)}
        return encode_default(self.table, self.action, {**limits, "age": age})

    def decode_shared(self, default: bytes) -> int | None:
        """Return how many slots jobs share; None: they do not."""
        values = self.decode(default)
        return sum(values.values()) - values["age"] if values["age"] else None

    def decode(self, default: bytes) -> dict[str, int]:
        """Return the parameters of a default action by name."""
        return decode_default(self.table, self.action, default)
