# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Local variables of the generated code for fields, validity bits and stack indices."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from switchgnn.softswitch.errors import UnsupportedProgramError
from switchgnn.softswitch.program import FieldRef, HeaderSpec, LoadedProgram

Key = TypeVar("Key", str, int)


@dataclass(frozen=True)
class Slot:
    """A field's variable.

    Attributes:
        width: bits; the maximum of a ``varbit``.
        signed: whether it is two's complement.
        length: the variable with the bytes of a ``varbit``, or empty.
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


class FieldLayout:
    """The variables of one program."""

    def __init__(self, program: LoadedProgram) -> None:
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

    def _add_header(self, number: int, header: HeaderSpec) -> None:
        # Names of the program never become names of the code.
        if not header.metadata:
            self._valid[header.name] = f"ok{number}"
        for index, field in enumerate(header.fields):
            variable = f"h{number}_{index}"
            length = f"vl{number}" if field.varbit else ""
            self._slots[header.name, field.name] = Slot(variable, field.width, field.signed, length)

    def slot(self, header: str, field: str, where: str) -> Slot:
        """Return the slot of ``header.field``; ``$valid$`` is the validity bit."""
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
        slot = None if reference is None else self._slots[reference]
        if slot is not None and (slot.signed or slot.length):
            raise UnsupportedProgramError(
                "a signed field for a number of the switch", name, "declare it as bit<>"
            )
        return slot

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


class GlobalNames:
    """Short identifiers for the objects the generated functions use as globals.

    Attributes:
        register: by register array, its list of cells.
        packet_counts, byte_counts: by counter array, its lists of counts.
        lookup: by table, the function from a key to an entry or None.
        default: by table, the list with the default entry.
        keeper: by field list, the function that keeps its fields.
        cloner: by field list, the function that copies its fields.
    """

    def __init__(self, program: LoadedProgram) -> None:
        self.register = _numbered("reg{}", program.registers)
        self.packet_counts = _numbered("ctr{}_packets", program.counters)
        self.byte_counts = _numbered("ctr{}_bytes", program.counters)
        self.lookup = _numbered("tbl{}_lookup", program.tables)
        self.default = _numbered("tbl{}_default", program.tables)
        self.keeper = _numbered("keep{}", program.field_lists)
        self.cloner = _numbered("clone{}", program.field_lists)


def _numbered(pattern: str, names: Iterable[Key]) -> dict[Key, str]:
    return {name: pattern.format(number) for number, name in enumerate(names)}


class SourceWriter:
    """A list of lines and the current block depth."""

    def __init__(self, depth: int = 0) -> None:
        self.lines: list[str] = []
        self._depth = depth

    def line(self, text: str) -> None:
        """Append one line at the current depth."""
        # One space per level is enough for Python, and keeps the source short.
        self.lines.append(" " * self._depth + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Open a block such as ``if a:``; an empty block gets ``pass``."""
        self.line(header)
        self._depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.line("pass")
        self._depth -= 1

    def text(self) -> str:
        """Return all lines, each ended by a newline."""
        return "".join(line + "\n" for line in self.lines)
