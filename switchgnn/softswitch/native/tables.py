# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Tables with their entries in native memory."""

from collections.abc import Iterable, Iterator
from ctypes import c_uint64, string_at

from switchgnn.softswitch.native.library import Switch, TableShape, byte_size
from switchgnn.softswitch.tables import (
    Entry,
    EntryKey,
    EntryTable,
    Exact,
    Match,
    Prefix,
    Range,
    Target,
    Ternary,
)

# As in runtime/tables.h.
_CONSTANT, _NOTED = 1, 2
_MARK_SHIFT, _ACTION_BYTES, _COUNTS_BYTES = 24, 4, 16


class NativeRecords:
    """Encodes the records of a table; see runtime/tables.h."""

    def __init__(self, switch: Switch, shape: TableShape) -> None:
        self.switch = switch
        self.shape = shape
        self.number = shape.number
        self.counted = shape.table.with_counters
        self.stride = int(switch.call("table_stride", shape.number))
        self._word_bytes = shape.key_words * 8
        self._key_bytes = {
            "exact": self._word_bytes,
            "lpm": 2 * self._word_bytes + 8,
            "priority": 4 * self._word_bytes + 8,
        }[shape.kind]

    def key(self, key: EntryKey) -> bytes:
        """Return an entry's key as in runtime/tables.h."""
        matches, priority = key
        value = mask = low = high = rank = 0
        for match, width in zip(matches, self.shape.widths, strict=True):
            full = (1 << width) - 1
            value, mask, low, high = (each << width for each in (value, mask, low, high))
            if isinstance(match, Range):
                low, high = low | match.low & full, high | match.high & full
                continue
            match_mask = getattr(match, "mask", full) & full
            value, mask = value | match.value & match_mask, mask | match_mask
            if isinstance(match, Prefix):
                rank = match.length
        kind, size = self.shape.kind, self._word_bytes
        numbers = {"exact": (value,), "lpm": (value, mask), "priority": (value, mask, low, high)}
        words = b"".join(number.to_bytes(size, "little") for number in numbers[kind])
        if kind == "exact":
            return words
        return words + (priority if kind == "priority" else rank).to_bytes(8, "little")

    def parameters(self, number: int, data: tuple[int, ...]) -> bytes:
        """Encode the parameters of an action, given by its place in the table."""
        if number < 0:
            return b""
        widths = self.shape.parameter_widths[number]
        return b"".join(
            (value & ((1 << width) - 1)).to_bytes(byte_size(width), "little")
            for value, width in zip(data, widths, strict=True)
        )

    def entry(self, record: bytes) -> Entry:
        """Return the entry in a record, without its metadata."""
        key = record[: self._key_bytes]
        place = self._key_bytes
        counts: list[int] | None = None
        if self.counted:
            counted = record[place : place + _COUNTS_BYTES]
            counts = [int.from_bytes(half, "little") for half in (counted[:8], counted[8:])]
            place += _COUNTS_BYTES
        head = int.from_bytes(record[place : place + _ACTION_BYTES], "little")
        number, marks = head & ((1 << _MARK_SHIFT) - 1), head >> _MARK_SHIFT
        data = self._data(number, record[place + _ACTION_BYTES :])
        constant = bool(marks & _CONSTANT)
        return Entry(*self._matches(key), (number, data, counts), constant=constant)

    def _data(self, number: int, data: bytes) -> tuple[int, ...]:
        sizes = map(byte_size, self.shape.parameter_widths[number])
        places = zip(self.shape.offsets(number), sizes, strict=True)
        return tuple(int.from_bytes(data[at : at + size], "little") for at, size in places)

    def _matches(self, key: bytes) -> EntryKey:
        size, kind = self._word_bytes, self.shape.kind
        count = {"exact": 1, "lpm": 2, "priority": 4}[kind]
        parts = [key[at : at + size] for at in range(0, size * count, size)]
        words = [int.from_bytes(part, "little") for part in parts]
        rank = int.from_bytes(key[size * count :], "little")
        matches = tuple(self._match(field, words) for field in range(len(self.shape.widths)))
        return matches, rank if kind == "priority" else 0

    def _match(self, field: int, words: list[int]) -> Match:
        width, shift = self.shape.widths[field], self.shape.shift(field)
        value, *others = (word >> shift & ((1 << width) - 1) for word in words)
        kind = self.shape.table.key[field].match_type
        if kind == "range":
            return Range(others[1], others[2])
        if kind == "lpm":
            return Prefix(value, others[0].bit_count(), width)
        return Exact(value) if kind in {"exact", "valid"} else Ternary(value, others[0])


class NativeRows:
    """A copy of all records of a table."""

    def __init__(self, records: NativeRecords, notes: dict[EntryKey, bytes]) -> None:
        self.records = records
        self.notes = notes
        self.pointer = records.switch.call("table_rows", records.number)
        self._memory = records.switch.call("rows_memory", self.pointer)

    def __len__(self) -> int:
        return int(self.records.switch.call("rows_length", self.pointer))

    def __iter__(self) -> Iterator[Entry]:
        stride = self.records.stride
        for place in range(len(self)):
            entry = self.records.entry(string_at(self._memory + place * stride, stride))
            entry.metadata = self.notes.get(entry.key, b"") if self.notes else b""
            yield entry

    def __del__(self) -> None:
        self.records.switch.call("rows_free", self.pointer)


class NativeTable(EntryTable):
    """A table whose entries native code looks up."""

    def __init__(
        self, records: NativeRecords, initial: Target, constants: tuple[Entry, ...]
    ) -> None:
        self._records = records
        self._switch, self._number = records.switch, records.number
        # Of the few entries with metadata; in native memory they are marked.
        self._notes: dict[EntryKey, bytes] = {}
        super().__init__(initial, constants)

    def _place(self, key: EntryKey) -> int:
        return int(self._switch.call("table_find", self._number, self._records.key(key)))

    def find(self, key: EntryKey) -> Entry | None:
        """Return the entry with this key, if there is one."""
        place = self._place(key)
        if place < 0:
            return None
        record = self._switch.call("table_record", self._number, place)
        entry = self._records.entry(string_at(record, self._records.stride))
        entry.metadata = self._notes.get(key, b"")
        return entry

    def put(self, entry: Entry) -> None:
        """Add an entry, or replace the one with the same key."""
        number, data, counts = entry.target
        marks = _CONSTANT * entry.constant | _NOTED * bool(entry.metadata)
        parameters = self._records.parameters(number, data)
        key = self._records.key(entry.key)
        self._switch.call(
            "table_put", self._number, key, number, marks, parameters, len(parameters)
        )
        self._notes.pop(entry.key, None)
        if entry.metadata:
            self._notes[entry.key] = entry.metadata
        if counts is not None:
            self.set_counts(entry.key, (counts[0], counts[1]))

    def remove(self, key: EntryKey) -> None:
        """Remove the entry with this key."""
        self._switch.call("table_remove", self._number, self._place(key))
        self._notes.pop(key, None)

    def clear(self) -> None:
        """Remove every entry."""
        self._switch.call("table_clear", self._number)
        self._notes.clear()

    def set_counts(self, key: EntryKey, counts: tuple[int, int]) -> None:
        """Set the packet and byte counts of an entry with direct counters."""
        address = self._switch.call("table_counts", self._number, self._place(key))
        (c_uint64 * 2).from_address(address)[:] = list(counts)

    def set_default(self, target: Target) -> None:
        """Replace the default entry."""
        super().set_default(target)
        number, data, _ = target
        parameters = self._records.parameters(number, data)
        self._switch.call("table_default", self._number, number, parameters, len(parameters))

    def snapshot(self) -> Iterable[Entry]:
        """Return a copy of the entries with their counts."""
        return NativeRows(self._records, dict(self._notes))

    def __len__(self) -> int:
        return int(self._switch.call("table_length", self._number))
