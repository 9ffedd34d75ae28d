"""Rounds of changing rows with compression, and what their sums must be.

The oracle has the plan, the features, the scales and the rule of docs, and nothing of the workers'
caches.
"""

from dataclasses import dataclass

import numpy as np

from switchgnn.host.compression import Compression
from switchgnn.planner import Direction, reference_sums
from tests.simulation.checks.scales import PlannedFrames
from tests.support.fabrics import in_threads

EPSILON = 0.1


@dataclass(frozen=True, eq=False)
class Call:
    """One exchange of all workers; `features`: float32[V, F]."""

    features: np.ndarray
    direction: Direction
    tensor_id: int


class Oracle:
    """The sums of what was sent, with and without caches."""

    def __init__(self, plan, compression, epsilon):
        self._plan, self._compression, self._epsilon = plan, compression, epsilon
        self._frames = PlannedFrames(plan)
        # The scale and what was sent of each frame, by tensor.
        self._tensors = {}

    def sums(self, call, scale, *, full):
        """Return int64[V, F], the sums of one round; `full`: all rows were sent whole."""
        fixed = np.rint(call.features.astype(np.float64) * scale).astype(np.int64)
        key = call.tensor_id, call.direction, fixed.shape[1]
        before, epsilon = None, 0.0
        if self._compression.cache and not full:
            (known, before), epsilon = self._tensors[key], self._epsilon
            assert known == scale
        now = self._frames.sent(fixed, before, epsilon)
        self._tensors[key] = scale, now
        blocks = self._plan.manifest.direction(call.direction).block_numbers
        return self._frames.totals(now, blocks, len(fixed))


def calls_of(graph, rounds, *, widths=(33, 7), seed=0, surges=True):
    """Draw rounds in both directions, of one tensor per width; some rows change in each.

    With surges, features outgrow their scale now and then, or become far smaller.
    """
    generator = np.random.default_rng(seed)
    tensors = [
        {direction: generator.standard_normal((graph.vertices, width)) for direction in Direction}
        for width in widths
    ]
    calls = []
    for index in range(rounds):
        tensor_id = index // len(Direction) % len(tensors)
        direction = tuple(Direction)[index % len(Direction)]
        rows = tensors[tensor_id][direction]
        calls.append(Call(rows.astype(np.float32), direction, tensor_id))
        moved = generator.random(len(rows)) < 0.4
        rows[moved] += 0.2 * generator.standard_normal((moved.sum(), rows.shape[1]))
        if surges and generator.random() < 0.05:
            rows *= generator.choice([8.0, 1e-4])
    return calls


def run(team, calls):
    """Let all workers of a team do these rounds; return their sums, by round and worker."""
    results = [{} for _ in calls]

    def work(worker):
        exchange, rows = team.exchanges[worker], team.bed.plan.workers[worker].vertices
        try:
            for index, call in enumerate(calls):
                before = exchange.savings.full
                sums = exchange.aggregate_fixed(call.features[rows], call.direction, call.tensor_id)
                results[index][worker] = sums, exchange.savings.full > before
        except Exception as error:
            team.errors[worker] = error

    in_threads(work, team.bed.workers)
    return results


def check(team, calls, results, compression, epsilon=EPSILON):
    """Compare rounds with the oracle; return how many of them sent all rows."""
    assert not team.errors, (team.errors, team.total())
    plan, graph = team.bed.plan, team.bed.graph
    oracle, fulls = Oracle(plan, compression, epsilon), 0
    for index, (call, result) in enumerate(zip(calls, results, strict=True)):
        point, full = result[0][0].fixed_point, result[0][1]
        fulls += full
        got, decoded = np.zeros(call.features.shape, np.int64), np.zeros(call.features.shape)
        for worker, (sums, was_full) in result.items():
            rows = plan.workers[worker].vertices
            got[rows], decoded[rows] = sums.values, sums.decode()
            assert (sums.fixed_point.scale, was_full) == (point.scale, full)
        right = oracle.sums(call, point.scale, full=full)
        assert np.array_equal(got, right), (index, int((got != right).sum()))
        exact, largest = (
            reference_sums(graph, plan.assignment, each, call.direction)
            for each in (call.features.astype(np.float64), sizes(call.features, plan.assignment))
        )
        least = epsilon if compression.cache else 0.0
        bound = least * largest + (1 + least) * point.error_bound()
        assert (np.abs(decoded - exact) <= bound).all(), index
    return fulls


def sizes(features, assignment):
    """Return float64[V, F], by which changes are measured: the same in all columns of a row."""
    largest = np.abs(features.astype(np.float64)).max(axis=1)
    usual = np.array([largest[assignment == each].mean() for each in range(assignment.max() + 1)])
    rows = np.maximum(largest, usual[assignment])[:, np.newaxis]
    return np.broadcast_to(rows, features.shape)


def run_and_check(team, calls, compression, epsilon=EPSILON):
    """Do rounds, and check them; returns how many of them sent all rows."""
    for exchange in team.exchanges:
        exchange.compress(compression)
        exchange.epsilon = epsilon
    results = run(team, calls)
    return check(team, calls, results, compression, epsilon)


CACHED = {bits: Compression(bits=bits, cache=True) for bits in (32, 16, 8)}
