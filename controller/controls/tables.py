# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What the classes of tables have in common."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from switchgnn.base.network import Network
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.controller.p4runtime.rows import (
    Record,
    Rows,
    decode_default,
    encode_default,
    records,
)
from switchgnn.controller.plan import SwitchPlan


class _NamedTable:
    """A table, by its name, and its usual action."""

    name: ClassVar[str]
    action: ClassVar[str]

    def __init__(self, layout: Layout) -> None:
        self.table = layout.table(self.name)


class Setting(_NamedTable):
    """A table without a key: its default action is the setting."""

    def encode_values(self, values: Mapping[str, int]) -> bytes:
        """Return the default action with these parameters."""
        return encode_default(self.table, self.action, values)

    def decode_values(self, default: bytes) -> dict[str, int]:
        """Return the parameters of a default action by name."""
        return decode_default(self.table, self.action, default)


class Keyed(_NamedTable, ABC):
    """A table with a key."""

    def count(self, plan: SwitchPlan, network: Network) -> int:
        """Return the number of entries."""
        return len(self.rows(plan, network))

    @abstractmethod
    def rows(self, plan: SwitchPlan, network: Network) -> Rows:
        """Return the entries for a plan."""

    def records(self, rows: Rows) -> list[Record]:
        """Return each entry for people: its key, and its parameters as of the usual action."""
        return records(rows.key_columns() | rows.param_columns(self.table.action(self.action)))
