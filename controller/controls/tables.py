"""What the classes of tables have in common."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import ClassVar, TypeVar

from switchgnn.base.network import Network
from switchgnn.controller.base.place import ALONE, Place
from switchgnn.controller.base.plan import SwitchPlan
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.controller.p4runtime.rows import Record, Rows, Value, make_rows

_Entry = TypeVar("_Entry")


class NamedTable:
    """A table, by its name, and its usual action."""

    name: ClassVar[str]
    action: ClassVar[str]

    def __init__(self, layout: Layout) -> None:
        self.table = layout.table(self.name)

    @classmethod
    def is_in(cls, layout: Layout) -> bool:
        """Tell whether a program has the table, with that action."""
        table = layout.tables.get(cls.name)
        return table is not None and any(each.name == cls.action for each in table.actions)


class Entries(NamedTable):
    """A table with a key."""

    hidden: ClassVar[tuple[str, ...]] = ()  # columns that people are not shown
    # how people are shown values that they do not read as decimal numbers
    formats: ClassVar[Mapping[str, Callable[[int], str]]] = {}
    # a column, and what it shows in entries with another action than the usual one
    otherwise: ClassVar[tuple[str, str] | None] = None

    def count(self, plan: SwitchPlan, network: Network) -> int:
        """Return the number of entries of a job."""
        return 1

    def make(self, values: Mapping[str, Value], count: int, action: str | None = None) -> Rows:
        """Make entries with one action, by default the usual one, as `make_rows` does."""
        return make_rows(self.table, action or self.action, values, count)

    def decode_as(self, kind: type[_Entry], rows: Rows) -> dict[int, _Entry]:
        """Return what each entry says, a dataclass of parameters, by its key of one number."""
        (keys,) = rows.key_columns().values()
        params = rows.param_columns(self.table.action(self.action))
        columns = [params[field.name] for field in fields(kind)]  # type: ignore[arg-type]
        both = zip(keys, *columns, strict=True)
        return {int(key): kind(*map(int, values)) for key, *values in both}

    def records(self, rows: Rows) -> list[Record]:
        """Return each entry for people: its key, and its parameters as of the usual action."""
        usual = self.table.action(self.action)
        columns = rows.key_columns() | rows.param_columns(usual)
        shown = {name: each for name, each in columns.items() if name not in self.hidden}
        found: list[Record] = []
        for *values, action in zip(*shown.values(), rows.action_ids, strict=True):
            record: Record = dict(zip(shown, map(int, values), strict=True))
            found.append(record)
            for name, text in self.formats.items():
                record[name] = text(int(record[name]))
            if self.otherwise is not None and action != usual.id:
                name, said = self.otherwise
                record[name] = said
        return found


class Keyed(Entries, ABC):
    """A table whose entries follow from the plan, the network and the job's place."""

    def count(self, plan: SwitchPlan, network: Network) -> int:
        """Return the number of entries."""
        return len(self.rows(plan, network))

    @abstractmethod
    def rows(self, plan: SwitchPlan, network: Network, place: Place = ALONE) -> Rows:
        """Return the entries for a plan."""
