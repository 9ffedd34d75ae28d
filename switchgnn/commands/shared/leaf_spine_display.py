# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The bytes between leaves and spines, for people."""

from rich.table import Table

from switchgnn.commands.shared.leaf_spine_report import LeafSpineReport
from switchgnn.host.direct.framing import FRAGMENT
from switchgnn.host.registry import HOST, HOST_PARTIAL


def leaf_spine_table(
    report: LeafSpineReport, what: str = "Bytes", counted: str = "counted"
) -> Table:
    """Return a table of what was counted, what was planned, and what other ways would take.

    Args:
        report: the links between leaves and spines.
        what: whose bytes they are, for the title.
        counted: what the row of counted bytes is called.

    Returns:
        The table: bytes up and down by row.
    """
    frames = "fragments" if report.host_mtu == FRAGMENT else f"MTU {report.host_mtu:,}"
    table = Table(title=f"{what} between {report.leaves} leaves and {report.spines} spines")
    for name in ("", "up", "down"):
        table.add_column(name, justify="right")
    rows: tuple[tuple[str, int | None, int | None], ...] = (
        (counted, report.bytes_up, report.bytes_down),
        ("planned", report.planned_bytes_up, report.planned_bytes_down),
        ("sums at spines only", report.single_bytes_up, report.single_bytes_down),
        (f"{HOST.name}, {frames}", report.host_bytes_up, report.host_bytes_down),
        (
            f"{HOST_PARTIAL.name}, {frames}",
            report.host_partial_bytes_up,
            report.host_partial_bytes_down,
        ),
    )
    for name, *columns in rows:
        table.add_row(name, *("-" if value is None else f"{value:,}" for value in columns))
    return table
