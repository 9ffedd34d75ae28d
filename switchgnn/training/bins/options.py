# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The number of vertices that a worker computes at a time: G3's bins (Wan et al., SIGMOD 2023)."""

from dataclasses import dataclass
from itertools import pairwise

from switchgnn.training.errors import TrainingError

_BYTES_PER_ELEMENT = 4
_FEWEST = 2


@dataclass(frozen=True)
class BinOptions:
    """The size of bins, and what overlaps.

    Attributes:
        memory: bytes that two bins may take: one is computed while another one is sent.
            The default holds G3's 1,000 vertices per bin for 100 features and 16 units.
        intra: whether rows leave as soon as their bin is computed; otherwise they leave when
            all bins are.
        inter: whether a bin continues as soon as its own remote rows are there; otherwise it
            continues when those of the whole layer are.
    """

    memory: int = 1_000_000
    intra: bool = True
    inter: bool = True

    def __post_init__(self) -> None:
        if self.memory < 1:
            raise TrainingError(f"Bins need memory, at least 1 byte: {self.memory}.")


# The options by the names of G3's ablation study.
PIPELINES = {
    "both": (True, True),
    "intra": (True, False),
    "inter": (False, True),
    "sequential": (False, False),
}


def vertices_per_bin(options: BinOptions, inputs: int, outputs: int) -> int:
    """Return how many vertices fit in a bin of a layer, at least 1.

    As in G3 a vertex takes the bytes of its input and of its output.

    Args:
        options: the memory of the bins.
        inputs: the elements of a vertex's input.
        outputs: the elements of a vertex's output.

    Returns:
        The number of vertices.
    """
    return max(1, options.memory // 2 // (_BYTES_PER_ELEMENT * (inputs + outputs)))


def pack_bins(vertices: int, at_most: int) -> list[slice]:
    """Return the bins of ``vertices`` vertices in order; all have ``at_most`` but the last.

    Two or more vertices make at least two bins, because with one bin nothing would overlap.
    """
    size = min(at_most, -(-vertices // _FEWEST))
    ends = [*range(0, vertices, size), vertices]
    return [slice(start, end) for start, end in pairwise(ends)]
