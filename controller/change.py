"""The contents of a switch, the difference of two, the order of its updates, and the report."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from finsy.proto import p4r

from switchgnn.base.machine import Amount
from switchgnn.controller.base.place import Place
from switchgnn.controller.controls.banks import shared_slots
from switchgnn.controller.controls.job import Jobs, WorkerPorts, belongs
from switchgnn.controller.controls.loop import groups_of
from switchgnn.controller.p4runtime import rows as entries
from switchgnn.controller.p4runtime.client import P4RuntimeClient
from switchgnn.controller.p4runtime.layout import Layout

Groups = Mapping[int, tuple[int, ...]]
_SESSION, _THRESHOLD = "session", "threshold"


@dataclass(frozen=True, eq=False)
class SwitchContents:
    """All that a controller can put into a switch."""

    rows: Mapping[str, entries.Rows]  # of every table that has a key, by its name
    defaults: Mapping[str, bytes]  # the default action of every table whose program lets it change
    groups: Groups  # the sorted ports of every multicast group

    def only(self, places: Sequence[Place]) -> "SwitchContents":
        """Return what belongs to some jobs, without remnants of interrupted installs."""
        rows = {name: each.select(belongs(each, places)) for name, each in self.rows.items()}
        numbers = {number for place in places for number in groups_of(self.groups, place)}
        groups = {number: self.groups[number] for number in numbers}
        return SwitchContents(rows, self.defaults, groups)

    def jobs(self, layout: Layout) -> list[Place]:
        """Return the jobs that have entries, by number."""
        shared = shared_slots(layout, lambda table: self.defaults[table.name])
        return Jobs(layout).decode(self.rows[Jobs.name], self.rows[WorkerPorts.name], shared)

    def beside(self, others: "SwitchContents") -> "SwitchContents":
        """Return these contents and those of other jobs; defaults are these."""
        rows = {
            name: entries.concatenate(each.table, others.rows[name], each)
            for name, each in self.rows.items()
        }
        return SwitchContents(rows, self.defaults, {**others.groups, **self.groups})


def empty_state(layout: Layout) -> SwitchContents:
    """Return the contents of a switch that has just loaded its program."""
    defaults = {table.name: table.default for table in layout.tables.values()}
    return SwitchContents(
        rows={table.name: entries.no_rows(table) for table in layout.keyed_tables()},
        defaults={name: each for name, each in defaults.items() if each is not None},
        groups={},
    )


def read_state(client: P4RuntimeClient, layout: Layout) -> SwitchContents:
    """Return the contents of a switch."""
    defaults = empty_state(layout).defaults
    return SwitchContents(
        rows={table.name: client.read_rows(table) for table in layout.keyed_tables()},
        defaults={name: client.read_default(layout.table(name)) for name in defaults},
        groups=client.read_groups(),
    )


@dataclass(frozen=True)
class ChangeCounts:
    """How many entries, groups and default actions a change touches."""

    inserted: int = 0
    modified: int = 0
    deleted: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.inserted + self.modified + self.deleted


@dataclass(frozen=True, eq=False)
class Change:
    """The updates from ``before`` to ``after``."""

    layout: Layout
    before: SwitchContents
    after: SwitchContents
    tables: tuple[entries.RowsDifference, ...]
    groups: tuple[p4r.Update, ...]
    defaults: tuple[str, ...]
    job: int = 0  # whose entries change; 0: those of all jobs may

    @property
    def counts(self) -> ChangeCounts:
        """The size of the change."""
        kinds = [update.type for update in self.groups]
        modified = kinds.count(entries.MODIFY) + sum(len(table.modify) for table in self.tables)
        return ChangeCounts(
            inserted=kinds.count(entries.INSERT) + sum(len(table.insert) for table in self.tables),
            modified=modified + len(self.defaults),
            deleted=kinds.count(entries.DELETE) + sum(len(table.delete) for table in self.tables),
        )

    def requests(self) -> Iterator[entries.Request]:
        """Yield the write requests.

        While a job's entries and groups change, the switch does not serve it: its workers wait, and
        the next install repairs a switch whose controller died half-way. Its session comes last.
        """
        tables = dict(zip(self.before.rows, self.tables, strict=True))
        sessions, thresholds = tables.pop(_SESSION), tables.pop(_THRESHOLD)
        others = [table for table in tables.values() if len(table)]
        if others or self.groups:
            before, after = self.before.rows[_SESSION], self.after.rows[_SESSION]
            # The sessions that end, or pause while entries change.
            jobs = np.asarray(before.key_columns()["job"])
            closed = (jobs == self.job) | (self.job == 0)
            yield from entries.encode_rows(entries.DELETE, before.select(closed))
            for table in others:
                yield from entries.encode_difference(table)
            yield from entries.encode_messages(list(self.groups))
            sessions = entries.difference(before.select(~closed), after)
        yield from entries.encode_difference(thresholds)
        defaults = ((self.layout.table(name), self.after.defaults[name]) for name in self.defaults)
        yield from entries.encode_messages([entries.default_update(*each) for each in defaults])
        yield from entries.encode_difference(sessions)

    def first_difference(self) -> str:
        """Describe one difference; empty when there is none."""
        for table in self.tables:
            kinds = (("too much", table.delete), ("other", table.modify), ("missing", table.insert))
            for words, rows in kinds:
                if len(rows):
                    return f"table {rows.table.name}, entry {entries.describe_key(rows)} is {words}"
        for update in self.groups:
            entry = update.entity.packet_replication_engine_entry.multicast_group_entry
            return f"multicast group {entry.multicast_group_id} differs"
        return "".join(f"the default action of table {name} differs" for name in self.defaults[:1])


def change_between(
    layout: Layout, before: SwitchContents, after: SwitchContents, job: int = 0
) -> Change:
    """Return the updates between two states of a switch, table by table.

    `job`: whose entries differ; 0: those of any job.
    """
    tables = [entries.difference(rows, after.rows[name]) for name, rows in before.rows.items()]
    groups = group_updates(before.groups, after.groups)
    defaults = [name for name, each in before.defaults.items() if each != after.defaults[name]]
    return Change(layout, before, after, tuple(tables), tuple(groups), tuple(defaults), job)


def group_updates(before: Groups, after: Groups) -> Iterator[p4r.Update]:
    """Yield the updates from the multicast groups ``before`` to ``after``."""
    for group in sorted(before.keys() - after.keys()):
        yield entries.group_update(entries.DELETE, group, ())
    for group, ports in sorted(after.items()):
        if group not in before:
            yield entries.group_update(entries.INSERT, group, ports)
        elif before[group] != ports:
            yield entries.group_update(entries.MODIFY, group, ports)


@dataclass(frozen=True)
class SwitchReport:
    """One switch's part of an install."""

    address: str  # of the switch
    pipeline_pushed: bool  # whether the P4 program had to be loaded
    counts: ChangeCounts  # entries, groups and default actions that were written
    entries: Mapping[str, int]  # entries of each table now, by its name
    groups: int  # multicast groups now
    seconds: float  # from the first write to the end of verification

    @property
    def changed(self) -> bool:
        """Whether anything was written."""
        return self.pipeline_pushed or self.counts.total > 0

    def sentence(self) -> str:
        """Return what happened, in words."""
        if not self.changed:
            return f"Switch {self.address}: nothing to do, the plan is installed."
        loaded = "P4 program loaded, " if self.pipeline_pushed else ""
        return (
            f"Switch {self.address}: {loaded}{Amount(self.counts.inserted):entry} inserted, "
            f"{self.counts.modified:,} modified, {self.counts.deleted:,} deleted and all "
            f"verified in {self.seconds:.1f} s."
        )


@dataclass(frozen=True)
class InstallReport:
    """A whole install."""

    session: int  # its number, the same at all switches
    plan: str  # digest (hex) of the plan
    switches: tuple[SwitchReport, ...]  # one report each, in the order given

    @property
    def changed(self) -> bool:
        """Whether anything was written to any switch."""
        return any(switch.changed for switch in self.switches)

    def sentences(self) -> list[str]:
        """Return what happened on each switch, in words."""
        return [switch.sentence() for switch in self.switches]
