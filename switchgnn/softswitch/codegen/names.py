# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Names under which the generated code reaches tables, arrays and header codecs."""

from collections.abc import Iterable

from switchgnn.softswitch.program import Program


class GlobalNames:
    """Short identifiers for the objects the generated functions use as globals."""

    def __init__(self, program: Program) -> None:
        self._registers = _numbered("reg", program.registers)
        self._counters = _numbered("ctr", program.counters)
        self._tables = _numbered("tbl", program.tables)
        self._lists = {ident: number for number, ident in enumerate(program.field_lists)}

    def register(self, name: str) -> str:
        """Return the name of a register array's list of cells."""
        return self._registers[name]

    def packet_counts(self, name: str) -> str:
        """Return the name of a counter array's list of packet counts."""
        return self._counters[name] + "_packets"

    def byte_counts(self, name: str) -> str:
        """Return the name of a counter array's list of byte counts."""
        return self._counters[name] + "_bytes"

    def lookup(self, table: str) -> str:
        """Return the name of the function from a table's key to an entry or None."""
        return self._tables[table] + "_lookup"

    def default(self, table: str) -> str:
        """Return the name of the one-element list with a table's default entry."""
        return self._tables[table] + "_default"

    def keeper(self, field_list: int) -> str:
        """Return the name of the function that keeps the fields of a list."""
        return f"keep{self._lists[field_list]}"

    def cloner(self, field_list: int) -> str:
        """Return the name of the function that copies the fields of a list."""
        return f"clone{self._lists[field_list]}"


def _numbered(prefix: str, names: Iterable[str]) -> dict[str, str]:
    return {name: f"{prefix}{number}" for number, name in enumerate(names)}
