# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Tables, registers and counters in native memory, with the interface of ProgramState."""

from collections.abc import Callable, MutableSequence
from ctypes import c_uint8, c_uint16, c_uint32, c_uint64
from typing import Any, overload

from switchgnn.softswitch.native.interface import TableShape, byte_size, cell_bytes, table_shapes
from switchgnn.softswitch.native.library import Switch
from switchgnn.softswitch.program import CounterArray, Program, RegisterArray, Table
from switchgnn.softswitch.state import (
    ProgramState,
    constant_entries,
    default_target,
    key_widths,
)
from switchgnn.softswitch.stateful import CounterCells, RegisterCells
from switchgnn.softswitch.tables import (
    Entry,
    Key,
    MatchTable,
    Prefix,
    Range,
    Target,
)

_CELLS = {1: c_uint8, 2: c_uint16, 4: c_uint32, 8: c_uint64}
_NativeKey = tuple[int, bytes, bytes, bytes, bytes, int]


class NativeState(ProgramState):
    """The state of a program in a native switch.

    Args:
        program: the program.
        switch: the switch that runs it.
    """

    def __init__(self, program: Program, switch: Switch) -> None:
        self._switch = switch
        self._shapes = table_shapes(program)
        self._registers = {name: number for number, name in enumerate(program.registers)}
        self._counters = {name: number for number, name in enumerate(program.counters)}
        super().__init__(program)

    def _table(self, table: Table) -> MatchTable:
        matcher = NativeMatcher(self._switch, self._shapes[table.name])
        constants = constant_entries(table, key_widths(self.program, table))
        return NativeTable(matcher, default_target(table), constants)

    def _register(self, array: RegisterArray) -> RegisterCells:
        number = self._registers[array.name]
        return _NativeRegister(self._switch, number, array.size, array.width)

    def _counter(self, array: CounterArray) -> CounterCells:
        return _NativeCounter(self._switch, self._counters[array.name], array.size)


class NativeMatcher:
    """The entries of a table in native memory.

    Args:
        switch: the switch.
        shape: how the table is laid out.
    """

    def __init__(self, switch: Switch, shape: TableShape) -> None:
        self._switch = switch
        self._shape = shape
        self._key_bytes = shape.key_words * 8
        self.lookup: Callable[[Key], Target | None] = self._refuse

    @staticmethod
    def _refuse(_key: Key) -> Target | None:
        raise NotImplementedError  # native code looks up

    def insert(self, entry: Entry) -> None:
        """Add an entry, or replace the one with the same matches and priority."""
        key = self._key(entry)
        number, data, counts = entry.target
        parameters = self._parameters(number, data)
        self._switch.call("table_put", *key, number, parameters, len(parameters))
        if counts is not None:
            here = self._switch.array(c_uint64, 2, self._switch.call("table_counts", *key))
            here[:] = list(counts)
            entry.target = (number, data, here)

    def remove(self, entry: Entry) -> None:
        """Remove an entry."""
        number, data, counts = entry.target
        if counts is not None:
            entry.target = (number, data, list(counts))
        self._switch.call("table_remove", *self._key(entry))

    def clear(self) -> None:
        """Remove every entry."""
        self._switch.call("table_clear", self._shape.number)

    def set_default(self, target: Target) -> None:
        """Replace the default entry."""
        number, data, _ = target
        parameters = self._parameters(number, data)
        self._switch.call("table_default", self._shape.number, number, parameters, len(parameters))

    def _parameters(self, number: int, data: tuple[int, ...]) -> bytes:
        if number < 0:
            return b""
        widths = self._shape.parameter_widths[number]
        return b"".join(
            (value & ((1 << width) - 1)).to_bytes(byte_size(width), "little")
            for value, width in zip(data, widths, strict=True)
        )

    def _key(self, entry: Entry) -> _NativeKey:
        value = mask = low = high = rank = 0
        for match, width in zip(entry.matches, self._shape.widths, strict=True):
            full = (1 << width) - 1
            value, mask, low, high = (each << width for each in (value, mask, low, high))
            if isinstance(match, Range):
                low, high = low | match.low & full, high | match.high & full
                continue
            match_mask = getattr(match, "mask", full) & full
            value, mask = value | match.value & full, mask | match_mask
            if isinstance(match, Prefix):
                rank = match.length
        if self._shape.kind == "priority":
            rank = entry.priority
        size = self._key_bytes
        packed = [each.to_bytes(size, "little") for each in (value, mask, low, high)]
        return self._shape.number, packed[0], packed[1], packed[2], packed[3], rank


class NativeTable(MatchTable):
    """A table whose entries native code looks up."""

    matcher: NativeMatcher

    def set_default(self, target: Target) -> None:
        """Replace the default entry."""
        super().set_default(target)
        self.matcher.set_default(target)


class _WideCells(MutableSequence[int]):
    """Cells of several words each.

    Args:
        words: the words of all cells.
        each: the words of one cell.
    """

    def __init__(self, words: Any, each: int) -> None:  # noqa: ANN401  ctypes arrays
        self._words = words
        self._bytes = memoryview(words).cast("B")
        self._size = 8 * each

    def __len__(self) -> int:
        return len(self._bytes) // self._size

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        places = range(len(self))[index]
        if isinstance(places, range):
            return [self._cell(place) for place in places]
        return self._cell(places)

    def _cell(self, place: int) -> int:
        begin = place * self._size
        return int.from_bytes(self._bytes[begin : begin + self._size], "little")

    def __setitem__(self, index: Any, value: Any) -> None:  # noqa: ANN401  as in its base class
        places = range(len(self))[index]
        if isinstance(places, range):
            for place, number in zip(places, value, strict=True):
                self[place] = number
            return
        begin = places * self._size
        self._bytes[begin : begin + self._size] = value.to_bytes(self._size, "little")

    def __delitem__(self, index: Any) -> None:  # noqa: ANN401  as in its base class
        raise TypeError

    def insert(self, _index: int, _value: int) -> None:
        """Refuse: the array has its size."""
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


class _NativeCounter(CounterCells):
    def __init__(self, switch: Switch, number: int, size: int) -> None:
        self.size = size
        self.packets = switch.array(c_uint64, size, switch.call("counter_packets", number))
        self.bytes = switch.array(c_uint64, size, switch.call("counter_bytes", number))
