# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Leaves and spines in place of the star's switch."""

from dataclasses import dataclass

from switchgnn.simulator.errors import SimulatorError


@dataclass(frozen=True)
class LeafSpine:
    """Each leaf has a link to each spine, and an equal share of the workers.

    Attributes:
        leaves: switches that workers have their links to, and that add.
        spines: switches that hand on what leaves send each other.
    """

    leaves: int = 8
    spines: int = 8

    def words(self, workers: int) -> dict[str, object]:
        """What the models are told, by name.

        Raises:
            SimulatorError: a leaf would have no worker, or there is no spine.
        """
        if self.leaves < 1 or self.spines < 1:
            raise SimulatorError(
                f"A leaf-spine needs a leaf and a spine, but has {self.leaves} and {self.spines}."
            )
        if self.leaves > workers:
            raise SimulatorError(
                f"Every leaf needs a worker, but there are {self.leaves} leaves and {workers} "
                "workers: give fewer --leaves."
            )
        return {"leaves": self.leaves, "spines": self.spines}


@dataclass(frozen=True)
class InsideLinks:
    """What went over the links between leaves and spines: a number per link, leaf by leaf.

    Attributes:
        frames_up, bytes_up, frames_down, bytes_down: from leaves to spines, and back.
        sums_up: partial sums that leaves sent.
        features_up: copies between hosts, or features that found no slot at their first leaf.
    """

    frames_up: tuple[int, ...]
    bytes_up: tuple[int, ...]
    frames_down: tuple[int, ...]
    bytes_down: tuple[int, ...]
    sums_up: tuple[int, ...]
    features_up: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """On all of them, both ways."""
        return sum(self.bytes_up) + sum(self.bytes_down)
