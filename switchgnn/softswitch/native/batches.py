# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Entries that cross between P4Runtime and native tables many at a time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ctypes import byref, c_int, c_uint64, string_at

from switchgnn.softswitch.native.interface import TableShape
from switchgnn.softswitch.native.library import Switch, numbers
from switchgnn.softswitch.native.tables import NativeRows
from switchgnn.softswitch.tables import ActionFormat, Entry, EntryFormat

# As many fields as the native code has bits to tick them off.
_MOST_FIELDS = 64


class NativeBatches:
    """Takes entries from Write requests, and gives them to Read responses.

    Args:
        switch: the switch.
        shapes: how its tables are laid out, by their names.
        formats: how controllers write the entries of tables.
    """

    def __init__(
        self, switch: Switch, shapes: Mapping[str, TableShape], formats: Sequence[EntryFormat]
    ) -> None:
        self._switch = switch
        usable = [each for each in formats if _fits(each, shapes[each.name])]
        self._idents = frozenset(each.ident for each in usable)
        flat = format_numbers(usable, shapes)
        self._pointer = switch.call("formats_new", numbers(c_uint64, flat))

    def read(self, request: bytes) -> "NativeBatch | None":
        """Read a Write request; None if its bytes are not as usual."""
        pointer = self._switch.wait("batch_read", self._pointer, request, len(request))
        return None if pointer is None else NativeBatch(self, self._switch, pointer, request)

    def answers(self, ident: int, entries: Iterable[Entry], at_most: int) -> Iterable[bytes] | None:
        """Write entries as Read responses.

        Args:
            ident: the table's id.
            entries: a snapshot of it.
            at_most: the most entries of a response.

        Returns:
            The bytes of the responses, or None if these entries have to be written one by one.
        """
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
    """The updates of one Write request: see runtime/batches.h.

    Args:
        batches: what has read it, whose formats it needs.
        switch: the switch.
        pointer: the batch in native memory.
        request: the bytes of the request.
    """

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
        """Apply updates from a place on and return the place of the first that is left, or end."""
        return int(self._switch.call("batch_apply", self._pointer, begin, end))

    def is_read(self, place: int) -> bool:
        """Return whether an update has been read, so that it is not in the rest."""
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
    """Return whether entries are written as the table has them: a P4Info may say anything."""
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
    """Return formats as runtime/formats.h reads them; ``shapes`` are by the tables' names."""
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
