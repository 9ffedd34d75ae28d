# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How many slots of a switch hold contributions to its newest block.

Only registers tell, and BMv2 does not let P4Runtime read them.
"""

from dataclasses import dataclass

from finsy.proto import p4r

from switchgnn.controller.errors import ControllerError, SwitchUnreachableError
from switchgnn.controller.p4runtime.client import P4RuntimeClient
from switchgnn.controller.p4runtime.layout import Array
from switchgnn.planner.plan.plan import SwitchPart

# The switch copies each cell by itself, between two turns of forwarding.
_MOST_CELLS = 256
# The low bits of a state are a count, those above the tag of a block; see aggregator.p4.
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
