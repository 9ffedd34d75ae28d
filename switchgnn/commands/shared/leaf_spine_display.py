# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The bytes between leaves and spines, for people."""

from rich.table import Table

from switchgnn.commands.shared.leaf_spine_report import TierReport


def tier_table(tiers: TierReport, what: str = "Bytes", counted: str = "counted") -> Table:
    """Show what was counted, what was planned, and what other ways would take."""
    table = Table(title=f"{what} between {tiers.leaves} leaves and {tiers.spines} spines")
    for name in ("", "up", "down"):
        table.add_column(name, justify="right")
    rows: tuple[tuple[str, int | None, int | None], ...] = (
        (counted, tiers.bytes_up, tiers.bytes_down),
        ("planned", tiers.planned_bytes_up, tiers.planned_bytes_down),
        ("sums at spines only", tiers.single_bytes_up, tiers.single_bytes_down),
        ("host-based", tiers.host_bytes_up, tiers.host_bytes_down),
    )
    for name, *columns in rows:
        table.add_row(name, *("-" if value is None else f"{value:,}" for value in columns))
    return table
