"""Run-time state of a loaded program: tables, registers, counters and copies."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from switchgnn.softswitch.base.program import LoadedProgram, TableSpec
from switchgnn.softswitch.base.tables import Entry, EntryTable


class Replica(NamedTuple):
    """One copy; egress sees ``instance`` as ``egress_rid``."""

    port: int
    instance: int


Replicas = tuple[Replica, ...]


@dataclass(frozen=True)
class RegisterCells:
    """The cells of a register array of ``width`` bits, as a list or in native memory."""

    width: int
    cells: Any

    @property
    def columns(self) -> tuple[Any, ...]:
        """What each index has."""
        return (self.cells,)


@dataclass(frozen=True)
class CounterCells:
    """Packet and byte counts of an indirect counter array, as lists or in native memory."""

    packets: Any
    bytes: Any

    @property
    def columns(self) -> tuple[Any, ...]:
        """What each index has."""
        return self.packets, self.bytes


class ProgramState:
    """The state of one program, by names in the JSON; in this class for interpreted programs."""

    def __init__(self, program: LoadedProgram) -> None:
        self.tables: Mapping[str, EntryTable] = {
            name: EntryTable(table.match_type, table.default, fresh_entries(table))
            for name, table in program.tables.items()
        }
        self.registers: Mapping[str, RegisterCells] = {
            name: RegisterCells(array.width, [0] * array.size)
            for name, array in program.registers.items()
        }
        self.counters: Mapping[str, CounterCells] = {
            name: CounterCells([0] * array.size, [0] * array.size)
            for name, array in program.counters.items()
            if not array.is_direct
        }
        self.groups: dict[int, Replicas] = {}
        self.sessions: dict[int, tuple[Replicas, int]] = {}

    def set_group(self, ident: int, replicas: Replicas) -> None:
        """Set the copies that a multicast group makes."""
        self.groups[ident] = replicas

    def set_session(self, ident: int, replicas: Replicas, max_length: int = 0) -> None:
        """Set the copies that a clone session makes, and their most bytes; 0: whole packets."""
        self.sessions[ident] = replicas, max_length


def fresh_entries(table: TableSpec) -> Iterator[Entry]:
    """Yield the constant entries of a table, with fresh direct counters if it has any."""
    for entry in table.entries:
        yield entry.copied([0, 0] if table.with_counters else None)
