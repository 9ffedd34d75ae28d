"""The tables, actions, counters and registers in the P4Info of a program.

A table entry is kept as one row of bytes of fixed width: the key, the action's
id, and the parameters of the action, each value big-endian and padded to its
full width. Rows compare and sort without being decoded.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from finsy.proto import p4i
from google.protobuf import text_format

from switchgnn.controller.base.errors import OtherProgramError

ACTION_ID_BYTES = 4


@dataclass(frozen=True)
class Field:
    """A part of a key, or a parameter of an action."""

    id: int
    name: str
    bits: int
    offset: int  # bytes before it, from the first key field or the first parameter

    @property
    def width(self) -> int:
        """Width in bytes."""
        return (self.bits + 7) // 8


@dataclass(frozen=True)
class Action:
    """An action and its parameters."""

    id: int
    name: str
    params: tuple[Field, ...]

    @property
    def width(self) -> int:
        """Bytes of all parameters."""
        return sum(field.width for field in self.params)


@dataclass(frozen=True)
class Table:
    """A table with exact keys only."""

    id: int
    name: str
    size: int
    keys: tuple[Field, ...]
    actions: tuple[Action, ...]
    # the initial default action, its id and the bytes of its parameters; None if it is const
    default: bytes | None

    @property
    def key_width(self) -> int:
        """Bytes of the key."""
        return sum(field.width for field in self.keys)

    @property
    def row_width(self) -> int:
        """Bytes of a row: key, action id, parameters of the widest action."""
        widest = max((action.width for action in self.actions), default=0)
        return self.key_width + ACTION_ID_BYTES + widest

    def action(self, key: str | int) -> Action:
        """Return the action with that name or P4Runtime id."""
        for action in self.actions:
            if key in (action.name, action.id):
                return action
        raise OtherProgramError(f"Table {self.name} of the P4 program has no action {key}.")


@lru_cache(maxsize=4)
def parse_p4info(text: str) -> p4i.P4Info:
    """Return P4Info in text format as a message, which is cached: do not change it."""
    return text_format.Parse(text, p4i.P4Info())


@dataclass(frozen=True)
class Array:
    """A counter or register array."""

    id: int
    name: str
    size: int  # its cells
    bits: int = 0  # of a cell of a register; 0 for a counter, whose width the switch chooses


@dataclass(frozen=True)
class Layout:
    """The parts of a P4 program that the controller uses, by name."""

    tables: Mapping[str, Table]
    counters: Mapping[str, Array]
    registers: Mapping[str, Array]

    @staticmethod
    @lru_cache(maxsize=4)
    def from_text(p4info: str) -> "Layout":
        """Return the layout of P4Info in text format."""
        return Layout.from_message(parse_p4info(p4info))

    @staticmethod
    def from_message(info: p4i.P4Info) -> "Layout":
        """Return the layout of a P4Info message, without tables whose entries are constant."""
        actions = {action.preamble.id: _action(action) for action in info.actions}
        tables = [_table(table, actions) for table in info.tables if not table.is_const_table]
        return Layout(
            tables={table.name: table for table in tables},
            counters=_arrays(info.counters),
            registers=_arrays(info.registers),
        )

    def table(self, name: str) -> Table:
        """Return the table called ``name``."""
        if name not in self.tables:
            raise OtherProgramError(
                f"The P4 program has no table {name}, only {', '.join(sorted(self.tables))}."
            )
        return self.tables[name]

    def keyed_tables(self) -> list[Table]:
        """Return the tables that have entries."""
        return [table for table in self.tables.values() if table.keys]

    def counter(self, name: str) -> Array:
        """Return the counter called ``name``."""
        if name not in self.counters:
            raise OtherProgramError(f"The P4 program has no counter {name}.")
        return self.counters[name]


def _arrays(messages: Iterable[p4i.Counter] | Iterable[p4i.Register]) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for each in messages:
        number, name = each.preamble.id, each.preamble.alias
        bits = each.type_spec.bitstring.bit.bitwidth if isinstance(each, p4i.Register) else 0
        arrays[name] = Array(number, name, int(each.size), bits)
    return arrays


def _action(message: p4i.Action) -> Action:
    name = message.preamble.alias.rsplit(".", 1)[-1]
    params = _fields((param.id, param.name, param.bitwidth) for param in message.params)
    return Action(message.preamble.id, name, params)


def _table(message: p4i.Table, actions: Mapping[int, Action]) -> Table:
    keys = _fields((match.id, match.name, match.bitwidth) for match in message.match_fields)
    own = [
        actions[ref.id]
        for ref in message.action_refs
        if ref.scope != p4i.ActionRef.DEFAULT_ONLY or not message.const_default_action_id
    ]
    return Table(
        id=message.preamble.id,
        name=message.preamble.alias,
        size=int(message.size),
        keys=keys,
        actions=tuple(own),
        default=None if message.const_default_action_id else _initial_default(message, actions),
    )


def _initial_default(message: p4i.Table, actions: Mapping[int, Action]) -> bytes:
    initial = message.initial_default_action
    fields = {field.id: field for field in actions[initial.action_id].params}
    values = (
        argument.value.rjust(fields[argument.param_id].width, b"\0")
        for argument in sorted(initial.arguments, key=lambda argument: argument.param_id)
    )
    return initial.action_id.to_bytes(ACTION_ID_BYTES, "big") + b"".join(values)


def _fields(described: Iterable[tuple[int, str, int]]) -> tuple[Field, ...]:
    fields: list[Field] = []
    offset = 0
    for number, name, bits in sorted(described):
        field = Field(number, name, bits, offset)
        fields.append(field)
        offset += field.width
    return tuple(fields)
