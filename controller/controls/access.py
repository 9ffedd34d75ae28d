"""access.p4: the vertices that a switch knows, and the senders of partial sums."""

from typing import ClassVar

import numpy as np

from switchgnn.base.array_types import Int64s, Integers
from switchgnn.base.network import Network
from switchgnn.controller.base.place import ALONE, Place
from switchgnn.controller.base.plan import SwitchPlan
from switchgnn.controller.controls.loop import REPLICAS, replica_group
from switchgnn.controller.controls.tables import Keyed
from switchgnn.controller.p4runtime.layout import Array, Layout
from switchgnn.controller.p4runtime.rows import Rows, Value, concatenate
from switchgnn.planner.plan.leaf_spine import NOBODY, LeafSpinePart, partial_senders

# One cell for each source and pool; the Tofino program has a register for each pool.
LAST_TAGS_REGISTER = "last_tag"
DISTANT = "set_distant"
# Of a set of workers, one bit each.
_SET_BYTES = 16
# As in headers.p4.
SUM_BUNDLES = 0xFFFFFF00


def last_tags(layout: Layout) -> list[Array]:
    """Return the registers of sources, which together have a cell for each in each pool."""
    registers = layout.registers
    return [registers[name] for name in registers if name.startswith(LAST_TAGS_REGISTER)]


class Source(Keyed):
    """The source table."""

    name, action = "source", "set_source"

    def count(self, plan: SwitchPlan, network: Network | None = None) -> int:
        """Return the number of entries."""
        return len(plan.switch.source_vertex)

    def rows(self, plan: SwitchPlan, network: Network, place: Place = ALONE) -> Rows:
        """Return one entry per vertex and partial sum; its index is its position."""
        switch = plan.switch
        ports = np.array(plan.ports(network), np.int64)
        values: dict[str, Value] = {
            "job": place.job,
            "src_id": switch.source_vertex,
            "port": ports[switch.source_worker],
            "index": np.arange(len(switch.source_vertex)),
        }
        return self.make(values, len(switch.source_vertex))


class Destination(Keyed):
    """The destination table."""

    name, action = "destination", "set_destination"

    def count(self, plan: SwitchPlan, network: Network | None = None) -> int:
        """Return the number of entries."""
        if plan.part is None:
            return len(plan.switch.result_block)
        return len(plan.part.route_block) + len(_bundles_from_above(plan)[0])

    def rows(self, plan: SwitchPlan, network: Network, place: Place = ALONE) -> Rows:
        """Return one entry for each destination of each block."""
        if plan.part is not None:
            return self._leaf_spine_rows(plan, plan.part, plan.ports(network), place)
        switch = plan.switch
        ports = np.array(plan.ports(network), np.int64)
        values: dict[str, Value] = {
            "block_id": switch.result_block + np.int64(place.first_block),
            "dst_id": switch.result_vertex,
            "port": ports[switch.result_worker],
            "bank": switch.result_bank,
            "slot": switch.result_slot,
            "expected": switch.result_expected,
        }
        if plan.manifest.replicated:
            values |= {"group": plan.replica_sets[1] + replica_group(place), "above": 0}
            return self.make(values, len(switch.result_block), REPLICAS)
        return self.make(values, len(switch.result_block))

    def _leaf_spine_rows(
        self, plan: SwitchPlan, part: LeafSpinePart, neighbours: list[int], place: Place
    ) -> Rows:
        ports, switch, slot = np.array(neighbours, np.int64), plan.switch, part.route_result
        placed = slot >= 0
        values: dict[str, Integers] = {
            "block_id": part.route_block + np.int64(place.first_block),
            "dst_id": part.route_vertex,
            "port": ports[part.route_neighbour],
        }
        for name in ("bank", "slot", "expected"):
            values[name] = np.zeros(len(slot), np.int64)
            values[name][placed] = getattr(switch, f"result_{name}")[slot[placed]]
        distant = part.route_above != NOBODY
        if plan.manifest.replicated:
            above = np.where(distant, ports[np.where(distant, part.route_above, 0)], 0)
            values |= {"group": plan.replica_sets[1][slot] + replica_group(place), "above": above}
            return self.make(values, len(slot), REPLICAS)
        own: dict[str, Value] = {name: column[~distant] for name, column in values.items()}
        others: dict[str, Value] = {name: column[distant] for name, column in values.items()}
        others["above"] = ports[part.route_above[distant]]
        block, worker = _bundles_from_above(plan)
        bundles: dict[str, Value] = {
            "block_id": block + place.first_block,
            "dst_id": SUM_BUNDLES + worker,
            "port": ports[worker - min(part.below)],
        }
        return concatenate(
            self.table,
            self.make(own, int((~distant).sum())),
            self.make(others, int(distant.sum()), DISTANT),
            self.make({**dict.fromkeys(("bank", "slot", "expected"), 0), **bundles}, len(block)),
        )


def _bundles_from_above(plan: SwitchPlan) -> tuple[Int64s, Int64s]:
    """Return the block and the worker of bundles of sums that spines complete."""
    blocks = plan.manifest.blocks * (plan.above > 0 and plan.manifest.rows > 1)
    block, below = np.arange(1, blocks + 1), np.array(plan.below)
    return np.repeat(block, len(below)), np.tile(below, len(block))


class Partial(Keyed):
    """The table of who sends partial sums."""

    name, action = "partial", "set_senders"
    formats: ClassVar = {"senders": "{:x}".format}

    def count(self, plan: SwitchPlan, network: Network | None = None) -> int:
        """Return the number of entries."""
        return len(np.unique(partial_senders(plan.switch)[0]))

    def rows(self, plan: SwitchPlan, network: Network | None = None, place: Place = ALONE) -> Rows:
        """Return one entry for each destination of each block that awaits partial sums.

        It has a bit for each worker that sends one; at a spine for each that is behind a leaf
        that does.
        """
        switch, (result, neighbour) = plan.switch, partial_senders(plan.switch)
        awaiting, first = np.unique(result, return_index=True)
        members = b"".join(each.to_bytes(_SET_BYTES, "big") for each in plan.members)
        sets = np.frombuffer(members, np.uint8).reshape(-1, _SET_BYTES)[neighbour]
        values: dict[str, Value] = {
            "block_id": switch.result_block[awaiting] + np.int64(place.first_block),
            "dst_id": switch.result_vertex[awaiting],
            "senders": np.bitwise_or.reduceat(sets, first, axis=0) if len(first) else sets,
        }
        return self.make(values, len(awaiting))
