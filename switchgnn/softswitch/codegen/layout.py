# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Gives every field, validity bit and stack index a local variable of the generated code."""

from dataclasses import dataclass

from switchgnn.softswitch.errors import UnsupportedProgramError
from switchgnn.softswitch.program import FieldRef, Header, Program


@dataclass(frozen=True)
class Slot:
    """A field's variable, and what it can be.

    Attributes:
        variable: the variable.
        width: its bits; the most bits of a ``varbit``.
        signed: whether it is two's complement.
        length: the variable with the bytes of a ``varbit``; empty for other fields.
    """

    variable: str
    width: int
    signed: bool
    length: str = ""

    @property
    def mask(self) -> int:
        """All ones over the width."""
        return (1 << self.width) - 1

    @property
    def low(self) -> int:
        """The smallest value."""
        return -(1 << (self.width - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        """The largest value."""
        return (1 << (self.width - 1)) - 1 if self.signed else self.mask


class Layout:
    """The variables of one program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._slots: dict[FieldRef, Slot] = {}
        self._valid: dict[str, str] = {}
        self._next: dict[str, str] = {}
        self._others: dict[str, tuple[str, ...]] = {}
        for number, header in enumerate(program.headers.values()):
            self._add_header(number, header)
        for number, name in enumerate((*program.stacks, *program.union_stacks)):
            self._next[name] = f"next{number}"
        for union in program.unions.values():
            members = list(union.members.values())
            for name in members:
                self._others[name] = tuple(self._valid[m] for m in members if m != name)
        self.metadata_variables = frozenset(
            variable
            for (header, _), slot in self._slots.items()
            if program.headers[header].metadata
            for variable in (slot.variable, slot.length)
            if variable
        )

    def _add_header(self, number: int, header: Header) -> None:
        # No name of the program becomes one of the code.
        if not header.metadata:
            self._valid[header.name] = f"ok{number}"
        for index, field in enumerate(header.fields):
            variable = f"h{number}_{index}"
            length = f"vl{number}" if field.varbit else ""
            self._slots[header.name, field.name] = Slot(variable, field.width, field.signed, length)

    def slot(self, header: str, field: str, where: str) -> Slot:
        """Return the slot of ``header.field``; ``$valid$`` is the validity bit.

        Args:
            header: the name of the header.
            field: the name of the field.
            where: the object of the program that uses the field, for the error.

        Returns:
            The slot.

        Raises:
            UnsupportedProgramError: the header has no such field.
        """
        if field == "$valid$":
            return Slot(self.valid(header), 1, False)
        try:
            return self._slots[header, field]
        except KeyError:
            raise UnsupportedProgramError(
                f"field {header}.{field}", where, "declare it in the header's type"
            ) from None

    def has(self, header: str, field: str) -> bool:
        """Return whether a header has a field."""
        return (header, field) in self._slots

    def standard(self, name: str) -> Slot | None:
        """Return the slot of a standard metadata field, or None when the program has none."""
        reference = self.program.standard_field(name)
        return None if reference is None else self._slots[reference]

    def valid(self, header: str) -> str:
        """Return the source of a header's validity; metadata is always valid."""
        return self._valid.get(header, "1")

    def others(self, header: str) -> tuple[str, ...]:
        """Return the validity of the other members of a header's union, if it is in one."""
        return self._others.get(header, ())

    def varbit(self, header: str) -> Slot | None:
        """Return the slot of a header's ``varbit``, or None where it has none."""
        return next((slot for slot in self.fields(header) if slot.length), None)

    def next_index(self, stack: str) -> str:
        """Return the variable that counts the pushed elements of a stack."""
        return self._next[stack]

    def fields(self, header: str) -> tuple[Slot, ...]:
        """Return the slots of a header in wire order."""
        return tuple(
            self._slots[header, field.name] for field in self.program.headers[header].fields
        )
