# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Split headers into runs of whole bytes, and lower how they are read and written."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from switchgnn.softswitch import ir
from switchgnn.softswitch.errors import UnsupportedProgramError
from switchgnn.softswitch.lowering import arithmetic
from switchgnn.softswitch.lowering.arithmetic import constant, variable
from switchgnn.softswitch.lowering.expressions import FunctionContext
from switchgnn.softswitch.lowering.layout import FieldLayout, Slot
from switchgnn.softswitch.lowering.variables import POSITION


def packet_bytes(offset: ir.Expr, size: ir.Expr, most_bytes: int) -> ir.Expr:
    """Return bytes of the packet, at most `most_bytes`, as a number."""
    most = (1 << 8 * most_bytes) - 1
    return ir.Expr("wire", 0, most, (offset, size), most)


@dataclass(frozen=True)
class Run:
    """Consecutive fields that together fill whole bytes."""

    slots: tuple[Slot, ...]
    raw: bool  # no computation uses one of the fields, so that they stay undecoded

    @cached_property
    def fixed_bytes(self) -> int:
        """Bytes of the run on the wire without a ``varbit``."""
        return sum(slot.width for slot in self.slots if slot.length is None) // 8

    @cached_property
    def most_bytes(self) -> int:
        """Bytes of the run on the wire, at most."""
        return sum(slot.width for slot in self.slots) // 8

    @cached_property
    def length(self) -> ir.Variable | None:
        """The variable with the bytes of its ``varbit``, if it has one."""
        return next((slot.length for slot in self.slots if slot.length), None)

    @property
    def size(self) -> ir.Expr:
        """The bytes of the run on the wire."""
        if self.length is None:
            return constant(self.fixed_bytes)
        return arithmetic.add(constant(self.fixed_bytes), variable(self.length))

    @property
    def raw_variable(self) -> ir.Variable:
        """The variable of a raw run."""
        held = self.slots[0].variable
        return ir.Variable(held.name, 0, (1 << 8 * self.fixed_bytes) - 1, self.fixed_bytes)

    def read(self, ctx: FunctionContext, offset: ir.Expr) -> None:
        """Read the fields from the packet."""
        if self.raw:
            ctx.add(ir.ReadRaw(self.raw_variable, offset))
            return
        whole = ctx.let(packet_bytes(offset, self.size, self.most_bytes))
        for slot, below in self._with_shifts():
            shifted = arithmetic.shift_right(whole, below)
            power = arithmetic.shift_left(constant(1), slot.bits)
            mask = arithmetic.subtract(power, constant(1))
            ctx.set_slot(slot, arithmetic.bit_and(shifted, mask))

    def emit(self, ctx: FunctionContext) -> None:
        """Append the fields to the outgoing packet."""
        if self.raw:
            ctx.add(ir.Emit(variable(self.raw_variable), self.size))
            return
        whole = constant(0)
        for slot, below in self._with_shifts():
            held = arithmetic.wrap(variable(slot.variable), slot.width)
            whole = arithmetic.bit_or(whole, arithmetic.shift_left(held, below))
        ctx.add(ir.Emit(whole, self.size))

    def _with_shifts(self) -> Iterator[tuple[Slot, ir.Expr]]:
        """Yield each slot with the number of bits below it."""
        below = constant(0)
        pairs = []
        for slot in reversed(self.slots):
            pairs.append((slot, below))
            below = arithmetic.add(below, slot.bits)
        yield from reversed(pairs)


# The runs of a header, which together are all of it.
Codec = tuple[Run, ...]


def read_header(ctx: FunctionContext, codec: Codec) -> None:
    """Read a header where the parser is, and move on."""
    position = variable(POSITION)
    passed = constant(0)
    for run in codec:
        run.read(ctx, arithmetic.add(position, passed))
        passed = arithmetic.add(passed, run.size)
    ctx.set(POSITION, arithmetic.add(position, passed))


def header_codecs(layout: FieldLayout, touched: frozenset[ir.Variable]) -> dict[str, Codec]:
    """Return the codecs of all headers that can be on the wire."""
    return {
        header.name: tuple(_runs(layout, header.name, touched))
        for header in layout.program.headers.values()
        if header.fields and not header.metadata
    }


def _runs(layout: FieldLayout, header: str, touched: frozenset[ir.Variable]) -> Iterator[Run]:
    pending: list[Slot] = []
    for slot in layout.fields(header):
        pending.append(slot)
        if sum(s.width for s in pending if not s.length) % 8 == 0:
            yield Run(tuple(pending), _is_raw(pending, touched))
            pending = []
    if pending:
        raise UnsupportedProgramError(
            "headers that are not a whole number of bytes",
            f"header '{header}'",
            "pad the header type",
        )


def _is_raw(slots: Sequence[Slot], touched: frozenset[ir.Variable]) -> bool:
    return all(slot.length is None and slot.variable not in touched for slot in slots)
