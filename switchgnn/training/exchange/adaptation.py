"""Paths of exchanges and all-reduces that follow the observed times, the same on all workers.

Votes travel with the gradients of each epoch, whose all-reduce all workers enter after their last
exchange: they cost no message and no waiting, a worker that dies is found as in any all-reduce, and
the next epoch already takes the new paths. Each worker has numbers of its own in the sum, so that
largest and smallest ones are exact.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor

from switchgnn.host.paths.base import BlockPaths, Path
from switchgnn.host.paths.choice import PathChange, PathRule, PathVote, RequestCosts
from switchgnn.host.paths.transport import PathsTransport
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.costs.machine import PathCost
from switchgnn.training.exchange.gradients import GradientSums

_PATHS = tuple(path.value for path in Path)
# The paths of the all-reduce.
BY_SWITCH, BY_GLOO = "switch", "gloo"
_MILLI = 1e-3
# A path that is predicted to take more times the other's is not worth a plan or a connection.
_CLOSE = 4.0


@dataclass(frozen=True)
class PathForecast:
    """The predicted costs of all paths, for the workers' choice."""

    exchanges: tuple[PathCost, ...]  # of each path and direction
    first: str  # the path of all blocks at first
    # the seconds of an all-reduce by its paths, the first of them first; empty: it does not change
    reduce: dict[str, float]

    def of(self, path: str) -> dict[Direction, PathCost]:
        """Return the costs of a path; those of Gloo are taken to be those of the same rows."""
        same = Path.HOST_PARTIAL.value if path == Path.GLOO.value else path
        return {cost.direction: cost for cost in self.exchanges if cost.path == same}

    def seconds(self, path: str) -> float:
        """Return the seconds of an epoch's exchanges over one path."""
        each = (width for cost in self.exchanges if cost.path == path for width in cost.widths)
        return sum(width.times * width.seconds for width in each)


def are_close(*seconds: float) -> bool:
    """Return whether the longest time is not many times the shortest."""
    return max(seconds, default=0.0) <= _CLOSE * min(seconds, default=0.0)


class Adaptation:
    """One worker's part in the choice; all workers call `votes` and `decide` once per epoch.

    `set_paths`: as of the transport, which is the default. `beside`: whether Gloo does not pass the
    switch, and so is a reserve while that is slow.
    """

    def __init__(
        self,
        transport: PathsTransport,
        forecast: PathForecast,
        worker: int,
        workers: int,
        *,
        set_paths: Callable[[BlockPaths], None] | None = None,
        beside: bool = False,
    ) -> None:
        self._set_paths = set_paths or transport.set_paths
        self.ready = True  # of this worker; a vote finds whether all are
        self.all_ready = True
        # of the last vote, for reports
        self.changes: list[dict[str, Any]] = []
        self.changed = 0
        self._warm = False  # the first epoch also loads code
        self._transport, self._worker, self._workers = transport, worker, workers
        self._paths = _PATHS if beside else _PATHS[:-1]
        self._costs = {path: forecast.of(path) for path in self._paths}
        self._blocks = {each: len(paths) for each, paths in transport.paths.items()}
        taken = [forecast.first] * sum(self._blocks.values())
        self._rule = PathRule(
            {path: self._of_requests(path) for path in self._paths},
            taken,
            reserve=Path.GLOO.value if beside else "",
        )
        self._reduce_seconds = forecast.reduce
        one = {path: np.array([seconds]) for path, seconds in forecast.reduce.items()}
        costs = {path: RequestCosts(seconds, seconds) for path, seconds in one.items()}
        self._reduce = PathRule(costs, [next(iter(costs))]) if costs else None
        self._sums: GradientSums | None = None
        self._take()

    def attach(self, sums: GradientSums) -> None:
        """Choose the path of these sums of gradients, too."""
        self._sums = sums
        self._take()

    def votes(self) -> Tensor:
        """Return this worker's numbers among those of all workers, float32[n * k]."""
        seconds, predicted = dict.fromkeys(self._paths, 0.0), dict.fromkeys(self._paths, 0.0)
        for each in self._transport.take_times():
            path = each.path.value
            seconds[path] += each.seconds
            predicted[path] += each.exchanges * self._predicted(each.direction, path, each.width)
        table = torch.zeros(self._workers, 2 * len(self._paths) + 2)
        own = [*seconds.values(), *predicted.values(), self._reduced(), float(self.ready)]
        table[self._worker] = torch.tensor(own)
        return table.reshape(-1)

    def decide(self, epoch: int, sums: Sequence[float]) -> None:
        """Take the sums of all workers' numbers, and the paths of the next epoch."""
        table = np.array(sums).reshape(self._workers, -1)
        *times, reduced, ready = table.T
        self.all_ready = bool((ready > 0).all())
        count = len(self._paths)
        # Through Gloo the last worker to enter did not wait for others.
        observed = {
            path: times[at].min() if path == Path.GLOO.value else times[at].max()
            for at, path in enumerate(self._paths)
        }
        votes = {
            path: PathVote(float(observed[path]), float(times[at + count].max()))
            for at, path in enumerate(self._paths)
            if self._warm
        }
        self._warm = True
        changes = [self._told(epoch + 1, each) for each in self._rule.vote(votes)]
        if self._reduce is not None:
            # The last worker to enter did not wait for others.
            path = self._reduce.taken[0]
            vote = PathVote(float(reduced.min()), self._reduce_seconds[path])
            changes += [_told(epoch + 1, {}, each) for each in self._reduce.vote({path: vote})]
        self.changes, self.changed = changes, self.changed + len(changes)
        if changes:
            self._take()

    @property
    def paths(self) -> dict[str, Any]:
        """The present paths: by direction, runs of blocks as [path, blocks]; `reduce`."""
        found: dict[str, Any] = {
            each.value: [[path.value, len(list(run))] for path, run in groupby(paths)]
            for each, paths in self._transport.paths.items()
        }
        return found if self._reduce is None else found | {"reduce": self._reduce.taken[0]}

    def metrics(self) -> dict[str, float]:
        """Return the share of the blocks of each path, and the number of changes."""
        taken = self._rule.taken
        shares = {path: taken.count(path) / max(1, len(taken)) for path in self._paths}
        named = {f"path_share/{path.replace('-', '_')}": each for path, each in shares.items()}
        return {**named, "path_changes_total": self.changed}

    def _take(self) -> None:
        taken = iter(map(Path, self._rule.taken))
        self._set_paths(
            {each: tuple(next(taken) for _ in range(n)) for each, n in self._blocks.items()}
        )
        if self._reduce is not None and self._sums is not None:
            self._sums.in_switch = self._reduce.taken[0] == BY_SWITCH

    def _reduced(self) -> float:
        """Return the seconds of the last all-reduce; 0 if it took another path than the next."""
        sums = self._sums
        return 0.0 if sums is None or sums.latest[0] != sums.in_switch else sums.latest[1]

    def _of_requests(self, path: str) -> RequestCosts:
        seconds, tolls = [], []
        for direction in self._blocks:
            cost = self._costs[path][direction]
            every = [(each.times * each.seconds, each.times * each.toll) for each in cost.widths]
            total, toll = np.sum(every or [(0.0, 0.0)], axis=0)
            seconds.append(np.array(cost.shares) * total)
            tolls.append(np.array(cost.shares) * toll)
        # A block without a toll would never leave its path.
        return RequestCosts(np.concatenate(seconds), np.maximum(np.concatenate(tolls), 1e-12))

    def _predicted(self, direction: Direction, path: str, width: int) -> float:
        """Return the seconds of one exchange over the blocks that take a path."""
        cost = self._costs[path][direction]
        if not cost.widths:
            return 0.0
        taken = self._transport.paths[direction]
        share = sum(s for s, each in zip(cost.shares, taken, strict=True) if each.value == path)
        # Rows of another width take in proportion to the nearest; latencies do not become shorter.
        near = min(cost.widths, key=lambda each: abs(np.log(each.width / width)))
        latency = near.seconds - near.toll
        return (latency + (share + cost.rest) * near.toll) * width / near.width

    def _told(self, epoch: int, change: PathChange) -> dict[str, Any]:
        blocks, offset = {}, 0
        for direction, count in self._blocks.items():
            own = [each - offset + 1 for each in change.requests if 0 <= each - offset < count]
            if own:
                blocks[direction.value] = _runs(own)
            offset += count
        return _told(epoch, blocks, change)


def _runs(numbers: Iterable[int]) -> list[list[int]]:
    """Return the runs of ascending numbers as [first, last]."""
    runs = groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
    found = [[number for _, number in run] for _, run in runs]
    return [[run[0], run[-1]] for run in found]


def _told(epoch: int, blocks: Mapping[str, list[list[int]]], change: PathChange) -> dict[str, Any]:
    """Return a change for reports; without blocks it is that of the all-reduce."""
    what = " and ".join(
        f"{direction} block{'s' * (runs != [[runs[0][0]] * 2])} "
        + ", ".join(str(a) if a == b else f"{a}\N{EN DASH}{b}" for a, b in runs)
        for direction, runs in blocks.items()
    )
    seconds = {name: getattr(change, name) for name in ("observed", "predicted", "expected")}
    observed, predicted, expected = (f"{each / _MILLI:,.3g}" for each in seconds.values())
    words = (
        f"epoch {epoch}: {what or 'the all-reduce'} from {change.left} to {change.taken}: "
        f"{observed} ms observed, {predicted} predicted; {change.taken} {expected}"
    )
    told = {"epoch": epoch, "blocks": blocks, "from": change.left, "to": change.taken}
    return {**told, **seconds, "words": words}
