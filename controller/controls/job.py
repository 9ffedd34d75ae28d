"""job.p4: the jobs of a switch, and which ports are whose."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields

import numpy as np

from switchgnn.base.array_types import Bools, Int64s
from switchgnn.base.network import NAME_BYTES, Network
from switchgnn.controller.base.place import ALONE, Place
from switchgnn.controller.base.plan import SwitchPlan
from switchgnn.controller.controls.tables import Entries, Keyed
from switchgnn.controller.p4runtime import rows as entries

ABOVE = "set_above"
NEWEST = "set_newest"


class Jobs(Entries):
    """The job table."""

    name, action = "job", "set_job"
    hidden = ("name",)

    @property
    def max_jobs(self) -> int:
        """How many jobs a switch can have."""
        return self.table.size

    def encode(self, place: Place) -> entries.Rows:
        """Return the entry of a job."""
        numbers = [field.name for field in fields(place) if field.type is int]
        name = place.name.encode().ljust(NAME_BYTES, b"\0")
        values: dict[str, entries.Value] = {each: int(getattr(place, each)) for each in numbers}
        values["name"] = int.from_bytes(name, "big")
        return self.make(values, 1)

    def decode(
        self, jobs: entries.Rows, workers: entries.Rows, shared: int | None = None
    ) -> list[Place]:
        """Return the jobs of a switch by number, from the entries of both tables.

        `shared`: how many slots the jobs share; None: each has its own.
        """
        params = jobs.param_columns(self.table.action(self.action))
        columns = {name: [int(each) for each in column] for name, column in params.items()}
        numbers = [int(each) for each in jobs.key_columns()["job"]]
        found = []
        for row, job in enumerate(numbers):
            values = {name: column[row] for name, column in columns.items()}
            name = values.pop("name").to_bytes(NAME_BYTES, "big").rstrip(b"\0")
            ports = ports_of(workers, job)
            text = name.decode("utf-8", "replace")
            found.append(Place(job, text, ports=ports, **values, shared=shared))
        return sorted(found, key=lambda place: place.job)

    def newest(self, default: bytes) -> int:
        """Return the newest session in the default action; 0 before the first."""
        return entries.decode_default(self.table, NEWEST, default)["newest_session"]

    def encode_newest(self, session: int) -> bytes:
        """Return the default action that remembers the newest session."""
        return entries.encode_default(self.table, NEWEST, {"newest_session": session})


class WorkerPorts(Keyed):
    """The worker table."""

    name, action = "worker", "set_worker"
    hidden = ("worker_bit",)
    otherwise = ("worker", "above")

    def rows(self, plan: SwitchPlan, network: Network, place: Place = ALONE) -> entries.Rows:
        """Return one entry for each neighbour."""
        ports, below = plan.ports(network), len(plan.below)
        values: dict[str, entries.Value] = {
            "port": ports[:below],
            "job": place.job,
            "worker": list(plan.below),
            "worker_bit": list(plan.members),
        }
        workers = self.make(values, below)
        others: dict[str, entries.Value] = {"port": ports[below:], "job": place.job}
        above = self.make(others, plan.above, ABOVE)
        return entries.concatenate(self.table, workers, above)


def ports_of(workers: entries.Rows, job: int) -> tuple[int, ...]:
    """Return the ports of a job in entries of the worker table, in order."""
    # Both actions have the job first.
    jobs = workers.param_columns(workers.table.action(ABOVE))["job"]
    both = zip(workers.key_columns()["port"], jobs, strict=True)
    return tuple(sorted(int(port) for port, own in both if own == job))


def belongs(rows: entries.Rows, places: Sequence[Place]) -> Bools:
    """Return which entries of a table are those of some jobs: by number, by block, or by port."""
    # Every key begins with one of these.
    name, column = next(iter(rows.key_columns().items()))
    own: Mapping[str, Callable[[Place], Sequence[int] | Int64s]] = {
        "job": lambda place: [place.job],
        "block_id": lambda place: np.arange(1, place.blocks) + place.first_block,
        "port": lambda place: [*place.ports, *place.loop_ports],
    }
    if not places:
        return np.zeros(len(rows), np.bool_)
    numbers = np.concatenate([own[name](place) for place in places])
    mask: Bools = np.isin(np.asarray(column).astype(np.int64), numbers)
    return mask
