# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The control `Pool`: how many slots the strawman's banks may hand out."""

from switchgnn.controller.controls.default import decode_default, encode_default
from switchgnn.controller.p4runtime.layout import Layout, Table

ACTION = "set_limits"
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
        banks = len(self.table.action(ACTION).params)
        limits = {f"limit{bank}": slots // banks + (bank < slots % banks) for bank in range(banks)}
        return encode_default(self.table, ACTION, limits)

    def decode(self, default: bytes) -> int:
        """Return the slots of all banks in a default action."""
        return sum(decode_default(self.table, ACTION, default).values())
