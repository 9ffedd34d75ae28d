"""The contents of a switch, as people want to know them."""

from collections.abc import Mapping
from dataclasses import dataclass

from switchgnn.base.names import no_such
from switchgnn.controller.base.errors import ControllerError
from switchgnn.controller.base.place import Place
from switchgnn.controller.controls import entries_in
from switchgnn.controller.controls.congestion import Congestion, Marking
from switchgnn.controller.controls.job import Jobs
from switchgnn.controller.controls.session import SessionEntry
from switchgnn.controller.counters import Counters, JobCounters, read_counters
from switchgnn.controller.p4runtime.client import P4RuntimeClient
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.controller.p4runtime.rows import Record, count_entities, table_entity
from switchgnn.controller.target import read_jobs


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
class JobState:
    """A job of a switch."""

    place: Place
    session: SessionEntry
    marking: Marking  # when packets are marked
    counters: JobCounters  # of all jobs that have had its number
    releases: tuple[int, ...]  # released slots by worker; on a spine, by leaf

    def as_json(self) -> Mapping[str, object]:
        """Return all of it as JSON's types."""
        place, session, passes = self.place, self.session, self.counters.passes
        return {
            "job": place.name,
            "since": place.since,
            "ports": list(place.ports),
            "slots": place.slots,
            "shared": place.shared,
            "session": session.session,
            "plan": f"{session.plan:08x}",
            "workers": session.workers,
            "reduces": session.reduces,
            "ecn_threshold": self.marking.alone,
            "ecn_threshold_beside_others": self.marking.beside_others,
            "releases_by_worker": list(self.releases),
            "passes": passes.passes,
            "contributions": passes.contributions,
        }


@dataclass(frozen=True)
class SwitchState:
    """A summary of one switch."""

    address: str
    cookie: int  # marks its program
    newest_session: int  # of any job; 0 before the first
    jobs: tuple[JobState, ...]
    tables: TablesInUse
    counters: Counters

    def as_json(self) -> Mapping[str, object]:
        """Return all of it as JSON's types."""
        return {
            "address": self.address,
            "cookie": f"{self.cookie:016x}",
            "newest_session": self.newest_session,
            "jobs": [job.as_json() for job in self.jobs],
            "tables": {
                table.name: {"entries": table.entries, "size": table.size}
                for table in self.tables.tables
            },
            "groups": self.tables.groups,
            "counters": self.counters.named(),
            "passes_by_contributions": list(self.counters.passes.by_contributions),
        }


def show(client: P4RuntimeClient, counted: TablesInUse | None = None) -> SwitchState:
    """Return a summary of a switch.

    `counted`: its tables, if they are known; None: counts them, which reads them whole.
    """
    layout = client.get_layout()
    job = Jobs(layout)
    counters = read_counters(client)
    return SwitchState(
        address=client.address,
        cookie=client.get_pipeline_cookie() or 0,
        newest_session=job.newest(client.read_default(job.table)),
        jobs=_jobs(client, layout, counters),
        tables=count_tables(client) if counted is None else counted,
        counters=counters,
    )


def _jobs(client: P4RuntimeClient, layout: Layout, counters: Counters) -> tuple[JobState, ...]:
    congestion = Congestion(layout)
    marking = congestion.decode(client.read_rows(congestion.table))
    return tuple(
        JobState(
            place=place,
            session=session,
            marking=marking.get(place.loop_ports[0], Marking()),
            counters=counters.jobs[place.job],
            releases=counters.releases[place.first_worker :][: session.workers],
        )
        for place, session in read_jobs(client, layout)
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
    controls = {control.name: control for control in entries_in(layout)}
    if name == "groups":
        groups = sorted(client.read_groups().items())[:limit]
        return [{"group": group, "ports": " ".join(map(str, ports))} for group, ports in groups]
    if name not in controls:
        tables = (*sorted(controls), "groups")
        raise ControllerError(no_such("table", name, tables, where=" with entries"))
    rows = client.read_rows(layout.table(name))
    return controls[name].records(rows.select(slice(limit)))
