"""Boundary node sampling: the rows of a schedule that are sent in an epoch.

BNS-GCN (Wan et al., MLSys 2022) keeps a random fraction p of the boundary vertices between each two
workers, a new one in each epoch, and scales the rows by 1/p. Sender and receiver draw from the same
seed, so no list of ids is sent.
"""

from dataclasses import dataclass

import numpy as np

from switchgnn.base.array_types import Float32s, Int64s
from switchgnn.host.base.compression import Compression
from switchgnn.host.base.errors import DirectError
from switchgnn.planner.base.arrays import indptr_of


@dataclass(frozen=True)
class Sampling:
    """The share of rows that is sent, above 0 and at most 1, and a seed of all workers."""

    rate: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise DirectError(f"The sampling rate must be above 0 and at most 1, not {self.rate}.")
        if self.seed < 0:
            raise DirectError(f"The seed must not be negative, but it is {self.seed}.")

    def refuse(self, compression: Compression) -> None:
        """Raise DirectError if rows are compressed and sampled, too."""
        if compression.active and self.rate < 1:
            raise DirectError(
                f"A sampling rate of {self.rate:g} allows neither a cache nor fewer bits, as "
                "each epoch has other rows: use all rows, or neither of them."
            )

    def draw(self, epoch: int, sender: int, receiver: int, rows: int) -> Int64s:
        """Draw which of a pair's rows are sent forward, int64[k], ascending.

        They are p times all, but at least 1, for unbiased sums.
        """
        if self.rate == 1 or not rows:
            return np.arange(rows)
        kept = max(1, round(self.rate * rows))
        generator = np.random.default_rng([self.seed, epoch, sender, receiver])
        return np.sort(generator.choice(rows, kept, replace=False))

    def factors(self, epoch: int, worker: int, vertices: int) -> Float32s:
        """Return float32[n], n/k for k vertices of a worker that are drawn for all others, or 0."""
        factors = np.zeros(vertices, dtype=np.float32)
        drawn = self.draw(epoch, worker, worker, vertices)
        factors[drawn] = vertices / max(1, len(drawn))
        return factors


@dataclass(frozen=True, eq=False)
class Sample:
    """The rows of one side of a worker that are sent in an epoch.

    `index`: int64[K], their indices among all rows of that side. `indptr`: int64[W + 1], those of
    each other worker. `scale`: float32[K], the factor of their values: n/k of their pair.
    """

    index: Int64s
    indptr: Int64s
    scale: Float32s


def sample_rows(
    sampling: Sampling, epoch: int, worker: int, indptr: Int64s, *, outgoing: bool
) -> Sample:
    """Draw the rows of one side; `indptr`: int64[W + 1], the rows of each other worker."""
    rows, drawn = np.diff(indptr), []
    for peer, size in enumerate(rows.tolist()):
        pair = (worker, peer) if outgoing else (peer, worker)
        drawn.append(sampling.draw(epoch, *pair, size))
    sizes = np.array([len(each) for each in drawn])
    factors = (rows / np.maximum(1, sizes)).astype(np.float32)
    index = np.concatenate(drawn) + np.repeat(indptr[:-1], sizes)
    return Sample(index, indptr_of(sizes), np.repeat(factors, sizes))
