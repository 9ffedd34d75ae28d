# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""ProgramState in native memory."""

from collections.abc import Iterable, Iterator, Mapping, MutableSequence, Sequence
from ctypes import byref, c_int, c_uint8, c_uint16, c_uint32, c_uint64, string_at
from typing import Any, overload

from switchgnn.softswitch.native.library import Switch, TableShape, cell_bytes, numbers
from switchgnn.softswitch.native.tables import NativeRecords, NativeRows, NativeTable
from switchgnn.softswitch.program import (
    CounterArray,
    LoadedProgram,
    RegisterArray,
    TableSpec,
    key_widths,
)
from switchgnn.softswitch.state import (
    CounterCells,
    ProgramState,
    RegisterCells,
    constant_entries,
    default_target,
)
from switchgnn.softswitch.tables import ActionFormat, Entry, EntryFormat

_MOST_FIELDS = 64  # bits of the set of seen fields in runtime/batches.h


class NativeBatches:
    """Reads entries from Write requests and writes Read responses."""

    def __init__(
        self, switch: Switch, shapes: Mapping[str, TableShape], formats: Sequence[EntryFormat]
    ) -> None:
        self._switch = switch
        usable = [each for each in formats if _fits(each, shapes[each.name])]
        self._idents = frozenset(each.ident for each in usable)
        flat = format_numbers(usable, shapes)
        self._pointer = switch.call("formats_new", numbers(c_uint64, flat))

    def read(self, request: bytes) -> "NativeBatch | None":
        """Read a Write request; None if its encoding is unusual."""
        pointer = self._switch.wait("batch_read", self._pointer, request, len(request))
        return None if pointer is None else NativeBatch(self, self._switch, pointer, request)

    def answers(self, ident: int, entries: Iterable[Entry], at_most: int) -> Iterable[bytes] | None:
        """Encode entries as Read responses of at most ``at_most`` entries, or return None."""
        if ident not in self._idents or not isinstance(entries, NativeRows) or entries.notes:
            return None
        return self._answers(ident, entries, at_most)

    def _answers(self, ident: int, rows: NativeRows, at_most: int) -> Iterator[bytes]:
        answer, size = self._switch.call("answer_new"), c_uint64()
        try:
            for begin in range(0, len(rows), at_most):
                count = min(at_most, len(rows) - begin)
                place = self._switch.wait(
                    "answer_entries",
                    *(answer, self._pointer, ident, rows.pointer, begin, count, byref(size)),
                )
                yield string_at(place, size.value)
        finally:
            self._switch.call("answer_free", answer)

    def __del__(self) -> None:
        self._switch.call("formats_free", self._pointer)


class NativeBatch:
    """The updates of one Write request; see runtime/batches.h."""

    def __init__(
        self, batches: NativeBatches, switch: Switch, pointer: int, request: bytes
    ) -> None:
        self._batches = batches
        self._switch = switch
        self._pointer = pointer
        self._request = request
        size = c_uint64()
        rest = switch.call("batch_rest", pointer, byref(size))
        self.rest = string_at(rest, size.value) if size.value else b""

    def __len__(self) -> int:
        return int(self._switch.call("batch_length", self._pointer))

    def apply(self, begin: int, end: int) -> int:
        """Apply updates from ``begin`` on; return the place of the first left to Python, or end."""
        return int(self._switch.call("batch_apply", self._pointer, begin, end))

    def is_read(self, place: int) -> bool:
        """Return whether an update was read natively, so that it is not in the rest."""
        return not self._item(place)[2]

    def update(self, place: int) -> bytes:
        """Return the bytes of an update."""
        begin, length, _ = self._item(place)
        return self._request[begin : begin + length]

    def _item(self, place: int) -> tuple[int, int, bool]:
        begin, length, odd = c_uint64(), c_uint64(), c_int()
        self._switch.call(
            "batch_item", self._pointer, place, byref(begin), byref(length), byref(odd)
        )
        return begin.value, length.value, bool(odd.value)

    def __del__(self) -> None:
        self._switch.call("batch_free", self._pointer)


def _fits(written: EntryFormat, shape: TableShape) -> bool:
    """Return whether a P4Info, which may be wrong, agrees with the table."""
    lists = [written.fields, *(action.parameters for action in written.actions)]
    return (
        shape.kind == "exact"
        and tuple(width for _, width in written.fields) == shape.widths
        and all(_widths(each) == shape.parameter_widths[each.number] for each in written.actions)
        and all(len({ident for ident, _ in each}) == len(each) <= _MOST_FIELDS for each in lists)
        and written.size >= 0
    )


def _widths(action: ActionFormat) -> tuple[int, ...]:
    return tuple(width for _, width in action.parameters)


def format_numbers(formats: Sequence[EntryFormat], shapes: Mapping[str, TableShape]) -> list[int]:
    """Return formats as numbers for ``formats_new``."""
    flat = [len(formats)]
    for each in formats:
        flat += _numbers(each, shapes[each.name])
    return flat


def _numbers(written: EntryFormat, shape: TableShape) -> Iterator[int]:
    yield from (written.ident, shape.number, written.size, written.writable, len(written.fields))
    for place, (ident, width) in enumerate(written.fields):
        yield from (ident, width, shape.shift(place))
    yield len(written.actions)
    for action in written.actions:
        yield from (action.ident, action.number, len(action.parameters))
        for (ident, width), at in zip(action.parameters, shape.offsets(action.number), strict=True):
            yield from (ident, width, 8 * at)


_CELLS = {1: c_uint8, 2: c_uint16, 4: c_uint32, 8: c_uint64}


class NativeState(ProgramState):
    """The state of a program in a native switch."""

    def __init__(
        self, program: LoadedProgram, switch: Switch, shapes: Mapping[str, TableShape]
    ) -> None:
        self._switch = switch
        self._shapes = shapes
        self._registers = {name: number for number, name in enumerate(program.registers)}
        self._counters = {name: number for number, name in enumerate(program.counters)}
        super().__init__(program)

    def _table(self, table: TableSpec) -> NativeTable:
        constants = constant_entries(table, key_widths(self.program, table))
        records = NativeRecords(self._switch, self._shapes[table.name])
        return NativeTable(records, default_target(table), constants)

    def _register(self, array: RegisterArray) -> RegisterCells:
        number = self._registers[array.name]
        return _NativeRegister(self._switch, number, array.size, array.width)

    def _counter(self, array: CounterArray) -> CounterCells:
        return _NativeCounter(self._switch, self._counters[array.name], array.size)

    def batches(self, formats: Sequence[EntryFormat]) -> NativeBatches:
        """Return the batch reader of entries of these formats."""
        return NativeBatches(self._switch, self._shapes, formats)


class _WideCells(MutableSequence[int]):
    """Cells of several words."""

    def __init__(self, words: Any, each: int) -> None:  # noqa: ANN401  ctypes arrays
        self._bytes = memoryview(words).cast("B")
        self._words = self._bytes.cast("Q")
        self._each = each
        self._size = 8 * each
        self._places = range(len(words) // each)

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        places = self._places[index]
        if isinstance(places, int):
            begin = places * self._size
            return int.from_bytes(self._bytes[begin : begin + self._size], "little")
        if places.step != 1:
            return [self[place] for place in places]
        return self._cells(self._words[places.start * self._each : places.stop * self._each])

    def _cells(self, of: memoryview) -> list[int]:
        """Combine words to cells, one word of all cells at a time."""
        words = of.tolist()
        cells: list[int] = words[:: self._each]
        for place in range(1, self._each):
            higher = words[place :: self._each]
            cells = [cell | word << 64 * place for cell, word in zip(cells, higher, strict=True)]
        return cells

    def __setitem__(self, index: Any, value: Any) -> None:  # noqa: ANN401  as in its base class
        places = self._places[index]
        if isinstance(places, range):
            for place, number in zip(places, value, strict=True):
                self[place] = number
            return
        begin = places * self._size
        self._bytes[begin : begin + self._size] = value.to_bytes(self._size, "little")

    def __delitem__(self, index: Any) -> None:  # noqa: ANN401  as in its base class
        raise TypeError

    def insert(self, _index: int, _value: int) -> None:
        """Refuse: the size is fixed."""
        raise TypeError


class _NativeRegister(RegisterCells):
    def __init__(self, switch: Switch, number: int, size: int, width: int) -> None:
        self.size = size
        self.width = width
        each = cell_bytes(width)
        address = switch.call("register_cells", number)
        kind = _CELLS.get(each)
        if kind is not None:
            self.cells = switch.array(kind, size, address)
        else:
            self.cells = _WideCells(switch.array(c_uint64, size * each // 8, address), each // 8)
        self._bytes = memoryview(switch.array(c_uint8, size * each, address))
        self._each = each

    def image(self, number: int) -> bytes:
        """Return a comparable copy of the first cells."""
        return self._bytes[: number * self._each].tobytes()


class _NativeCounter(CounterCells):
    def __init__(self, switch: Switch, number: int, size: int) -> None:
        self.size = size
        self.packets = switch.array(c_uint64, size, switch.call("counter_packets", number))
        self.bytes = switch.array(c_uint64, size, switch.call("counter_bytes", number))
