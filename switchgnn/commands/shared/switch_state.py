"""The state of switches as tables of a terminal."""

from collections.abc import Iterable, Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from switchgnn.base.machine import Amount
from switchgnn.commands.shared.console import numbers_table
from switchgnn.controller.base.place import Place
from switchgnn.controller.jobs import LoopUse
from switchgnn.controller.p4runtime.rows import Record
from switchgnn.controller.show import JobState, SwitchState

_COLUMNS = ("workers", "ports", "slots per bank", "session", "ECN from", "since")
_USES = ("frames/s", "passes/s", "share of passes")


def print_state(console: Console, state: SwitchState) -> None:
    """Print a summary of one switch."""
    console.print(f"Switch {state.address}: {Amount(len(state.jobs)):job}")
    if state.jobs:
        console.print(jobs_table(state.jobs))
    console.print(_tables(state))
    console.print(_counters(state))


def print_records(console: Console, records: list[Record], title: str) -> None:
    """Print table entries, one per line."""
    table = numbers_table(title, numbers=records[0] if records else ())
    for record in records:
        table.add_row(*(str(value) for value in record.values()))
    console.print(table if records else f"{title}: no entries")


def jobs_table(jobs: Iterable[JobState], uses: Sequence[LoopUse] = (), seconds: float = 0) -> Table:
    """Return jobs as a table for people, with what each did in some seconds, by its number."""
    table = numbers_table("Jobs", "job", "plan", numbers=(*_COLUMNS, *(_USES if uses else ())))
    for each in jobs:
        place, session, marking = each.place, each.session, each.marking
        used = [uses[place.job]] if uses else []
        marks = dict.fromkeys((marking.alone, marking.beside_others))
        table.add_row(
            *(place.name, f"{session.plan:08x}" if session.plan else "none"),
            *(f"{session.workers:,}", ranges_text(place.ports), slots_text(place)),
            *(f"{session.session}", " or ".join(map(str, marks))),
            f"{np.datetime64(place.since, 's')}Z",
            *(f"{count / seconds:,.0f}" for use in used for count in (use.frames, use.passes)),
            *(f"{use.share:.1%}" for use in used),
        )
    return table


def slots_text(place: Place) -> str:
    """Return a job's slots in each bank as text."""
    return f"{place.slots:,}" if place.shared is None else "shared"


def ranges_text(numbers: Iterable[int]) -> str:
    """Return ascending numbers as text, such as 1-4,7."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)


def _tables(state: SwitchState) -> Table:
    table = numbers_table("Tables", "table", numbers=("entries", "size", "used"))
    for each in state.tables.tables:
        table.add_row(each.name, f"{each.entries:,}", f"{each.size:,}", f"{each.occupancy:.1%}")
    table.add_row("multicast groups", f"{state.tables.groups:,}", "", "")
    return table


def _counters(state: SwitchState) -> Table:
    table = numbers_table("Counters", "counter", numbers=["value"])
    for name, value in state.counters.named().items():
        table.add_row(name, f"{value:,}")
    for job in state.jobs:
        for worker, releases in enumerate(job.releases):
            if releases:
                table.add_row(f"released for worker {worker} of {job.place.name}", f"{releases:,}")
    return table
