# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Switches as tables on a terminal."""

from rich.console import Console
from rich.table import Table

from switchgnn.controller.controls.record import Record
from switchgnn.controller.show import SwitchState


def print_state(console: Console, state: SwitchState) -> None:
    """Print a summary of one switch."""
    session = state.session
    serves = (
        f"plan {session.plan:08x}, {session.workers} workers, session {session.session}"
        if session.plan
        else "no plan"
    )
    console.print(f"Switch {state.address}: {serves}, ECN from {state.ecn_threshold} packets on")
    console.print(_tables(state))
    console.print(_counters(state))


def print_records(console: Console, records: list[Record], title: str) -> None:
    """Print table entries, one per line."""
    table = Table(title=title)
    for name in records[0] if records else ():
        table.add_column(name, justify="right")
    for record in records:
        table.add_row(*(str(value) for value in record.values()))
    console.print(table if records else f"{title}: no entries")


def _tables(state: SwitchState) -> Table:
    table = Table("table", title="Tables")
    for name in ("entries", "size", "used"):
        table.add_column(name, justify="right")
    for each in state.tables:
        table.add_row(each.name, f"{each.entries:,}", f"{each.size:,}", f"{each.occupancy:.1%}")
    table.add_row("multicast groups", f"{state.groups:,}", "", "")
    return table


def _counters(state: SwitchState) -> Table:
    table = Table("counter", title="Counters")
    table.add_column("value", justify="right")
    for name, value in state.counters.named().items():
        table.add_row(name, f"{value:,}")
    return table
