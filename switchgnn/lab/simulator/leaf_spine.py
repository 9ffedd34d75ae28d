# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Leaves and spines in place of the one switch of a star."""

from dataclasses import dataclass

from switchgnn.base.names import no_such
from switchgnn.lab.simulator.errors import SimulatorError
from switchgnn.planner.partition.leaf_spine import LeafSpine, even_leaf_spine

# Which switches complete the sums whose contributions come from several leaves.
SPINE, LEAF = "spine", "leaf"
COMPLETIONS = (SPINE, LEAF)


@dataclass(frozen=True)
class LeafSpineOptions:
    """Each leaf has a link to each spine, and an equal share of the workers.

    Attributes:
        leaves: switches that workers have their links to, and that add.
        spines: switches between the leaves.
        completion: `spine`: spines complete sums that cross them, as the P4 program has it. `leaf`:
            the leaf of the destination does, a variant that the P4 program does not implement.
    """

    leaves: int = 8
    spines: int = 8
    completion: str = SPINE

    def words(self, workers: int) -> dict[str, object]:
        """Return the options of the models, by name.

        Raises:
            SimulatorError: a leaf would have no worker, there is no spine, or there is no such
                completion.
        """
        self._check(workers)
        return {"leaves": self.leaves, "spines": self.spines, "completion": self.completion}

    def attach(self, workers: int) -> LeafSpine:
        """Return which worker is attached to which leaf, in the planner's terms.

        Raises:
            SimulatorError: as `words`.
        """
        self._check(workers)
        return even_leaf_spine(workers, self.leaves, self.spines)

    def _check(self, workers: int) -> None:
        if self.leaves < 1 or self.spines < 1:
            raise SimulatorError(
                f"A leaf-spine needs a leaf and a spine, but has {self.leaves} and {self.spines}."
            )
        if self.leaves > workers:
            raise SimulatorError(
                f"Every leaf needs a worker, but there are {self.leaves} leaves and {workers} "
                "workers: give fewer --leaves."
            )
        if self.completion not in COMPLETIONS:
            raise SimulatorError(no_such("completion", self.completion, COMPLETIONS))


@dataclass(frozen=True)
class InsideLinks:
    """What went over the links between leaves and spines: a number per link, leaf by leaf.

    Attributes:
        frames_up, bytes_up, frames_down, bytes_down: from leaves to spines, and back.
        sums_up: partial sums that leaves sent.
        features_up: copies between hosts, or features that found no slot at their leaf.
    """

    frames_up: tuple[int, ...]
    bytes_up: tuple[int, ...]
    frames_down: tuple[int, ...]
    bytes_down: tuple[int, ...]
    sums_up: tuple[int, ...]
    features_up: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Bytes on all of them, both ways."""
        return sum(self.bytes_up) + sum(self.bytes_down)
