"""ProgramState and its tables in native memory."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ctypes import byref, c_int32, c_uint8, c_uint16, c_uint32, c_uint64, string_at
from itertools import count
from struct import Struct
from typing import Any

from switchgnn.softswitch.base import state as base
from switchgnn.softswitch.base.program import LoadedProgram, RegisterArray
from switchgnn.softswitch.base.schema import TableSchema
from switchgnn.softswitch.base.tables import (
    EVERY_BIT,
    Entry,
    EntryKey,
    EntryTable,
    Match,
    Range,
    Target,
    Ternary,
)
from switchgnn.softswitch.native.build import Switch, TableShape, byte_size, cell_bytes

# As in runtime/tables.h.
_CONSTANT, _NOTED = 1, 2
_MARK_SHIFT = 24
_HEAD, _COUNTS = Struct("<I"), Struct("<QQ")
_CELLS = {1: c_uint8, 2: c_uint16, 4: c_uint32, 8: c_uint64}


class _NativeTable(EntryTable):
    """A table whose entries native code looks up; see runtime/tables.h for their records."""

    def __init__(
        self, switch: Switch, shape: TableShape, initial: Target, constants: Iterable[Entry]
    ) -> None:
        self._switch = switch
        self._shape = shape
        self._number = shape.number
        self.stride = int(switch.call("table_stride", shape.number))
        self._word_bytes = shape.key_words * 8
        # Value, mask, low and high end, and a rank; the value alone in an exact table.
        self._numbers = 1 if shape.exact else 4
        self._key_bytes = self._numbers * self._word_bytes + 8 * (not shape.exact)
        # Metadata of the few entries with it; in native memory they are marked.
        self.notes: dict[EntryKey, bytes] = {}
        self._fill(initial, constants)

    def _key(self, key: EntryKey) -> bytes:
        matches, priority = key
        value = mask = low = high = 0
        for match, width in zip(matches, self._shape.widths, strict=True):
            full = (1 << width) - 1
            value, mask, low, high = (each << width for each in (value, mask, low, high))
            if isinstance(match, Range):
                low, high = low | match.low & full, high | match.high & full
                continue
            match_mask = match.mask & full
            value, mask = value | match.value & match_mask, mask | match_mask
        numbers = (value, mask, low, high)[: self._numbers]
        words = b"".join(number.to_bytes(self._word_bytes, "little") for number in numbers)
        # Of prefixes the longest wins.
        rank = mask.bit_count() if self._shape.table.match_type == "lpm" else priority
        return (words + rank.to_bytes(8, "little"))[: self._key_bytes]

    def _parameters(self, number: int, data: tuple[int, ...]) -> bytes:
        if number < 0:
            return b""
        widths = self._shape.parameter_widths[number]
        return b"".join(
            (value & ((1 << width) - 1)).to_bytes(byte_size(width), "little")
            for value, width in zip(data, widths, strict=True)
        )

    def entry(self, record: bytes) -> Entry:
        counts = (
            list(_COUNTS.unpack_from(record, self._key_bytes))
            if self._shape.table.with_counters
            else None
        )
        place = self._key_bytes + _COUNTS.size * self._shape.table.with_counters
        (head,) = _HEAD.unpack_from(record, place)
        number, marks = head & ((1 << _MARK_SHIFT) - 1), head >> _MARK_SHIFT
        data = record[place + _HEAD.size :]
        sizes = map(byte_size, self._shape.parameter_widths[number])
        places = zip(self._shape.offsets(number), sizes, strict=True)
        values = tuple(int.from_bytes(data[at : at + size], "little") for at, size in places)
        target = (number, values, counts)
        return Entry(*self._matches(record), target, constant=bool(marks & _CONSTANT))

    def _matches(self, key: bytes) -> EntryKey:
        size, end = self._word_bytes, self._word_bytes * self._numbers
        words = [int.from_bytes(key[at : at + size], "little") for at in range(0, end, size)]
        ranked = self._shape.table.match_type in {"ternary", "range"}
        rank = int.from_bytes(key[end : self._key_bytes], "little") if ranked else 0
        return tuple(self._match(field, words) for field in range(len(self._shape.widths))), rank

    def _match(self, field: int, words: list[int]) -> Match:
        width, shift = self._shape.widths[field], self._shape.shift(field)
        value, *others = (word >> shift & ((1 << width) - 1) for word in words)
        kind = self._shape.table.key[field].match_type
        if kind == "range":
            return Range(others[1], others[2])
        return Ternary(value, EVERY_BIT if kind == "exact" else others[0])

    def _place(self, key: EntryKey) -> int:
        return int(self._switch.call("table_find", self._number, self._key(key)))

    def address(self, place: int) -> int:
        memory: int = self._switch.call("table_memory", self._number)
        return memory + place * self.stride

    def find(self, key: EntryKey) -> Entry | None:
        place = self._place(key)
        if place < 0:
            return None
        entry = self.entry(string_at(self.address(place), self.stride))
        entry.metadata = self.notes.get(key, b"")
        return entry

    def put(self, entry: Entry) -> None:
        number, data, _ = entry.target
        marks = _CONSTANT * entry.constant | _NOTED * bool(entry.metadata)
        parameters = self._parameters(number, data)
        key = self._key(entry.key)
        self._switch.call(
            "table_put", self._number, key, number, marks, parameters, len(parameters)
        )
        self.notes.pop(entry.key, None)
        if entry.metadata:
            self.notes[entry.key] = entry.metadata

    def remove(self, key: EntryKey) -> None:
        self._switch.call("table_remove", self._number, self._place(key))
        self.notes.pop(key, None)

    def set_default(self, target: Target) -> None:
        super().set_default(target)
        number, data, _ = target
        parameters = self._parameters(number, data)
        self._switch.call("table_default", self._number, number, parameters, len(parameters))

    def snapshot(self) -> Iterable[Entry]:
        return _Rows(self)

    def __len__(self) -> int:
        return int(self._switch.call("table_length", self._number))


class _Rows:
    def __init__(self, table: _NativeTable) -> None:
        self._table = table
        self.notes = dict(table.notes)
        length = len(table)
        self.data = string_at(table.address(0), length * table.stride) if length else b""

    def __len__(self) -> int:
        return len(self.data) // self._table.stride

    def __iter__(self) -> Iterator[Entry]:
        stride = self._table.stride
        for begin in range(0, len(self.data), stride):
            entry = self._table.entry(self.data[begin : begin + stride])
            entry.metadata = self.notes.get(entry.key, b"") if self.notes else b""
            yield entry


class NativeBatches:
    """Reads entries of exact tables from Write requests and writes Read responses."""

    def __init__(self, state: "NativeState", tables: Iterable[TableSchema]) -> None:
        self._switch = state.switch
        usable = [each for each in tables if _fits(each, state.shapes[each.name])]
        self._idents = frozenset(each.ident for each in usable)
        flat = list(format_numbers(usable, state.shapes))
        self._pointer = self._switch.call("formats_new", (c_uint64 * len(flat))(*flat))

    def read(self, request: bytes) -> "NativeBatch | None":
        """Read a Write request; None if it has other updates or an unusual encoding."""
        pointer = self._switch.wait("batch_read", self._pointer, request, len(request))
        return None if pointer is None else NativeBatch(self, self._switch, pointer, request)

    def answers(self, ident: int, entries: Iterable[Entry], at_most: int) -> Iterable[bytes] | None:
        """Encode entries as Read responses of at most ``at_most`` entries, or return None."""
        if ident not in self._idents or not isinstance(entries, _Rows) or entries.notes:
            return None
        return self._answers(ident, entries, at_most)

    def _answers(self, ident: int, rows: _Rows, at_most: int) -> Iterator[bytes]:
        answer, size = self._switch.call("answer_new"), c_uint64()
        try:
            for begin in range(0, len(rows), at_most):
                count = min(at_most, len(rows) - begin)
                place = self._switch.wait(
                    "answer_entries",
                    *(answer, self._pointer, ident, rows.data, begin, count, byref(size)),
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
        """Apply updates from ``begin`` on; return the place of the first that fails, or ``end``."""
        return int(self._switch.call("batch_apply", self._pointer, begin, end))

    def update(self, place: int) -> bytes:
        """Return the bytes of an update."""
        found = self._switch.call("batch_item", self._pointer, place)
        begin, length = found >> 32, found & 0xFFFFFFFF
        return self._request[begin : begin + length]

    def __del__(self) -> None:
        self._switch.call("batch_free", self._pointer)


def _fits(table: TableSchema, shape: TableShape) -> bool:
    """Return whether a P4Info, which may be wrong, agrees with an exact table."""
    actions = table.entry_actions
    lists: list[Sequence[Any]] = [table.fields, *(action.parameters for action in actions)]
    return (
        shape.exact
        and tuple(field.bitwidth for field in table.fields) == shape.widths
        and all(
            tuple(each.bitwidth for each in action.parameters)
            == shape.parameter_widths[action.number]
            for action in actions
        )
        and all(len({part.id for part in each}) == len(each) for each in lists)
        and table.size >= 0
    )


def format_numbers(
    tables: Sequence[TableSchema], shapes: Mapping[str, TableShape]
) -> Iterator[int]:
    """Yield the encodings of tables' entries as numbers for ``formats_new``."""
    yield len(tables)
    for table in tables:
        shape = shapes[table.name]
        yield from (table.ident, shape.number, table.size, not table.constant, len(table.fields))
        for place, field in enumerate(table.fields):
            yield from (field.id, field.bitwidth, shape.shift(place))
        yield len(table.entry_actions)
        for action in table.entry_actions:
            yield from (action.ident, action.number, len(action.parameters))
            for part, at in zip(action.parameters, shape.offsets(action.number), strict=True):
                yield from (part.id, part.bitwidth, 8 * at)


class NativeState(base.ProgramState):
    """The state of a program in a native switch."""

    def __init__(
        self, program: LoadedProgram, switch: Switch, shapes: Mapping[str, TableShape]
    ) -> None:
        self.switch = switch
        self.shapes = shapes
        self.tables = {
            name: _NativeTable(switch, shapes[name], table.default, base.fresh_entries(table))
            for name, table in program.tables.items()
        }
        self.registers = {
            name: base.RegisterCells(array.width, _cells(switch, number, array))
            for number, (name, array) in enumerate(program.registers.items())
        }
        self.counters = {
            name: base.CounterCells(
                *(
                    switch.array(c_uint64, array.size, switch.call("program_array", number + part))
                    for part in range(2)
                )
            )
            for number, (name, array) in zip(
                count(len(program.registers), 2), program.counters.items(), strict=False
            )
            if not array.is_direct
        }

    def set_group(self, ident: int, replicas: base.Replicas) -> None:
        """Set the copies that a multicast group makes in native code."""
        self.switch.call("switch_group", ident, *_arrays(replicas))

    def set_session(self, ident: int, replicas: base.Replicas, max_length: int = 0) -> None:
        """Set the copies that a clone session makes in native code."""
        self.switch.call("switch_session", ident, *_arrays(replicas), max_length)


def _arrays(replicas: base.Replicas) -> tuple[object, object, int]:
    copies = len(replicas)
    ports = (c_int32 * copies)(*(replica.port for replica in replicas))
    return ports, (c_uint32 * copies)(*(replica.instance for replica in replicas)), copies


def _cells(switch: Switch, number: int, array: RegisterArray) -> Any:  # noqa: ANN401  ctypes arrays
    each, address = cell_bytes(array.width), switch.call("program_array", number)
    if each in _CELLS:
        return switch.array(_CELLS[each], array.size, address)
    memory = switch.array(c_uint8, array.size * each, address)
    return _WideCells(memoryview(memory).cast("B"), each)


class _WideCells(Sequence[int]):
    def __init__(self, memory: memoryview, size: int) -> None:
        self._bytes = memory
        self._size = size
        self._begins = range(0, len(memory), size)

    def __len__(self) -> int:
        return len(self._begins)

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401  as in its base class
        if isinstance(index, slice):
            return [self[place] for place in range(len(self))[index]]
        begin = self._begins[index]
        return int.from_bytes(self._bytes[begin : begin + self._size], "little")

    def __setitem__(self, index: int, value: int) -> None:
        begin = self._begins[index]
        self._bytes[begin : begin + self._size] = value.to_bytes(self._size, "little")
