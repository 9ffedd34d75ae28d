# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What an exchange puts on the links between leaves and spines, counted in their parts."""

from dataclasses import dataclass

import numpy as np

from switchgnn.planner.plan.leaf_spine import TierPart, Tiers
from switchgnn.planner.plan.manifest import DirectionRecord


@dataclass(frozen=True)
class TierPrediction:
    """What one exchange of one direction costs between the tiers without loss.

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


def predict_tiers(tiers: Tiers, record: DirectionRecord) -> TierPrediction:
    """Count what the blocks of a direction send between leaves and spines."""
    up = [_results_to(leaf, record, behind=len(leaf.below)) for leaf in tiers.leaves]
    down = [_results_to(spine, record, behind=0) for spine in tiers.spines]
    return TierPrediction(
        partial_sums=tuple(tuple(row[: tiers.racks.spines]) for row in up),
        sums=tuple(zip(*(row[: tiers.racks.leaves] for row in down), strict=True)),
    )


def _results_to(part: TierPart, record: DirectionRecord, behind: int) -> list[int]:
    """The results of these blocks by the neighbour that gets them, from `behind` on."""
    block, neighbour = part.switch.result_block, part.switch.result_worker
    inside = (block >= record.first_block) & (block <= record.last_block)
    size = len(part.below) + part.above
    counted: list[int] = np.bincount(neighbour[inside], minlength=size)[behind:].tolist()
    return counted
