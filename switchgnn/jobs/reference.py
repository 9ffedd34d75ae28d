"""Compares the sums that the workers received with those over the whole graph, by SciPy."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from switchgnn.base.array_types import Bools, Float32s, Int32s, Int64s
from switchgnn.base.arrays import read_arrays
from switchgnn.base.errors import SwitchGNNError
from switchgnn.host.base.operations import Operation
from switchgnn.host.worker import WORKER_RESULT, features_of_round, result_file
from switchgnn.planner import Graph, reference_sums
from switchgnn.planner.partition.vertex_cut import ReplicaGraph

# int32 and float32
SUM_BYTES = 8
# Of a file of sums, unless one round takes more.
_FILE_BYTES = 1 << 20


@dataclass(frozen=True)
class RoundResult:
    """The results of all workers in one round: [V, F], and the scale in steps per unit."""

    fixed: Int32s
    sums: Float32s
    scale: float


@dataclass(frozen=True)
class Verdict:
    """The comparison with the reference: wrong elements, and absolute errors of float sums."""

    wrong_sums: int
    max_error: float
    error_bound: float


@dataclass(eq=False)
class Comparison:
    """Compares the rounds of a run with the reference as they arrive, and keeps none of them.

    The graph has V vertices; `assignment`: int32[V], the worker of each vertex; `features`:
    float32[V, F] of the first round; `left`: bool[V], the destinations left to the hosts, or None.
    """

    graph: Graph
    assignment: Int32s
    features: Float32s
    rounds: int
    folder: Path
    left: Bools | None = None
    operation: Operation = Operation.SUM

    def __post_init__(self) -> None:
        # the rounds whose sums a worker writes at once
        self.rounds_per_file = max(1, _FILE_BYTES // max(1, self.features.size * SUM_BYTES))
        self._written = [0] * (int(self.assignment.max()) + 1)
        self._compared = 0
        self._verdict = Verdict(wrong_sums=0, max_error=0.0, error_bound=0.0)

    def output(self, worker: int) -> Path:
        """Return the output file of a worker."""
        return self.folder / f"sums-{worker}.safetensors"

    def written(self, worker: int) -> None:
        """Count a file of a worker; compare the rounds that all have written."""
        self._written[worker] += 1
        while self._compared < min(self._written):
            self._compare_next()

    def finish(self) -> Verdict:
        """Compare the remaining rounds; return the verdict on all rounds."""
        while self._compared * self.rounds_per_file < self.rounds:
            self._compare_next()
        return self._verdict

    def _compare_next(self) -> None:
        workers = range(len(self._written))
        paths = [result_file(self.output(worker), self._compared) for worker in workers]
        results = [read_arrays(path, WORKER_RESULT, remedy="run again") for path in paths]
        first = self._compared * self.rounds_per_file
        rounds = range(first, min(first + self.rounds_per_file, self.rounds))
        for offset, index in enumerate(rounds):
            features = features_of_round(self.features, index)
            fixed = np.zeros(features.shape, dtype=np.int32)
            sums = np.zeros(features.shape, dtype=np.float32)
            scales = {float(result["scale"][offset]) for result in results}
            for worker, result in enumerate(results):
                fixed[self.assignment == worker] = result["fixed"][offset]
                sums[self.assignment == worker] = result["sums"][offset]
            if len(scales) != 1:
                raise SwitchGNNError(
                    f"Round {index + 1}: the workers used different scales: {scales}."
                )
            whole = RoundResult(fixed, sums, scales.pop())
            if self.operation.rule.words is None:
                earlier = range(index - 2, index) if index > 1 else range(0)
                before = [_magnitude(features_of_round(self.features, each)) for each in earlier]
                verdict = judge(self.graph, self.assignment, features, whole, before, self.left)
            else:
                right = _combined(self.graph, self.assignment, features, self.operation)
                verdict = Verdict(int((right != sums).sum()), max_error=0.0, error_bound=0.0)
            self._verdict = Verdict(
                wrong_sums=self._verdict.wrong_sums + verdict.wrong_sums,
                max_error=max(self._verdict.max_error, verdict.max_error),
                error_bound=max(self._verdict.error_bound, verdict.error_bound),
            )
        for path in paths:
            path.unlink()
        self._compared += 1


def expected_scales(
    max_fan_in: int, magnitude: float, before: Sequence[float] = ()
) -> tuple[float, ...]:
    """Return the scales of a round in steps per unit (docs/recovery.md, "Early features").

    They follow from the round's own magnitude, and from the foreseen one where it fits: four times
    the larger magnitude of the two rounds before.
    """
    capacity = 4 * max(before, default=0.0)
    capacities = [magnitude, *([capacity] if capacity >= magnitude and capacity else [])]
    return tuple(
        (2.0**31 - max_fan_in) / (max_fan_in * each) if each else 1.0 for each in capacities
    )


def _magnitude(features: Float32s) -> float:
    return float(np.abs(features).max(initial=0.0))


def remote_fan_in(graph: Graph, assignment: Int32s) -> Int64s:
    """Return int64[V], the number of remote in-neighbours of each vertex."""
    if isinstance(graph, ReplicaGraph):
        replicas: Int64s = np.bincount(graph.vertex)[graph.vertex]
        return np.where(replicas > 1, replicas, 0)
    source, destination = graph.edges()
    remote = assignment[source] != assignment[destination]
    counts: Int64s = np.bincount(destination[remote], minlength=graph.vertices)
    return counts


def _combined(
    graph: Graph, assignment: Int32s, features: Float32s, operation: Operation
) -> Float32s:
    """Return float32[V, F], an operation's result over remote in-neighbours."""
    source, destination = graph.edges()
    remote = assignment[source] != assignment[destination]
    source, destination = source[remote], destination[remote]
    if isinstance(graph, ReplicaGraph):
        source = np.flatnonzero(remote_fan_in(graph, assignment)).astype(np.int32)
        destination = graph.vertex[source]
    found = np.full_like(features, operation.rule.nothing)
    for column, own in zip(found.T, features.T, strict=True):
        operation.rule.over_rows.at(column, destination, own[source])
    return found[graph.vertex] if isinstance(graph, ReplicaGraph) else found


def judge(  # noqa: PLR0917  a round and its surroundings
    graph: Graph,
    assignment: Int32s,
    features: Float32s,
    result: RoundResult,
    before: Sequence[float] = (),
    left: Bools | None = None,
) -> Verdict:
    """Compare one round with the sums over the whole graph.

    `assignment`: int32[V]; `features`: float32[V, F]; `before`: the largest magnitudes of the two
    rounds before; `left`: bool[V], the destinations left to the hosts, or None. Sums of hosts are
    wrong if they are off by more than float32 explains.
    """
    by_hosts = np.zeros(graph.vertices, dtype=np.bool_) if left is None else left
    counts, magnitude = remote_fan_in(graph, assignment), _magnitude(features)
    over_switch = int(counts[~by_hosts].max(initial=0))
    fan_in = max(1, over_switch)
    exact = features.astype(np.float64)
    error = np.abs(result.sums - reference_sums(graph, assignment, exact))
    # In any order, in at most two steps, a sum of n numbers of float32 is off by at most
    # (n + 1) · 2^-23 times the sum of their magnitudes.
    magnitudes = reference_sums(graph, assignment, np.abs(exact))
    allowed = ((counts[:, np.newaxis] + 1) * 2.0**-23 * magnitudes)[by_hosts]
    # Without any block no scale is agreed on.
    agreed = left is None or over_switch > 0
    scales = expected_scales(fan_in, magnitude, before) if agreed else (result.scale,)
    scale = min(scales, key=lambda each: abs(each - result.scale))
    fixed = reference_sums(graph, assignment, np.rint(exact * scale).astype(np.int64))
    fixed[by_hosts] = 0
    wrong = int((fixed != result.fixed).sum() + (error[by_hosts] > allowed).sum())
    if not np.isclose(scale, result.scale, rtol=1e-12):
        wrong = fixed.size
    bound = 0.0
    if magnitude and agreed:
        bound = fan_in / (2 * scale) + fan_in * magnitude * 2.0**-24
    return Verdict(
        wrong_sums=wrong,
        max_error=float(error.max(initial=0.0)),
        error_bound=max(bound, float(allowed.max(initial=0.0))),
    )
