"""loop.p4: the ports of complete sums, and the multicast groups."""

from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from switchgnn.base.array_types import Int64s
from switchgnn.base.network import Network
from switchgnn.controller.base.place import ALONE, FIRST_LOOP_PORT, LOOP_LANES, Place
from switchgnn.controller.base.plan import SwitchPlan
from switchgnn.controller.controls.tables import Keyed
from switchgnn.controller.p4runtime.rows import Rows, Value, concatenate
from switchgnn.planner.base.arrays import rank_within

PARTIAL, REPLICAS = "set_partial", "set_replicas"
# Groups below are those of jobs.
FIRST_RESULT_GROUP = 64
# Of the Tofino program, for each job: two copies for its first loop port, the harvest before its
# feature.
FIRST_HARVEST_GROUP = 47
FIRST_REPLICA_GROUP = FIRST_RESULT_GROUP + FIRST_LOOP_PORT * LOOP_LANES

_Number = TypeVar("_Number", int, Int64s)


def result_group(port: _Number) -> _Number:
    """Return the first of a port's groups; the others follow, one per loop port of its job."""
    return FIRST_RESULT_GROUP + port * LOOP_LANES


def multicast_groups(
    plan: SwitchPlan, network: Network, place: Place = ALONE, *, harvests: bool = False
) -> dict[int, tuple[int, ...]]:
    """Return the sorted ports of each group by its number; `harvests`: also of harvests."""
    ports = plan.ports(network)
    below = len(plan.below)
    groups = {place.workers_group: tuple(sorted(ports[:below]))}
    if plan.above:
        # One spine passes broadcasts on.
        groups[place.workers_group + 1] = tuple(sorted(ports[: below + 1]))
    for port in ports:
        for lane, loop_port in enumerate(place.loop_ports):
            groups[result_group(port) + lane] = (port, loop_port)
    for number, members in enumerate(plan.replica_sets[0], replica_group(place)):
        groups[number] = tuple(sorted(np.array(ports)[members].tolist()))
    if harvests:
        groups[FIRST_HARVEST_GROUP + place.job] = (place.loop_ports[0],) * 2
    return groups


def groups_of(groups: Mapping[int, tuple[int, ...]], place: Place) -> set[int]:
    """Return the numbers of a job's groups among those of a switch."""
    own = {place.workers_group, place.workers_group + 1, FIRST_HARVEST_GROUP + place.job}
    own |= {result_group(port) + lane for port in place.ports for lane in range(LOOP_LANES)}
    own |= set(range(replica_group(place), replica_group(place) + place.sets))
    return own & groups.keys()


def replica_group(place: Place) -> int:
    """Return the first group of a job's sets of replicas."""
    return FIRST_REPLICA_GROUP + place.first_set


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

    def rows(self, plan: SwitchPlan, network: Network, place: Place = ALONE) -> Rows:
        """Return one entry for each destination of each block."""
        switch = plan.switch
        ports = np.array(plan.ports(network), np.int64)
        values: dict[str, Value] = {
            "block_id": switch.result_block + np.int64(place.first_block),
            "bank": switch.result_bank,
            "slot": switch.result_slot,
            "vertex": switch.result_vertex,
            "port": ports[switch.result_worker],
            "group": result_group(ports[switch.result_worker]),
        }
        if plan.manifest.replicated:
            shared = {**values, "group": plan.replica_sets[1] + replica_group(place)}
            sums = self.make(shared, len(switch.result_block), REPLICAS)
        else:
            sums = self.make({**values, **_owners(plan)}, len(switch.result_block))
        if plan.part is None:
            return sums
        ids = plan.part.result_partial
        partial = self.make({**values, "source": ids}, len(ids), PARTIAL)
        return concatenate(self.table, sums.select(ids == 0), partial.select(ids > 0))
