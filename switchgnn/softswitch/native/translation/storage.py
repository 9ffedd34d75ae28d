# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a program keeps in variables, and the types that these get in C++."""

from collections.abc import Mapping

from switchgnn.softswitch.codegen.layout import Layout, Slot
from switchgnn.softswitch.codegen.wire import HeaderCodec
from switchgnn.softswitch.native.translation.values import type_of, words_for

_BIG = 1 << 40
# The other variables of the functions, and the numbers that they can be.
_RANGES = {
    "pos": (0, _BIG),
    "pl": (-_BIG, _BIG),
    "n": (0, 1 << 31),
    "cs": (-1, 1 << 16),
    "cl": (0, 1 << 32),
    "rs": (0, 1 << 32),
    "rc": (0, 1 << 32),
    "tr": (-_BIG, _BIG),
    "perr": (0, (1 << 32) - 1),
    "ex": (0, 1),
    "_bad": (0, 1),
    "_h": (0, 1),
    "_s": (0, 1 << 30),
    "_j": (0, 1 << 30),
    "_sn": (0, 1 << 30),
    "_jn": (0, 1 << 30),
    "_a": (-1, 1 << 30),
    "itype": (0, 7),
    "port": (0, 511),
    "rid": (-1, (1 << 32) - 1),
    "now": (0, 1 << 62),
    "enq_time": (0, 1 << 62),
    "enq_depth": (0, 1 << 40),
    "deq_depth": (0, 1 << 40),
}


class Storage:
    """The variables of a program: their types, and which hold bytes of the wire as they are.

    Args:
        layout: the variables.
        codecs: how headers are read and written.
    """

    def __init__(self, layout: Layout, codecs: Mapping[str, HeaderCodec]) -> None:
        self._ranges: dict[str, tuple[int, int]] = {}
        self._slots: dict[str, Slot] = {}
        self.raw: dict[str, int] = {}
        program = layout.program
        for name in program.headers:
            self._ranges[layout.valid(name)] = (0, 1)
            for slot in layout.fields(name):
                self._ranges[slot.variable] = (slot.low, slot.high)
                self._slots[slot.variable] = slot
                if slot.length:
                    self._ranges[slot.length] = (0, slot.width // 8)
        for name in (*program.stacks, *program.union_stacks):
            self._ranges[layout.next_index(name)] = (0, program.stack_size(name))
        for codec in codecs.values():
            for run in (run for part in codec.parts for run in part.runs):
                if run.raw:
                    self.raw[run.slots[0].variable] = run.width // 8

    def slot(self, name: str) -> Slot | None:
        """Return the slot of a field's variable, or None."""
        return self._slots.get(name)

    def range(self, name: str) -> tuple[int, int]:
        """Return the numbers that a variable can be."""
        return self._ranges.get(name) or _RANGES[name]

    def type(self, name: str) -> str:
        """Return the type of a variable."""
        if name in self.raw:
            return f"Raw<{self.raw[name]}>"
        low, high = self.range(name)
        return type_of(words_for(low, high), low < 0)
