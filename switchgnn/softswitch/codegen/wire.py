# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Split headers into runs of bytes and generate their unpacking and packing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import Struct

from switchgnn.softswitch.codegen import arithmetic
from switchgnn.softswitch.codegen.arithmetic import Term
from switchgnn.softswitch.codegen.layout import FieldLayout, Slot
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


class Part:
    """Runs of one header whose place in it is known; one call reads or writes them."""

    def __init__(self, runs: Sequence[Run], number: int) -> None:
        self.runs = tuple(runs)
        self.unpack_name = f"unpack{number}"
        self.pack_name = f"pack{number}"
        self.struct = Struct(">" + "".join(run.code for run in self.runs))

    @property
    def size(self) -> int:
        """The length of the runs on the wire in bytes."""
        return self.struct.size

    def unpack_lines(self, offset: str) -> Iterator[str]:
        """Yield the statements that read the runs at ``offset`` of ``data``."""
        targets = ", ".join(run.slots[0].variable for run in self.runs)
        yield f"{targets}, = {self.unpack_name}(data, {offset})"
        for run in self.runs:
            if not run.raw:
                yield from _decode(run)

    def pack_call(self) -> str:
        """Return the expression for the bytes of the runs."""
        return f"{self.pack_name}({', '.join(_encode(run) for run in self.runs)})"


class VaryingRun:
    """The run of a header that has its ``varbit``; the packet brings the length."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.slots = tuple(slots)
        place = next(index for index, slot in enumerate(slots) if slot.length)
        self.varbit = slots[place]
        self._before, self._after = self.slots[:place], self.slots[place + 1 :]
        self._tail = sum(slot.width for slot in self._after)
        self.fixed_bytes = (self._tail + sum(slot.width for slot in self._before)) // 8

    @property
    def most_bytes(self) -> int:
        """The bytes of the run with a ``varbit`` of its most bits."""
        return self.fixed_bytes + self.varbit.width // 8

    @property
    def bytes(self) -> str:
        """The expression for the bytes of the run."""
        fixed = f" + {self.fixed_bytes}" if self.fixed_bytes else ""
        return f"{self.varbit.length}{fixed}"

    def unpack_lines(self, begin: int) -> Iterator[str]:
        """Yield the statements that read the run ``begin`` bytes after ``pos``."""
        end = begin + self.fixed_bytes
        variable, length = self.varbit.variable, self.varbit.length
        whole = f'from_bytes(data[pos + {begin}:pos + {end} + {length}], "big")'
        if len(self.slots) == 1:
            yield f"{variable} = {whole}"
            return
        yield f"_b = {whole}"
        shifted = f"_b >> {self._tail}" if self._tail else "_b"
        masked = f"({shifted}) & (1 << 8 * {length}) - 1" if self._before else shifted
        yield f"{variable} = {masked}"
        position = sum(slot.width for slot in self._before)
        for slot in self._before:
            position -= slot.width
            place = f"{self._tail + position} + 8 * {length}"
            yield f"{slot.variable} = {_signed(slot, f'_b >> {place} & {slot.mask}')}"
        position = self._tail
        for slot in self._after:
            position -= slot.width
            yield f"{slot.variable} = {_signed(slot, f'_b >> {position} & {slot.mask}')}"

    def pack_call(self) -> str:
        """Return the expression for the bytes of the run."""
        parts = []
        if self._before:
            parts.append(f"({joined(self._before)}) << {self._tail} + 8 * {self.varbit.length}")
        value = self.varbit.variable
        parts.append(f"{value} << {self._tail}" if self._tail else value)
        if self._after:
            parts.append(joined(self._after))
        return f'({" | ".join(parts)}).to_bytes({self.bytes}, "big")'


class HeaderCodec:
    """Reads one header from the wire and writes it back."""

    def __init__(
        self, layout: FieldLayout, header: str, number: int, touched: frozenset[str]
    ) -> None:
        self.header = header
        runs = list(_runs(layout, header, touched))
        place = next((i for i, run in enumerate(runs) if isinstance(run, VaryingRun)), len(runs))
        before = [run for run in runs[:place] if isinstance(run, Run)]
        after = [run for run in runs[place + 1 :] if isinstance(run, Run)]
        self._before = Part(before, 2 * number) if before else None
        self.varying = next((run for run in runs[place:] if isinstance(run, VaryingRun)), None)
        self._after = Part(after, 2 * number + 1) if after else None

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts whose length is known, in the order of the wire."""
        return tuple(part for part in (self._before, self._after) if part is not None)

    @property
    def size(self) -> int:
        """The length of the header on the wire in bytes, without a ``varbit``."""
        varying = 0 if self.varying is None else self.varying.fixed_bytes
        return sum(part.size for part in self.parts) + varying

    @property
    def most_bytes(self) -> int:
        """The length of the header on the wire in bytes, at most."""
        return self.size + (0 if self.varying is None else self.varying.varbit.width // 8)

    def carried(self) -> Iterator[str]:
        """Yield the variables that hold the header between parser and deparser."""
        for part in self.parts:
            for run in part.runs:
                yield from run.carried
        if self.varying is not None:
            yield from (slot.variable for slot in self.varying.slots)
            yield self.varying.varbit.length

    def unpack_lines(self) -> Iterator[str]:
        """Yield the statements that read the header at ``pos`` of ``data``."""
        place = "pos"
        begin = 0
        if self._before is not None:
            yield from self._before.unpack_lines(place)
            begin = self._before.size
        if self.varying is not None:
            yield from self.varying.unpack_lines(begin)
            place = f"pos + {begin} + {self.varying.bytes}"
        if self._after is not None:
            yield from self._after.unpack_lines(place)

    def pack_calls(self) -> Iterator[str]:
        """Yield the expressions for the bytes of the header, in order."""
        for each in (self._before, self.varying, self._after):
            if each is not None:
                yield each.pack_call()


def _runs(layout: FieldLayout, header: str, touched: frozenset[str]) -> Iterator[Run | VaryingRun]:
    pending: list[Slot] = []
    for slot in layout.fields(header):
        pending.append(slot)
        if sum(s.width for s in pending if not s.length) % 8 == 0:
            if any(s.length for s in pending):
                yield VaryingRun(pending)
            else:
                yield Run(tuple(pending), all(s.variable not in touched for s in pending))
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
    """Return the expression for concatenated fields."""
    parts = []
    position = 0
    for slot in reversed(slots):
        text = f"({slot.variable} & {slot.mask})" if slot.signed else slot.variable
        parts.append(f"{text} << {position}" if position else text)
        position += slot.width
    return " | ".join(reversed(parts))


def header_codecs(layout: FieldLayout, touched: frozenset[str]) -> dict[str, HeaderCodec]:
    """Return the codecs of all headers that can be on the wire."""
    headers = [header for header in layout.program.headers.values() if not header.metadata]
    return {
        header.name: HeaderCodec(layout, header.name, number, touched)
        for number, header in enumerate(headers)
        if header.fields
    }
