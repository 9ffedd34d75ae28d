# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What an exchange puts on the links between leaves and spines, counted in their parts."""

from dataclasses import dataclass

import numpy as np

from switchgnn.planner.plan.leaf_spine import LeafSpinePart, LeafSpineParts
from switchgnn.planner.plan.manifest import DirectionRecord


@dataclass(frozen=True)
class LeafSpinePrediction:
    """What one exchange of one direction costs between leaves and spines without loss.

    Data packets per fragment, by leaf, then spine.

    Attributes:
        partial_sums: from the leaf to the spine.
        sums: from the spine to the leaf.
    """

    partial_sums: tuple[tuple[int, ...], ...]
    sums: tuple[tuple[int, ...], ...]

    @property
    def packets(self) -> int:
        """All of them."""
        return sum(map(sum, self.partial_sums)) + sum(map(sum, self.sums))


def predict_leaf_spine(parts: LeafSpineParts, record: DirectionRecord) -> LeafSpinePrediction:
    """Count what the blocks of a direction send between leaves and spines."""
    up = [_results_to(leaf, record, behind=len(leaf.below)) for leaf in parts.leaves]
    down = [_results_to(spine, record, behind=0) for spine in parts.spines]
    return LeafSpinePrediction(
        partial_sums=tuple(tuple(row[: parts.leaf_spine.spines]) for row in up),
        sums=tuple(zip(*(row[: parts.leaf_spine.leaves] for row in down), strict=True)),
    )


def _results_to(part: LeafSpinePart, record: DirectionRecord, behind: int) -> list[int]:
    """Count the results of these blocks by the neighbour that gets them, from `behind` on."""
    block, neighbour = part.switch.result_block, part.switch.result_worker
    inside = (block >= record.first_block) & (block <= record.last_block)
    size = len(part.below) + part.above
    counted: list[int] = np.bincount(neighbour[inside], minlength=size)[behind:].tolist()
    return counted
