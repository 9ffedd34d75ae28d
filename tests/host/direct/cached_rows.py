"""The rule of the cache on the whole graph, in one process, and calls with thresholds."""

from collections import Counter, defaultdict
from typing import NamedTuple

import numpy as np

from switchgnn.planner import Direction, boundary_edges
from tests.host.direct.crew import sizes_of_frames, together, whole_sums


class Call(NamedTuple):
    """One exchange of all workers; `features`: float32[V, F]; `skipped`: bool[V]."""

    features: np.ndarray
    direction: Direction = Direction.FORWARD
    tensor_id: int = 0
    epsilon: float = 0.0
    skipped: np.ndarray | None = None


def exchange_all(transports, parts, calls, after=lambda worker, call: None):
    """Make all calls; return float32[V, F] sums for each, as `crew.exchange` does."""

    def work(worker):
        transport, sums = transports[worker], []
        for call in calls:
            transport.epsilon = call.epsilon
            skipped = None if call.skipped is None else call.skipped[parts[worker]]
            transport.skip(call.tensor_id, skipped)
            rows = call.features[parts[worker]]
            sums.append(transport.aggregate(rows, call.direction, call.tensor_id))
            after(worker, call)
        transport.close()
        return sums

    return whole_sums([call.features for call in calls], parts, together(work, len(transports)))


class Rule:
    """What each pair of workers exchanges."""

    def __init__(self, graph, assignment, choose, *, bits, mtu):
        self.due = self.skipped = 0  # rows so far
        self.frames = Counter()  # how many data frames of which size they take
        self._bits, self._mtu = bits, mtu
        self._held = {}
        self._assignment, self._workers = assignment, int(assignment.max()) + 1
        self._rows = defaultdict(lambda: (set(), set()))
        boundary = boundary_edges(graph, assignment)
        ends = boundary.source.tolist(), boundary.destination.tolist()
        for source, destination, copied in zip(*ends, choose(boundary).tolist(), strict=True):
            pair = int(assignment[source]), int(assignment[destination])
            row = self._rows[(*pair, copied, source if copied else destination)]
            row[0].add(source)
            row[1].add(destination)

    def exchange(self, call):
        """Return float64[V, F] sums."""
        width = call.features.shape[1]
        state = call.direction, call.tensor_id, width
        first = state not in self._held
        held = self._held.setdefault(state, {})
        sums = np.zeros(call.features.shape)
        usual = [_usual(call.features[self._assignment == each]) for each in range(self._workers)]
        rows, changed = Counter(), Counter()
        for key, ends in self._rows.items():
            backward = call.direction is Direction.BACKWARD
            pair = key[1::-1] if backward else key[:2]
            sources, destinations = reversed(ends) if backward else ends
            value = added(call.features[sorted(sources)])
            old = held.get(key, np.zeros_like(value))
            rows[pair] += 1
            rests = (
                not (first or backward or call.skipped is None)
                and call.skipped[list(sources)].all()
            )
            moved, size = np.abs(value - old).max(), max(np.abs(value).max(), usual[pair[0]])
            if first or (not rests and moved > np.float32(call.epsilon) * size):
                changed[pair] += 1
                held[key] = value if self._bits == 32 else old + rounded(value - old, self._bits)
            for destination in destinations:
                sums[destination] += held[key]
        self.due += rows.total()
        self.skipped += rows.total() - changed.total()
        words = width if self._bits == 32 else -(-width * self._bits // 32) + 2
        for pair, count in rows.items():
            if not first:
                self.frames.update(sizes_of_frames(-(-count // 256), 8, self._mtu))
            self.frames.update(sizes_of_frames(changed[pair], words, self._mtu))
        return sums


def _usual(rows):
    sizes = np.abs(rows).max(axis=1)
    sizes = sizes[np.isfinite(sizes)]
    return np.float32(sizes.mean(dtype=np.float64)) if len(sizes) else np.float32(0)


def added(rows):
    """float32[F], one row after the other."""
    total = rows[0]
    for row in rows[1:]:
        total = total + row
    return total


def rounded(row, bits):
    """CDFGNN's formula in float32, with 2^bits - 1 steps."""
    low, high, steps = row.min(), row.max(), 2**bits - 1
    if low == high:
        return row
    step = (high - low) / np.float32(steps)
    codes = np.minimum(np.floor((row - low) / step + np.float32(0.5)), steps)
    return low + codes.astype(np.float32) * step
