# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Splits headers into runs of bytes and generates their unpacking and packing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import Struct

from switchgnn.softswitch.codegen import arithmetic
from switchgnn.softswitch.codegen.layout import Layout, Slot
from switchgnn.softswitch.codegen.terms import Term
from switchgnn.softswitch.errors import UnsupportedProgramError

_NATIVE = {8: "B", 16: "H", 32: "I", 64: "Q"}


@dataclass(frozen=True)
class Run:
    """Consecutive fields that together fill whole bytes.

    No computation uses a field of a ``raw`` run: its first variable holds it undecoded.
    """

    slots: tuple[Slot, ...]
    raw: bool

    @property
    def width(self) -> int:
        """The width of the run in bits."""
        return sum(slot.width for slot in self.slots)

    @property
    def native(self) -> bool:
        """Whether one struct code decodes the run to an integer."""
        return self.width in _NATIVE

    @property
    def code(self) -> str:
        """The struct code of the run."""
        return _NATIVE.get(self.width) or f"{self.width // 8}s"

    @property
    def carried(self) -> tuple[str, ...]:
        """Variables that hold the run between parser and deparser."""
        return (self.slots[0].variable,) if self.raw else tuple(s.variable for s in self.slots)


class HeaderCodec:
    """Reads one header from the wire and writes it back.

    Args:
        layout: the variables of the program.
        header: the name of the header.
        number: the number that makes the names of the generated functions unique.
        touched: the variables that the program uses; runs without one stay undecoded.
    """

    def __init__(self, layout: Layout, header: str, number: int, touched: frozenset[str]) -> None:
        self.header = header
        self.runs = tuple(_runs(layout, header, touched))
        self.unpack_name = f"unpack{number}"
        self.pack_name = f"pack{number}"
        self.struct = Struct(">" + "".join(run.code for run in self.runs))

    @property
    def size(self) -> int:
        """The length of the header on the wire in bytes."""
        return self.struct.size

    def carried(self) -> Iterator[str]:
        """Yield the variables that hold the header between parser and deparser."""
        for run in self.runs:
            yield from run.carried

    def unpack_lines(self, offset: str) -> Iterator[str]:
        """Yield the statements that read the header at ``offset`` of ``data``."""
        targets = ", ".join(run.slots[0].variable for run in self.runs)
        yield f"{targets}, = {self.unpack_name}(data, {offset})"
        for run in self.runs:
            if not run.raw:
                yield from _decode(run)

    def pack_call(self) -> str:
        """Return the expression for the bytes of the header."""
        return f"{self.pack_name}({', '.join(_encode(run) for run in self.runs)})"


def _runs(layout: Layout, header: str, touched: frozenset[str]) -> Iterator[Run]:
    pending: list[Slot] = []
    for slot in layout.fields(header):
        pending.append(slot)
        if sum(s.width for s in pending) % 8 == 0:
            raw = all(s.variable not in touched for s in pending)
            yield Run(tuple(pending), raw)
            pending = []
    if pending:
        raise UnsupportedProgramError(
            "headers that are not a whole number of bytes",
            f"header '{header}'",
            "pad the header type",
        )


def _decode(run: Run) -> Iterator[str]:
    first = run.slots[0].variable
    whole = first if run.native else f'from_bytes({first}, "big")'
    if len(run.slots) == 1:
        value = _signed(run.slots[0], whole)
        if value != first:
            yield f"{first} = {value}"
        return
    yield f"_b = {whole}"
    position = run.width
    for slot in run.slots:
        position -= slot.width
        yield f"{slot.variable} = {_signed(slot, _slice('_b', position, slot, run.width))}"


def _slice(source: str, position: int, slot: Slot, width: int) -> str:
    shifted = f"{source} >> {position}" if position else source
    return shifted if position + slot.width == width else f"({shifted}) & {slot.mask}"


def _signed(slot: Slot, text: str) -> str:
    if not slot.signed:
        return text
    return arithmetic.wrap_signed(Term(text, 0, slot.mask), slot.width).text


def _encode(run: Run) -> str:
    if run.raw:
        return run.slots[0].variable
    whole = joined(run.slots)
    return whole if run.native else f'({whole}).to_bytes({run.width // 8}, "big")'


def joined(slots: Sequence[Slot]) -> str:
    """Return the expression for fields that stand one behind the other."""
    parts = []
    position = 0
    for slot in reversed(slots):
        text = f"({slot.variable} & {slot.mask})" if slot.signed else slot.variable
        parts.append(f"{text} << {position}" if position else text)
        position += slot.width
    return " | ".join(reversed(parts))


def header_codecs(layout: Layout, touched: frozenset[str]) -> dict[str, HeaderCodec]:
    """Return the codecs of all headers that can be on the wire."""
    headers = [header for header in layout.program.headers.values() if not header.metadata]
    return {
        header.name: HeaderCodec(layout, header.name, number, touched)
        for number, header in enumerate(headers)
        if header.fields
    }
