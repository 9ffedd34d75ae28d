# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""reduce.p4: the slots of the all-reduce, and how many contributions make a sum."""

from switchgnn.controller.controls.banks import reduce_slots
from switchgnn.controller.p4runtime.layout import Layout, Table
from switchgnn.controller.p4runtime.rows import decode_default, encode_default
from switchgnn.controller.plan import SwitchPlan

REDUCE_ACTION = "set_reduce"


class Reduce:
    """The reduce table; it has no key, its default action is the setting."""

    def __init__(self, layout: Layout) -> None:
        self.table: Table = layout.table("reduce")
        self._slots = reduce_slots(layout)

    def encode(self, plan: SwitchPlan) -> bytes:
        """Return the default action for the workers behind a switch; 0 of them for a strawman."""
        expected = sum(plan.members).bit_count() if self._slots else 0
        return encode_default(self.table, REDUCE_ACTION, {"expected": expected})

    def decode(self, default: bytes) -> int:
        """Return the contributions to a sum in a default action; 0: there is no all-reduce."""
        return decode_default(self.table, REDUCE_ACTION, default)["expected"]
