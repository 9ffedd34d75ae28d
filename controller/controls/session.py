"""session.p4: the install that a switch serves, its tier among several, its workers' ports."""

from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np

from switchgnn.base.network import Network
from switchgnn.controller.base.plan import SwitchPlan
from switchgnn.controller.controls.tables import Keyed, Setting
from switchgnn.controller.p4runtime.rows import Rows, concatenate
from switchgnn.planner.base.lanes import LANES, ROWS

ABOVE = "set_above"


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

    @property
    def workers(self) -> int:
        """Number of workers."""
        return self.members.bit_count()


class Session(Setting):
    """The session table."""

    name, action = "session", "set_session"

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
            plan.number,
            sum(plan.members),
            int(limit.view(np.uint32)),
            LANES.index(plan.manifest.lanes),
            ROWS.index(plan.manifest.rows),
            any_tag=int(not plan.hears_barriers),
            last_pool=plan.manifest.pools - 1,
            pool_slots=plan.manifest.pool_slots,
        )

    def encode(self, entry: SessionEntry) -> bytes:
        """Return the default action for an entry."""
        return self.encode_values(asdict(entry))

    def decode(self, default: bytes) -> SessionEntry:
        """Return the entry in a default action."""
        return SessionEntry(**self.decode_values(default))

    def closed(self, default: bytes) -> bytes:
        """Return the default action that keeps the number but serves no plan."""
        return self.encode(SessionEntry(self.decode(default).session, 0, 0, 0))

    def _bits(self, name: str) -> int:
        params = self.table.action(self.action).params
        return next(field.bits for field in params if field.name == name)


class Tier(Setting):
    """The tier table."""

    name, action = "tier", "set_tier"

    def encode(self, plan: SwitchPlan, network: Network) -> bytes:
        """Return the default action that says where the switch stands.

        The first spine collects the barrier of all.
        """
        ports, everybody = plan.ports(network), (1 << plan.manifest.workers) - 1
        values = {
            "above": ports[len(plan.below)] if plan.above else 0,
            "number": plan.part.number if plan.part else 0,
            "elsewhere": everybody & ~sum(plan.members),
            "leaves": int(plan.part is not None and not plan.above),
        }
        return self.encode_values(values)


class WorkerPorts(Keyed):
    """The worker table."""

    name, action = "worker", "set_worker"
    hidden = ("worker_bit",)
    otherwise: ClassVar = ("worker", "above")

    def rows(self, plan: SwitchPlan, network: Network) -> Rows:
        """Return one entry for each neighbour."""
        ports, below = plan.ports(network), len(plan.below)
        values = {
            "port": ports[:below],
            "worker": list(plan.below),
            "worker_bit": list(plan.members),
        }
        workers = self.make(values, below)
        above = self.make({"port": ports[below:]}, plan.above, ABOVE)
        return concatenate(self.table, workers, above)
