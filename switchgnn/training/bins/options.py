# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How many vertices a worker computes at a time: G3's bins (Wan et al., SIGMOD 2023)."""

from dataclasses import dataclass
from itertools import pairwise

from switchgnn.training.errors import TrainingError

_BYTES_PER_ELEMENT = 4
_FEWEST = 2


@dataclass(frozen=True)
class BinOptions:
    """How the work is cut, and what overlaps.

    Attributes:
        memory: bytes that two bins may take: one is computed while another one travels.
            The default holds G3's 1,000 vertices per bin for 100 features and 16 units.
        intra: rows leave as soon as their bin is computed; otherwise when all bins are.
        inter: a bin goes on as soon as its own remote rows are there; otherwise when the
            whole layer's are.
    """

    memory: int = 1_000_000
    intra: bool = True
    inter: bool = True

    def __post_init__(self) -> None:
        if self.memory < 1:
            raise TrainingError(f"Bins need memory, at least 1 byte: {self.memory}.")


# What overlaps, by the names of G3's ablation.
PIPELINES = {
    "both": (True, True),
    "intra": (True, False),
    "inter": (False, True),
    "sequential": (False, False),
}


def vertices_per_bin(options: BinOptions, inputs: int, outputs: int) -> int:
    """Return how many vertices fit in a bin of a layer, at least 1.

    As in G3 a vertex takes the bytes of its input and of its output.
    """
    return max(1, options.memory // 2 // (_BYTES_PER_ELEMENT * (inputs + outputs)))


def pack_bins(vertices: int, at_most: int) -> list[slice]:
    """Return the bins of so many vertices, in order: all full but the last.

    Two vertices or more are at least two bins: with one, nothing would overlap.
    """
    size = min(at_most, -(-vertices // _FEWEST))
    ends = [*range(0, vertices, size), vertices]
    return [slice(start, end) for start, end in pairwise(ends)]
