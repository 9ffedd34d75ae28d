"""The contents of a switch, for people."""

from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from switchgnn.base.names import no_such
from switchgnn.controller.base.errors import ControllerError
from switchgnn.controller.controls import KEYED
from switchgnn.controller.controls.congestion import Congestion, Marking
from switchgnn.controller.controls.reduce import Reduce
from switchgnn.controller.controls.session import Session, SessionEntry
from switchgnn.controller.counters import Counters, read_counters
from switchgnn.controller.p4runtime.client import P4RuntimeClient
from switchgnn.controller.p4runtime.rows import Record, count_entities, table_entity


@dataclass(frozen=True)
class TableState:
    """How full a table is."""

    name: str
    entries: int
    size: int

    @property
    def occupancy(self) -> float:
        """Share of the table in use, from 0 to 1."""
        return self.entries / self.size if self.size else 0.0


@dataclass(frozen=True)
class TablesInUse:
    """How full the tables of a switch are, and the number of its multicast groups."""

    tables: tuple[TableState, ...]
    groups: int


NO_TABLES = TablesInUse((), 0)


@dataclass(frozen=True)
class SwitchState:
    """A summary of one switch."""

    address: str
    cookie: int  # marks its program
    session: SessionEntry
    marking: Marking  # when packets are marked
    reduces: int  # contributions to a sum of an all-reduce; 0: there is none
    tables: TablesInUse
    counters: Counters

    def as_json(self) -> Mapping[str, object]:
        """Return all of it as JSON's types."""
        return {
            "address": self.address,
            "cookie": f"{self.cookie:016x}",
            "session": self.session.session,
            "plan": f"{self.session.plan:08x}",
            "workers": self.session.workers,
            "ecn_threshold": self.marking.alone,
            "ecn_threshold_beside_others": self.marking.beside_others,
            "reduces": self.reduces,
            "tables": {
                table.name: {"entries": table.entries, "size": table.size}
                for table in self.tables.tables
            },
            "groups": self.tables.groups,
            "counters": self.counters.named(),
            "releases_by_worker": list(self.counters.releases[: self.session.workers]),
            "passes_by_contributions": list(self.counters.passes.by_contributions),
        }


def show(client: P4RuntimeClient, counted: TablesInUse | None = None) -> SwitchState:
    """Return a summary of a switch.

    `counted`: its tables, if they are known; None: counts them, which reads them whole.
    """
    layout = client.get_layout()
    session, congestion, reduce = Session(layout), Congestion(layout), Reduce(layout)
    return SwitchState(
        address=client.address,
        cookie=client.get_pipeline_cookie() or 0,
        session=session.decode(client.read_default(session.table)),
        marking=congestion.decode(client.read_default(congestion.table)),
        reduces=reduce.decode(client.read_default(reduce.table)),
        tables=count_tables(client) if counted is None else counted,
        counters=read_counters(client),
    )


def count_tables(client: P4RuntimeClient) -> TablesInUse:
    """Count the entries and groups of a switch."""
    tables = (
        TableState(
            name=table.name,
            entries=sum(map(count_entities, client.read_responses([table_entity(table)]))),
            size=table.size,
        )
        for table in client.get_layout().keyed_tables()
    )
    return TablesInUse(tuple(tables), len(client.read_groups()))


def show_entries(client: P4RuntimeClient, name: str, limit: int | None = None) -> list[Record]:
    """Read the entries of one table, or of `groups`, sorted by key.

    Args:
        client: the switch.
        name: of the table, or `groups`.
        limit: the most entries; None: all of them.

    Returns:
        One record per entry.

    Raises:
        ControllerError: there is no such table.
    """
    layout = client.get_layout()
    controls = {control.name: control for control in KEYED}
    if name == "groups":
        groups = sorted(client.read_groups().items())[:limit]
        return [{"group": group, "ports": " ".join(map(str, ports))} for group, ports in groups]
    if name not in controls:
        tables = (*sorted(controls), "groups")
        raise ControllerError(no_such("table", name, tables, where=" with entries"))
    rows = client.read_rows(layout.table(name))
    return controls[name](layout).records(rows.select(slice(limit)))


def print_state(console: Console, state: SwitchState) -> None:
    """Print a summary of one switch."""
    session = state.session
    serves = (
        f"plan {session.plan:08x}, {session.workers} workers, session {session.session}"
        if session.plan
        else "no plan"
    )
    marks = f"ECN from {state.marking.alone} packets on"
    if state.marking.beside_others != state.marking.alone:
        marks += f", beside ordinary traffic from {state.marking.beside_others}"
    console.print(f"Switch {state.address}: {serves}, {marks}")
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
    for each in state.tables.tables:
        table.add_row(each.name, f"{each.entries:,}", f"{each.size:,}", f"{each.occupancy:.1%}")
    table.add_row("multicast groups", f"{state.tables.groups:,}", "", "")
    return table


def _counters(state: SwitchState) -> Table:
    table = Table("counter", title="Counters")
    table.add_column("value", justify="right")
    for name, value in state.counters.named().items():
        table.add_row(name, f"{value:,}")
    for worker, releases in enumerate(state.counters.releases):
        if releases:
            table.add_row(f"released for worker {worker}", f"{releases:,}")
    return table
