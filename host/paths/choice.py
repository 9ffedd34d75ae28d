"""Which path each request takes, from observed time: LEO's rule with one vote per epoch.

A request is what can take one of several paths: the exchanges of a block in one direction, or the
all-reduce. A plan predicts for each request and path the seconds T without load, and the toll, the
part of T that occupies links and processors. A request takes the path with the least k toll + T
(thesis, equation 6.5), where k counts the tolls by which the path is late.

LEO adds one to k for each late request. Here one vote counts the lateness of a whole epoch in tolls
instead, so a path is left after one late epoch. Every worker passes the same votes to its rule, so
that all choose the same paths.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from switchgnn.base.array_types import Bools, Float64s, Int64s

# A request changes its path for at least this gain, as times of the same work vary by as much.
_GAIN = 0.1
# Epochs until a path that was late has drained, at least; twice as many after each failed return.
_LEAST_WAIT = 4
# Predictions are off by at most this factor: a path that may be faster by it is worth a try.
_OFF = 2.5
# A reserve is used while all other paths are late by more than this part of a toll.
_RESERVE = 0.5


@dataclass(frozen=True, eq=False)
class RequestCosts:
    """Predicted seconds of all requests over one path, in a typical epoch; float64[R] each."""

    seconds: Float64s  # T, without load; infinite for a request that cannot take the path
    tolls: Float64s  # above 0


@dataclass(frozen=True)
class PathVote:
    """The observed and predicted seconds of the same exchanges: all that took a path."""

    observed: float
    predicted: float

    @property
    def ratio(self) -> float | None:
        """Observed over predicted; None without a usable observation."""
        usable = self.predicted > 0 and 0 < self.observed < math.inf
        return self.observed / self.predicted if usable else None


@dataclass(frozen=True)
class PathChange:
    """Requests that change from one path to another, with their seconds in a typical epoch."""

    requests: tuple[int, ...]
    left: str
    taken: str
    observed: float  # over the path that they leave
    predicted: float  # over the same, by the plan
    expected: float  # over the path that they take


@dataclass
class _PathState:
    """What is known of one path; lateness is in times of T, as a toll may be far below T."""

    scale: float = 1.0  # T over the prediction
    known: bool = False  # whether a time was observed that can replace the prediction
    tolls: float = 1.0  # T of its requests, in tolls
    late: float = 0.0
    last: float = 0.0  # the lateness of the last vote, which the next one has to confirm
    jumped: bool = False  # whether its time has about doubled since the last vote, or more
    age: int = 0  # epochs in use
    needed: bool = False  # whether it was taken because another path was late
    failures: int = 0  # how often in a row it was left soon
    wait: int = 0  # epochs in which it drains while it is not used
    unused: int = 0  # epochs of them that have passed

    @property
    def queue(self) -> float:
        """Return k: the tolls by which a request would be late now."""
        left = max(0.0, 1 - self.unused / self.wait) if self.wait else 1.0
        return self.late * self.tolls * left

    @property
    def is_promising(self) -> bool:
        """Return whether it is not used, and its prediction may be too high."""
        return not (self.known or self.age or self.queue)

    @property
    def is_late(self) -> bool:
        """Return whether it is late, or was when it was left and has not drained since."""
        return self.late > _RESERVE and not 0 < self.wait <= self.unused

    def observe(self, ratio: float, tolls: float) -> None:
        """Compare an epoch with T, which is the best time so far, `tolls` tolls.

        A first time replaces the prediction, as a wrong prediction is no queue; but where another
        path was late, this one may be late for the same reason.
        """
        if ratio < self.scale or not (self.known or self.needed):
            self.scale = ratio
        self.known |= not self.needed
        self.tolls, late = tolls, ratio / self.scale - 1
        self.jumped = late > 1 + 2 * self.last  # as noise grows with the time
        # Less than a jump may be chance, so the smaller of two votes counts.
        self.late = late if self.jumped or self.age == 1 else min(late, self.last)
        self.last = late

    def leave(self) -> None:
        """Begin to drain, for longer each time that a return was in vain."""
        if self.age > _LEAST_WAIT:
            self.failures = 0
        self.wait = math.ceil(max(self.late, _LEAST_WAIT)) << self.failures
        self.failures += 1
        self.unused = self.age = 0
        self.last, self.jumped = 0.0, False


class PathRule:
    """The paths of requests, which change with votes.

    `costs`: by path; `first`: the path of each request at first. `reserve`: a path that is taken
    only while all others are late by half a toll.
    """

    def __init__(
        self, costs: Mapping[str, RequestCosts], first: Sequence[str], reserve: str = ""
    ) -> None:
        self._names, self._costs = tuple(costs), tuple(costs.values())
        self._states = tuple(_PathState() for _ in costs)
        self._reserve = self._names.index(reserve) if reserve else -1
        self._taken: Int64s = np.array([self._names.index(path) for path in first], dtype=np.int64)
        for path in set(self._taken.tolist()):
            self._states[path].age = _LEAST_WAIT

    @property
    def taken(self) -> tuple[str, ...]:
        """The path of each request."""
        return tuple(self._names[path] for path in self._taken)

    def vote(self, votes: Mapping[str, PathVote]) -> tuple[PathChange, ...]:
        """Take the times of an epoch by path, and return what changes from the next one on."""
        for path, name in enumerate(self._names):
            self._observe(path, votes.get(name))
        before, totals = self._taken, self._totals()
        self._taken = self._moved(totals)
        for path, state in enumerate(self._states):
            if path in before and path not in self._taken:
                state.leave()
        return tuple(self._changes(before, totals))

    def _observe(self, path: int, vote: PathVote | None) -> None:
        state, costs, own = self._states[path], self._costs[path], self._taken == path
        state.jumped = False
        if not own.any():
            state.unused += 1
            return
        state.unused = state.wait = 0
        state.age += 1
        if vote is not None and vote.ratio is not None:
            tolls = costs.seconds[own].sum() / costs.tolls[own].sum()
            state.observe(vote.ratio, float(tolls))

    def _totals(self) -> Float64s:
        """Return float64[P, R], equation 6.5 for each path and request."""
        pairs = zip(self._states, self._costs, strict=True)
        return np.stack(
            [state.scale * (state.queue * each.tolls + each.seconds) for state, each in pairs]
        )

    def _moved(self, totals: Float64s) -> Int64s:
        """Return the paths from the next epoch on.

        A path that suddenly takes more than twice as long is left by all at once. Otherwise a path
        that is not settled gets one request first, and twice as many in each epoch.
        """
        moved: Int64s = self._taken.copy()
        own = totals[moved, np.arange(len(moved))]
        in_reserve = moved == self._reserve
        others = [path for path in range(len(self._states)) if path != self._reserve]
        late = np.array([state.is_late for state in self._states])
        # Of the others only the fastest is tried again, as soon as it has drained.
        healthy = [self._states[it].scale * self._costs[it].seconds.sum() for it in others]
        first = others[int(np.argmin(healthy))]
        own[in_reserve] = math.inf
        left_at_once: Bools = np.array([each.jumped for each in self._states])[moved]
        offers = []
        for path, state in enumerate(self._states):
            usable = ~in_reserve | (path == first and not late[path])
            if path == self._reserve:
                usable &= bool(in_reserve.any() or late[others].all())
            better = usable & (totals[path] < (1 - _GAIN) * own)
            hopeful = np.zeros_like(better)
            if state.is_promising:
                in_vain = np.array([each.late > 1 for each in self._states])[moved]
                hopeful = (
                    usable & in_vain & ~left_at_once & (totals[path] < (1 - _GAIN) * own * _OFF)
                )
            gains = own - totals[path]
            offers += [
                (-gains[request], request, path)
                for request in np.flatnonzero((better | hopeful) & (moved != path)).tolist()
            ]
        room = [self._room(path) for path in range(len(self._states))]
        for _, request, path in sorted(offers):
            state, left = self._states[path], self._states[self._taken[request]]
            if moved[request] != self._taken[request]:
                continue
            # After two late paths a third may be late for the same reason.
            at_once = left_at_once[request] and (left.age > 1 or state.known)
            if not at_once and state.age < _LEAST_WAIT:
                if not room[path]:
                    continue
                room[path] -= 1
            if not state.age and path not in moved:
                state.needed = left.late > 1
            moved[request] = path
        return moved

    def _room(self, path: int) -> int:
        state, used = self._states[path], int((self._taken == path).sum())
        return 0 if used and state.late > 1 else max(1, used)

    def _changes(self, before: Int64s, totals: Float64s) -> Iterator[PathChange]:
        moves = {(a, b) for a, b in zip(before.tolist(), self._taken.tolist(), strict=True)}
        for left, taken in sorted(each for each in moves if each[0] != each[1]):
            requests = np.flatnonzero((before == left) & (self._taken == taken))
            yield PathChange(
                requests=tuple(requests.tolist()),
                left=self._names[left],
                taken=self._names[taken],
                observed=float(totals[left, requests].sum()),
                predicted=float(self._costs[left].seconds[requests].sum()),
                expected=float(totals[taken, requests].sum()),
            )
