"""The parts of a plan that a switch needs."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from switchgnn.base.array_types import Bools, Int64s
from switchgnn.base.network import Network
from switchgnn.planner import Manifest, Plan, SwitchPart, read_manifest, read_switch_part
from switchgnn.planner.plan.leaf_spine import LeafSpinePart, partial_senders


@dataclass(frozen=True, eq=False)
class SwitchPlan:
    """A plan without the parts of the workers."""

    manifest: Manifest  # of the plan
    switch: SwitchPart  # sources, entries and results of the switch
    part: LeafSpinePart | None = None  # what it has to know as a leaf or a spine; None in a star

    @property
    def below(self) -> tuple[int, ...]:
        """What each neighbour below calls itself: the workers, or a spine's leaves."""
        return self.part.below if self.part else tuple(range(self.manifest.workers))

    @property
    def members(self) -> tuple[int, ...]:
        """The workers behind each neighbour below, bit w for worker w."""
        return self.part.members if self.part else tuple(1 << worker for worker in self.below)

    @property
    def above(self) -> int:
        """How many neighbours are above."""
        return self.part.above if self.part else 0

    @property
    def hears_barriers(self) -> bool:
        """Whether barriers pass this switch: of all spines only the first one collects them."""
        return self.part is None or self.above > 0 or self.part.number == 0

    @property
    def neighbours(self) -> int:
        """How many neighbours the switch has; those above come last."""
        return len(self.below) + self.above

    def ports(self, network: Network) -> list[int]:
        """Return the port of each neighbour."""
        return [each.port for each in network.neighbours[: self.neighbours]]

    @cached_property
    def replica_sets(self) -> tuple[Bools, Int64s]:
        """The sets of neighbours that await sums of a vertex cut, and the one of each result.

        bool[sets, neighbours], without any for other plans, and int64[R].
        """
        switch = self.switch
        if not self.manifest.replicated:
            return np.zeros((0, self.neighbours), np.bool_), np.zeros(len(switch.result_block), int)
        await_sums = np.zeros((len(switch.result_block), self.neighbours), np.bool_)
        await_sums[partial_senders(switch)] = True
        # Sums that this switch does not complete come back from above.
        await_sums[np.arange(len(await_sums)), switch.result_worker] = True
        packed, of_result = np.unique(np.packbits(await_sums, axis=1), axis=0, return_inverse=True)
        sets = np.unpackbits(packed, axis=1, count=self.neighbours).astype(np.bool_)
        return sets, of_result.reshape(-1)

    @property
    def sums_at_once(self) -> int:
        """The most sums of a fragment of a block that one neighbour gets."""
        switch, (sets, of_result) = self.switch, self.replica_sets
        if len(sets):
            sums = np.zeros((self.manifest.blocks + 1, self.neighbours), dtype=np.int64)
            np.add.at(sums, switch.result_block, sets[of_result])
            return int(sums.max())
        key = switch.result_block.astype(np.int64) << 32 | switch.result_worker
        return int(np.unique(key, return_counts=True)[1].max(initial=0))


def leaf_spine_switch_plan(manifest: Manifest, part: LeafSpinePart) -> SwitchPlan:
    """Return the plan of one switch of a leaf-spine."""
    return SwitchPlan(manifest, part.switch, part)


def load_plan(source: Path | Plan) -> SwitchPlan:
    """Return the plan in a folder, or one in memory; PlannerError if there is none."""
    if isinstance(source, Plan):
        return SwitchPlan(source.manifest, source.switch)
    return SwitchPlan(read_manifest(source), read_switch_part(source))
