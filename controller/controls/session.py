"""session.p4: the install that a switch serves for a job, and its tier among several."""

from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np

from switchgnn.base.network import Network
from switchgnn.controller.base.place import ALONE, Place
from switchgnn.controller.base.plan import SwitchPlan
from switchgnn.controller.controls.banks import reduce_slots
from switchgnn.controller.controls.tables import Entries, Keyed
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.controller.p4runtime.rows import Rows
from switchgnn.planner.base.lanes import LANES, ROWS


@dataclass(frozen=True)
class SessionEntry:
    """What a switch says of the install it serves."""

    session: int  # grows with every install; 0 before the first one
    plan: int  # first 32 bits of the plan's digest; 0 when the tables serve no plan
    members: int  # one bit for each worker of the plan
    # the largest magnitude, as the bits of a float32, that a worker may report
    magnitude_limit: int
    width: int = 0  # of the slots, and of the widest frames: 8 * (width + 1) numbers
    rows: int = 0  # of bundles, as their logarithm
    # 1 where the switch may have forgotten its window of tags, or never hears of one
    any_tag: int = 0
    # the number of the last pool, and the slots of each in a bank
    last_pool: int = 0
    pool_slots: int = 0
    reduces: int = 0  # contributions to a sum of an all-reduce; 0: there is none

    @property
    def workers(self) -> int:
        """Number of workers."""
        return self.members.bit_count()


NO_SESSION = SessionEntry(0, 0, 0, 0)
"""The entry of a job that the switch does not serve."""


class Session(Entries):
    """The session table."""

    name, action = "session", "set_session"
    formats: ClassVar = {"plan": "{:08x}".format, "members": "{:x}".format}

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self._reduces = reduce_slots(layout) > 0

    @property
    def max_session(self) -> int:
        """The last session number; only loading the program anew frees the lower ones."""
        return (1 << self._bits("session")) - 1

    @property
    def max_workers(self) -> int:
        """How many workers the bit map of members has room for."""
        return self._bits("members")

    @property
    def max_pools(self) -> int:
        """Into how many pools the program can divide its slots."""
        return 1 << self._bits("last_pool")

    def entry(
        self, session: int, plan: SwitchPlan, largest_feature: float | None = None
    ) -> SessionEntry:
        """Return the entry of a session; `largest_feature` as `DesiredStates` takes it."""
        most = float(np.finfo(np.float32).max) / plan.manifest.max_fan_in
        most = most if largest_feature is None else min(largest_feature, most)
        limit = np.nextafter(np.float32(most), np.float32(0))
        return SessionEntry(
            session,
            plan.manifest.number,
            sum(plan.members),
            int(limit.view(np.uint32)),
            LANES.index(plan.manifest.lanes),
            ROWS.index(plan.manifest.rows),
            any_tag=int(not plan.hears_barriers),
            last_pool=plan.manifest.pools - 1,
            pool_slots=plan.manifest.pool_slots,
            reduces=sum(plan.members).bit_count() if self._reduces else 0,
        )

    def encode(self, job: int, entry: SessionEntry) -> Rows:
        """Return the entry of a job."""
        return self.make({"job": job, **asdict(entry)}, 1)

    def decode(self, rows: Rows) -> dict[int, SessionEntry]:
        """Return what the switch says of each job, by its number."""
        return self.decode_as(SessionEntry, rows)

    def _bits(self, name: str) -> int:
        params = self.table.action(self.action).params
        return next(field.bits for field in params if field.name == name)


class Tier(Keyed):
    """The tier table."""

    name, action = "tier", "set_tier"
    formats: ClassVar = {"elsewhere": "{:x}".format}

    def rows(self, plan: SwitchPlan, network: Network, place: Place = ALONE) -> Rows:
        """Return an entry that says where the switch stands; none for the only switch.

        The first spine collects the barrier of all.
        """
        ports, everybody = plan.ports(network), (1 << plan.manifest.workers) - 1
        values = {
            "job": place.job,
            "above": ports[len(plan.below)] if plan.above else 0,
            "number": plan.part.number if plan.part else 0,
            "elsewhere": everybody & ~sum(plan.members),
            "leaves": int(plan.part is not None and not plan.above),
        }
        return self.make(values, int(plan.part is not None))
