"""Phases of an all-to-all between hosts: in each one, a worker feeds at most one other.

All workers send and receive at one rate, so no phased exchange is shorter than the most that a
worker sends or receives. Every worker computes the same phases from the same matrix, so none of
them needs a message. Coflow schedules like these are Hermod's (Wan, HKUST 2025, section 5.3.2).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from switchgnn.base.array_types import Float64s, Int64s
from switchgnn.planner.base.arrays import indptr_of

# Matrices with larger sums are first peeled in coarser units, so that phases stay few.
_UNITS = 512
# The gain of a pair with traffic, and how much more it is for a pair of the phase before.
_GAIN, _STAYS = 1.0, 2.0
# Above all gains of a matching.
_NEVER = 1e9


@dataclass(frozen=True, eq=False)
class Phases:
    """P phases of W workers, one after another.

    `receiver`: int64[P, W], whom each worker feeds, a permutation in each phase. `amount`:
    int64[P, W], how much, 0 for a worker that pauses. `length`: int64[P], how long each phase
    takes, no less than its amounts.
    """

    receiver: Int64s
    amount: Int64s
    length: Int64s

    @cached_property
    def begin(self) -> Int64s:
        """int64[P + 1], when each phase begins, and the end."""
        return indptr_of(self.length)

    def of_worker(self, worker: int) -> "WorkerPhases":
        """Return what one worker sends."""
        amount = self.amount[:, worker]
        active = np.flatnonzero(amount)
        receiver = self.receiver[active, worker]
        order = np.lexsort((active, receiver))
        active, receiver = active[order], receiver[order]
        first = np.searchsorted(receiver, np.arange(self.amount.shape[1] + 1))
        return WorkerPhases(
            first, indptr_of(amount[active]), self.begin[active], self.length[active]
        )


@dataclass(frozen=True, eq=False)
class WorkerPhases:
    """The phases in which one worker sends, receiver by receiver.

    `first`: int64[W + 1], where those of each receiver begin. `ends`: int64[N + 1], how much has
    been sent before each of them, and in all. `begin`, `length`: int64[N], those of the phases.
    """

    first: Int64s
    ends: Int64s
    begin: Int64s
    length: Int64s

    def due(self, receiver: Int64s, number: Int64s, of: Int64s) -> tuple[Int64s, Int64s]:
        """Return when frames are due and the number of their stay, int64[S] each.

        `number`: of a frame among those for its receiver, from 0. `of`: how many there are for it;
        if the phases are for another number, each has its share. A stay is some phases for one
        receiver without a gap.
        """
        total = self.ends[self.first[receiver + 1]] - self.ends[self.first[receiver]]
        # Where the middle of each frame is.
        at = (2 * number + 1) * total // (2 * of) + self.ends[self.first[receiver]]
        phase = np.searchsorted(self.ends, at, side="right") - 1
        starts = np.ones(len(self.begin), dtype=np.int64)
        starts[1:] = self.begin[1:] != self.begin[:-1] + self.length[:-1]
        starts[self.first[:-1][np.diff(self.first) > 0]] = 1
        return self.begin[phase] + at - self.ends[phase], np.cumsum(starts)[phase]


PhaseMaker = Callable[[Int64s], Phases]


def shortest_phases(matrix: Int64s) -> Phases:
    """Decompose int64[W, W] amounts so that the phases take no longer than the busiest worker.

    The diagonal does not count. Pauses fill all rows and columns up to the largest sum, and perfect
    matchings are peeled off until nothing is left (Birkhoff and von Neumann). Among the matchings
    of entries of a unit or more, one with few pauses that keeps many pairs of the phase before is
    taken, and the unit is halved when there is none (Liu et al., Solstice, CoNEXT 2015).
    """
    left = _without_diagonal(matrix)
    return _collect(_peeled(left, left + _pauses(left)), len(left))


def greedy_phases(matrix: Int64s) -> Phases:
    """Decompose int64[W, W] amounts by the thesis' Algorithm 3, which may take longer.

    Each phase is a matching of the most traffic, and lasts as long as its least positive entry.
    """
    return _collect(_greedy(_without_diagonal(matrix)), len(matrix))


def _without_diagonal(matrix: Int64s) -> Int64s:
    left = matrix.astype(np.int64)
    np.fill_diagonal(left, 0)
    return left


def _pauses(amounts: Int64s) -> Int64s:
    """Return int64[W, W], what all rows and columns lack of the largest sum."""
    sums = amounts.sum(axis=1), amounts.sum(axis=0)
    bound = max(int(each.max(initial=0)) for each in sums)
    # Both lack the same in all: a row's part overlaps those of some columns.
    rows, columns = (indptr_of(bound - each) for each in sums)
    shared = np.minimum.outer(rows[1:], columns[1:]) - np.maximum.outer(rows[:-1], columns[:-1])
    lacking: Int64s = np.maximum(shared, 0)
    return lacking


_Phase = tuple[Int64s, Int64s, int]


def _peeled(left: Int64s, padded: Int64s) -> Iterator[_Phase]:
    """Yield the receivers, amounts and length of each phase; consumes the matrices."""
    workers = before = np.arange(len(left))
    unit = 1 << max(0, (int(padded[0].sum()) // _UNITS).bit_length() - 1)
    while left.any():
        gain = np.where(left > 0, _GAIN, 0.0)
        gain[workers, before] += np.where(left[workers, before] > 0, _STAYS, 0.0)
        allowed = padded >= unit
        receiver = _matching(np.where(allowed, gain, -_NEVER))
        if not allowed[workers, receiver].all():
            unit //= 2
            continue
        length = int(padded[workers, receiver].min())
        amount = np.minimum(left[workers, receiver], length)
        left[workers, receiver] -= amount
        padded[workers, receiver] -= length
        before = receiver
        yield receiver, amount, length


def _greedy(left: Int64s) -> Iterator[_Phase]:
    workers = np.arange(len(left))
    while left.any():
        receiver = _matching(left)
        matched = left[workers, receiver]
        length = int(matched[matched > 0].min())
        amount = np.minimum(matched, length)
        left[workers, receiver] -= amount
        yield receiver, amount, length


def _matching(gain: Int64s | Float64s) -> Int64s:
    """Return int64[W], the columns of a perfect matching with the largest gain."""
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - slow to import

    columns: Int64s = linear_sum_assignment(gain, maximize=True)[1].astype(np.int64)
    return columns


def _collect(phases: Iterator[_Phase], workers: int) -> Phases:
    found = list(phases)
    receiver, amount = (
        np.array([phase[part] for phase in found], dtype=np.int64).reshape(-1, workers)
        for part in (0, 1)
    )
    return Phases(receiver, amount, np.array([phase[2] for phase in found], dtype=np.int64))
