# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The variables of a program's fields, validity bits and stack indices."""

from dataclasses import dataclass

from switchgnn.softswitch.errors import UnsupportedProgramError
from switchgnn.softswitch.ir import Expr, Variable
from switchgnn.softswitch.lowering.arithmetic import constant, multiply, variable
from switchgnn.softswitch.program import FieldRef, HeaderSpec, LoadedProgram


@dataclass(frozen=True)
class Slot:
    """A field."""

    variable: Variable
    width: int  # bits; the maximum of a `varbit`
    signed: bool
    length: Variable | None = None  # the variable with the bytes of a `varbit`, or None

    @property
    def bits(self) -> Expr:
        """Its bits on the wire."""
        if self.length is None:
            return constant(self.width)
        return multiply(constant(8), variable(self.length))


class FieldLayout:
    """The variables of one program. Its names never become names of variables."""

    def __init__(self, program: LoadedProgram) -> None:
        self.program = program
        self.slots: dict[FieldRef, Slot] = {}
        # By header, unless it is metadata: whether it is valid.
        self.valid_bit: dict[str, Variable] = {}
        # By stack: the number of pushed elements.
        self.next_index: dict[str, Variable] = {}
        # By header in a union: whether the other members are valid.
        self.others: dict[str, tuple[Variable, ...]] = {}
        for number, header in enumerate(program.headers.values()):
            self._add_header(number, header)
        for number, (name, elements) in enumerate(program.stacks.items()):
            self.next_index[name] = Variable(f"next{number}", 0, len(elements))
        for union in program.unions.values():
            members = list(union.values())
            for name in members:
                self.others[name] = tuple(self.valid_bit[m] for m in members if m != name)
        slots = self.slots.values()
        held = (*(slot.variable for slot in slots), *(slot.length for slot in slots))
        packet = (*held, *self.valid_bit.values(), *self.next_index.values())
        # The names of all variables of a packet.
        self.names = frozenset(each.name for each in packet if each is not None)
        self.metadata_variables = frozenset(
            variable
            for (header, _), slot in self.slots.items()
            if program.headers[header].metadata
            for variable in (slot.variable, slot.length)
            if variable is not None
        )

    def _add_header(self, number: int, header: HeaderSpec) -> None:
        if not header.metadata:
            self.valid_bit[header.name] = Variable(f"ok{number}", 0, 1)
        for index, field in enumerate(header.fields):
            sign = 1 << (field.width - 1)
            low, high = (-sign, sign - 1) if field.signed else (0, 2 * sign - 1)
            length = Variable(f"vl{number}", 0, field.width // 8) if field.varbit else None
            held = Variable(f"h{number}_{index}", low, high)
            self.slots[header.name, field.name] = Slot(held, field.width, field.signed, length)

    def slot(self, header: str, field: str, where: str) -> Slot:
        """Return the slot of ``header.field``; ``$valid$`` is the validity bit."""
        if field == "$valid$" and header in self.valid_bit:
            return Slot(self.valid_bit[header], 1, False)
        try:
            return self.slots[header, field]
        except KeyError:
            raise UnsupportedProgramError(
                f"field {header}.{field}", where, "declare it in the header's type"
            ) from None

    def standard(self, name: str) -> Slot | None:
        """Return the slot of a standard metadata field, or None when the program has none."""
        reference = self.program.standard_field(name)
        slot = None if reference is None else self.slots[reference]
        if slot is not None and (slot.signed or slot.length):
            raise UnsupportedProgramError(
                "a signed field for a number of the switch", name, "declare it as bit<>"
            )
        return slot

    def valid(self, header: str) -> Expr:
        """Return whether a header is valid; metadata always is."""
        bit = self.valid_bit.get(header)
        return constant(1) if bit is None else variable(bit)

    def varbit(self, header: str) -> Slot | None:
        """Return the slot of a header's ``varbit``, or None where it has none."""
        return next((slot for slot in self.fields(header) if slot.length), None)

    def fields(self, header: str) -> tuple[Slot, ...]:
        """Return the slots of a header in wire order."""
        return tuple(
            self.slots[header, field.name] for field in self.program.headers[header].fields
        )
