# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Tables, registers and counters in native memory, with the interface of ProgramState."""

from collections.abc import Mapping, MutableSequence, Sequence
from ctypes import c_uint8, c_uint16, c_uint32, c_uint64
from typing import Any, overload

from switchgnn.softswitch.native.batches import NativeBatches
from switchgnn.softswitch.native.interface import TableShape, cell_bytes
from switchgnn.softswitch.native.library import Switch
from switchgnn.softswitch.native.tables import NativeRecords, NativeTable
from switchgnn.softswitch.program import (
    CounterArray,
    Program,
    RegisterArray,
    Table,
    key_widths,
)
from switchgnn.softswitch.state import ProgramState, constant_entries, default_target
from switchgnn.softswitch.stateful import CounterCells, RegisterCells
from switchgnn.softswitch.tables import EntryFormat

_CELLS = {1: c_uint8, 2: c_uint16, 4: c_uint32, 8: c_uint64}


class NativeState(ProgramState):
    """The state of a program in a native switch.

    Args:
        program: the program.
        switch: the switch that runs it.
        shapes: how its tables are laid out, by their names.
    """

    def __init__(self, program: Program, switch: Switch, shapes: Mapping[str, TableShape]) -> None:
        self._switch = switch
        self._shapes = shapes
        self._registers = {name: number for number, name in enumerate(program.registers)}
        self._counters = {name: number for number, name in enumerate(program.counters)}
        super().__init__(program)

    def _table(self, table: Table) -> NativeTable:
        constants = constant_entries(table, key_widths(self.program, table))
        records = NativeRecords(self._switch, self._shapes[table.name])
        return NativeTable(records, default_target(table), constants)

    def _register(self, array: RegisterArray) -> RegisterCells:
        number = self._registers[array.name]
        return _NativeRegister(self._switch, number, array.size, array.width)

    def _counter(self, array: CounterArray) -> CounterCells:
        return _NativeCounter(self._switch, self._counters[array.name], array.size)

    def batches(self, formats: Sequence[EntryFormat]) -> NativeBatches:
        """Return what takes entries of these formats in batches."""
        return NativeBatches(self._switch, self._shapes, formats)


class _WideCells(MutableSequence[int]):
    """Cells of several words each.

    Args:
        words: the words of all cells.
        each: the words of one cell.
    """

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
        """Return the cells that words are, one place of all of them after the other."""
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
        self._bytes = memoryview(switch.array(c_uint8, size * each, address))
        self._each = each

    def image(self, number: int) -> bytes:
        """Return a copy of the first cells as they are kept: it is equal while they are."""
        return self._bytes[: number * self._each].tobytes()


class _NativeCounter(CounterCells):
    def __init__(self, switch: Switch, number: int, size: int) -> None:
        self.size = size
        self.packets = switch.array(c_uint64, size, switch.call("counter_packets", number))
        self.bytes = switch.array(c_uint64, size, switch.call("counter_bytes", number))
