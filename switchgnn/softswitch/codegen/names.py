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

    def register(self, name: str) -> str:
        """List of cells of a register array."""
        return self._registers[name]

    def packet_counts(self, name: str) -> str:
        """List of packet counts of a counter array."""
        return self._counters[name] + "_packets"

    def byte_counts(self, name: str) -> str:
        """List of byte counts of a counter array."""
        return self._counters[name] + "_bytes"

    def lookup(self, table: str) -> str:
        """Function from a key to an entry or None."""
        return self._tables[table] + "_lookup"

    def default(self, table: str) -> str:
        """One-element list with the default entry."""
        return self._tables[table] + "_default"


def _numbered(prefix: str, names: Iterable[str]) -> dict[str, str]:
    return {name: f"{prefix}{number}" for number, name in enumerate(names)}
