"""loop.p4: the ports of complete sums, and the multicast groups."""

from typing import TypeVar

import numpy as np

from switchgnn.base.array_types import Int64s
from switchgnn.base.network import Network
from switchgnn.controller.base.plan import SwitchPlan
from switchgnn.controller.controls.tables import Keyed
from switchgnn.controller.p4runtime.rows import Rows, Value, concatenate
from switchgnn.planner.base.arrays import rank_within

PARTIAL = "set_partial"
# As in headers.p4.
FIRST_LOOP_PORT = 256
LOOP_LANES = 32
ALL_WORKERS_GROUP = 1
ALL_STATIONS_GROUP = 2
# Groups below are left for others.
FIRST_RESULT_GROUP = 16

_Number = TypeVar("_Number", int, Int64s)


def result_group(neighbour: _Number) -> _Number:
    """Return the first of a neighbour's groups; the others follow, one per loop port."""
    return FIRST_RESULT_GROUP + neighbour * LOOP_LANES


def multicast_groups(plan: SwitchPlan, network: Network) -> dict[int, tuple[int, ...]]:
    """Return the sorted ports of each group by its number."""
    ports = plan.ports(network)
    below = len(plan.below)
    groups = {ALL_WORKERS_GROUP: tuple(sorted(ports[:below]))}
    if plan.above:
        # One spine passes broadcasts on.
        groups[ALL_STATIONS_GROUP] = tuple(sorted(ports[: below + 1]))
    for neighbour, port in enumerate(ports):
        for lane in range(LOOP_LANES):
            groups[result_group(neighbour) + lane] = (port, FIRST_LOOP_PORT + lane)
    return groups


def _owners(plan: SwitchPlan) -> dict[str, Value]:
    """Return the worker of each result, its place there, and how many the switch completes."""
    switch, part = plan.switch, plan.part
    worker = switch.result_worker if part is None else part.result_owner
    key = switch.result_block.astype(np.int64) << 17 | worker.astype(np.int64) << 1
    place = rank_within((key,), (switch.result_vertex,)) if part is None else part.result_place
    key |= 0 if part is None else part.result_partial > 0
    _, group, sizes = np.unique(key, return_inverse=True, return_counts=True)
    return {"worker": worker, "place": place, "sums": sizes[group]}


class Result(Keyed):
    """The result table."""

    name, action = "result", "set_result"

    def count(self, plan: SwitchPlan, network: Network | None = None) -> int:
        """Return the number of entries."""
        return len(plan.switch.result_block)

    def rows(self, plan: SwitchPlan, network: Network) -> Rows:
        """Return one entry for each destination of each block."""
        switch = plan.switch
        ports = np.array(plan.ports(network), np.int64)
        values: dict[str, Value] = {
            "block_id": switch.result_block,
            "bank": switch.result_bank,
            "slot": switch.result_slot,
            "vertex": switch.result_vertex,
            "port": ports[switch.result_worker],
            "group": result_group(switch.result_worker.astype(np.int64)),
        }
        sums = self.make({**values, **_owners(plan)}, len(switch.result_block))
        if plan.part is None:
            return sums
        ids = plan.part.result_partial
        partial = self.make({**values, "source": ids}, len(ids), PARTIAL)
        return concatenate(self.table, sums.select(ids == 0), partial.select(ids > 0))
