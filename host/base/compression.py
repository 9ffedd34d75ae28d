"""How workers send rows in fewer bytes: cached rows, fewer bits (CDFGNN, sections 4 and 5)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.array_types import Bools, Int64s
from switchgnn.host.base.errors import TransportError
from switchgnn.planner.base.direction import Direction

WHOLE_BITS = 32


@dataclass(frozen=True)
class Compression:
    """What workers leave out of the rows that they send."""

    bits: int = WHOLE_BITS  # 32, 16 or 8: a number has at most 2^bits - 1 levels.
    # Whether rows are sent as changes, and only where they have changed enough.
    cache: bool = False
    # Whether what rounding takes away is added to the row of the next round.
    feedback: bool = False
    stochastic: bool = False  # Whether numbers are rounded up with the probability of their rest.
    seed: int = 0  # Of stochastic rounding.

    @property
    def active(self) -> bool:
        """Whether exchanges differ from plain ones."""
        return self.cache or self.bits < WHOLE_BITS

    def refuse(self, transport: str, instead: str) -> None:
        """Raise TransportError for a transport that has no compression; `instead`: what to do."""
        if self.active:
            raise TransportError(
                f"The transport {transport} has neither a cache nor fewer bits: {instead}."
            )


NO_COMPRESSION = Compression()


@dataclass
class Savings:
    """Counters of one worker.

    Of all `rows` that were due, those `skipped` had not changed, and went without a body or not at
    all; in `full` exchanges all rows were sent whole.
    """

    rows: int = 0
    skipped: int = 0
    full: int = 0


@dataclass(frozen=True)
class LeastChange:
    """How much a row z changes before a worker sends it: more than ε · max(max|z|, usual).

    CDFGNN (section 4) compares with max|z| alone. But rows that are small beside the others, such
    as gradients of vertices that are classified well, change the most and matter the least.
    """

    epsilon: float  # A share.
    usual: float  # The mean of max|z| over all rows of the worker that are finite.

    @classmethod
    def of(cls, epsilon: float, sizes: NDArray[Any]) -> "LeastChange":
        """Return that of rows with these max|z|, [n]."""
        finite = sizes[np.isfinite(sizes)]
        return cls(epsilon, float(finite.mean(dtype=np.float64)) if len(finite) else 0.0)

    def reached(self, changes: NDArray[Any], sizes: NDArray[Any]) -> Bools:
        """Return bool[K], whether rows have changed; also those that cannot be compared have.

        `changes`: [K], max|z - c|, c being what was sent last. `sizes`: [K], max|z|.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            small = changes <= self.epsilon * np.maximum(sizes, self.usual)
        reached: Bools = ~(small & np.isfinite(changes))
        return reached


class SkipMasks:
    """The vertices whose rows count as unchanged, by the id of their tensor."""

    def __init__(self) -> None:
        self._vertices: dict[int, Bools] = {}

    def skip(self, tensor_id: int, vertices: Bools | None) -> None:
        """Skip rows in the forward exchanges of a tensor; `vertices`: bool[n]; None: none."""
        self._vertices.pop(tensor_id, None)
        if vertices is not None:
            self._vertices[tensor_id] = vertices

    def of(self, tensor_id: int, direction: Direction) -> Bools | None:
        """Return bool[n], the vertices whose rows are skipped in an exchange; None: none are."""
        return self._vertices.get(tensor_id) if direction is Direction.FORWARD else None


def largest_of_rows(rows: NDArray[Any]) -> NDArray[Any]:
    """Return the largest magnitude of each row, [K]; `rows`: [K, F], of signed numbers."""
    largest: NDArray[Any] = np.maximum(rows.max(axis=1), -rows.min(axis=1))
    return largest


def all_skipped(vertices: Bools, row: Int64s, indptr: Int64s) -> Bools:
    """Return bool[S], whether all vertices of each sent row are skipped (`vertices`: bool[n]).

    `row`: int64[K], the vertices of all sent rows; `indptr`: int64[S + 1], where those of each
    begin.
    """
    skipped: Bools = np.logical_and.reduceat(vertices[row], indptr[:-1])
    return skipped
