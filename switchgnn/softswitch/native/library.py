# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Bindings of runtime/interface.h, and the layouts of tables."""

import json
from collections.abc import Callable, Mapping, Sequence
from ctypes import (
    CDLL,
    POINTER,
    PyDLL,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_int64,
    c_uint32,
    c_uint64,
    c_void_p,
)
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from switchgnn.softswitch.program import LoadedProgram, TableSpec

_REPLICAS = (c_uint64, POINTER(c_int32), POINTER(c_uint32), c_uint64)
# Result and arguments of each function, without the switch itself.
_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "switch_free": (None, ()),
    "switch_run": (None, ()),
    "switch_stop": (None, ()),
    "switch_clear": (None, ()),
    "switch_enter": (None, ()),
    "switch_leave": (None, ()),
    "switch_attach": (None, (c_int, c_int, c_int, c_uint64, c_int)),
    "switch_limits": (None, (c_int64, c_double, c_double)),
    "switch_port_rate": (None, (c_int, c_double)),
    "switch_clock": (None, (c_double,)),
    "switch_receive": (None, (c_int, c_char_p, c_uint64)),
    "switch_again": (c_int, (c_uint64,)),
    "switch_drain": (None, ()),
    "switch_take": (c_int, (c_int, c_char_p, c_uint64, c_uint64)),
    "switch_tick": (c_double, (c_double,)),
    "switch_captured": (c_uint64, (c_char_p, c_uint64)),
    "switch_notice": (c_int64, (POINTER(c_uint32), POINTER(c_uint32), c_char_p, c_uint64)),
    "switch_end_notices": (None, ()),
    "switch_not_taken": (None, (c_int,)),
    "switch_counts": (c_void_p, ()),
    "switch_tail_drops": (c_void_p, ()),
    "switch_lengths": (c_void_p, ()),
    "switch_group": (None, _REPLICAS),
    "switch_no_group": (None, (c_uint64,)),
    "switch_session": (None, (*_REPLICAS, c_int64)),
    "switch_no_session": (None, (c_uint64,)),
    "table_put": (None, (c_int, c_char_p, c_int32, c_uint32, c_char_p, c_uint64)),
    "table_find": (c_int64, (c_int, c_char_p)),
    "table_remove": (None, (c_int, c_uint64)),
    "table_length": (c_uint64, (c_int,)),
    "table_stride": (c_uint64, (c_int,)),
    "table_record": (c_void_p, (c_int, c_uint64)),
    "table_counts": (c_void_p, (c_int, c_uint64)),
    "table_rows": (c_void_p, (c_int,)),
    "rows_length": (c_uint64, (c_void_p,)),
    "rows_memory": (c_void_p, (c_void_p,)),
    "rows_free": (None, (c_void_p,)),
    "table_clear": (None, (c_int,)),
    "table_default": (None, (c_int, c_int32, c_char_p, c_uint64)),
    "formats_new": (c_void_p, (POINTER(c_uint64),)),
    "formats_free": (None, (c_void_p,)),
    "batch_read": (c_void_p, (c_void_p, c_char_p, c_uint64)),
    "batch_free": (None, (c_void_p,)),
    "batch_length": (c_uint64, (c_void_p,)),
    "batch_rest": (c_void_p, (c_void_p, POINTER(c_uint64))),
    "batch_item": (
        None,
        (c_void_p, c_uint64, POINTER(c_uint64), POINTER(c_uint64), POINTER(c_int)),
    ),
    "batch_apply": (c_uint64, (c_void_p, c_uint64, c_uint64)),
    "answer_new": (c_void_p, ()),
    "answer_free": (None, (c_void_p,)),
    "answer_entries": (
        c_void_p,
        (c_void_p, c_void_p, c_uint32, c_void_p, c_uint64, c_uint64, POINTER(c_uint64)),
    ),
    "register_cells": (c_void_p, (c_int,)),
    "counter_packets": (c_void_p, (c_int,)),
    "counter_bytes": (c_void_p, (c_int,)),
}


class Library:
    """A compiled program."""

    def __init__(self, path: Path) -> None:
        # PyDLL keeps the GIL, for short calls; CDLL releases it, for calls that may wait.
        self._short, self._waiting = PyDLL(str(path)), CDLL(str(path))
        for library in (self._short, self._waiting):
            library.switch_new.restype = c_void_p
            library.switch_new.argtypes = ()
            for name, (result, arguments) in _SIGNATURES.items():
                function = getattr(library, name)
                function.restype = result
                function.argtypes = (c_void_p, *arguments)

        self._short.program_messages.restype = c_char_p
        self._short.program_messages.argtypes = ()

    def messages(self) -> tuple[str, ...]:
        """Return the log messages of the program, by number."""
        return tuple(json.loads(self._short.program_messages()))

    def new(self) -> "Switch":
        """Return a new switch that runs the program."""
        return Switch(self._short, self._waiting)


class Switch:
    """A switch in native memory."""

    def __init__(self, short: PyDLL, waiting: CDLL) -> None:
        self._short, self._waiting = short, waiting
        self._pointer: int | None = short.switch_new()

    def call(self, name: str, *arguments: object) -> Any:  # noqa: ANN401  as declared
        """Call a function that does not wait."""
        return getattr(self._short, name)(self._pointer, *arguments)

    def bound(self, name: str) -> Callable[..., Any]:
        """Return a function that does not wait; it must not outlive the switch."""
        return partial(getattr(self._short, name), self._pointer)

    def wait(self, name: str, *arguments: object) -> Any:  # noqa: ANN401  as declared
        """Call a function that may wait."""
        return getattr(self._waiting, name)(self._pointer, *arguments)

    def array(self, kind: Any, length: int, address: int) -> Any:  # noqa: ANN401  ctypes arrays
        """Return native memory as an array, which keeps the switch alive."""
        array = (kind * length).from_address(address)
        array.owner = self
        return array

    def __del__(self) -> None:
        if self._pointer is not None:
            self._short.switch_free(self._pointer)
            self._pointer = None


def numbers(kind: Any, values: Sequence[int]) -> Any:  # noqa: ANN401  ctypes arrays
    """Return a ctypes array of numbers."""
    return (kind * len(values))(*values)


@dataclass(frozen=True)
class TableShape:
    """The memory layout of a table.

    Attributes:
        number: its place in the program.
        widths: bits of each key field.
        key_words: 64-bit words of a key.
        parameter_widths: bits of each parameter, by the action's place in the table.
    """

    table: TableSpec
    number: int
    widths: tuple[int, ...]
    key_words: int
    parameter_widths: tuple[tuple[int, ...], ...]

    @property
    def kind(self) -> str:
        """``exact``, ``lpm`` or ``priority``."""
        if self.table.match_type in {"exact", "lpm"}:
            return self.table.match_type
        return "priority"

    def offsets(self, action: int) -> tuple[int, ...]:
        """Return the byte offsets of an action's parameters."""
        sizes = [byte_size(width) for width in self.parameter_widths[action]]
        return tuple(sum(sizes[:index]) for index in range(len(sizes)))

    @property
    def entry_bytes(self) -> int:
        """Bytes of the longest parameters of an action."""
        return max((sum(map(byte_size, widths)) for widths in self.parameter_widths), default=0)

    def shift(self, field: int) -> int:
        """Return the number of key bits below a field."""
        return sum(self.widths[field + 1 :])


def byte_size(width: int) -> int:
    """Return the bytes of a number of ``width`` bits."""
    return (width + 7) // 8


def table_shapes(program: LoadedProgram) -> Mapping[str, TableShape]:
    """Return the layouts of all tables by name."""
    shapes = {}
    for number, (name, table) in enumerate(program.tables.items()):
        widths = tuple(field.width for field in table.key)
        parameters = tuple(program.actions[i].parameter_widths for i in table.actions.values())
        words = max(1, -(-sum(widths) // 64))
        shapes[name] = TableShape(table, number, widths, words, parameters)
    return shapes


def cell_bytes(width: int) -> int:
    """Return the bytes of a register cell: 1, 2, 4 or whole words."""
    return next((size for size in (1, 2, 4) if width <= 8 * size), -(-width // 64) * 8)
