"""Workers as threads, and a transport between them in NumPy."""

import threading

import numpy as np
import scipy.sparse

from switchgnn.host.base.compression import NO_COMPRESSION, Savings
from switchgnn.host.links.transport import NO_TRAFFIC
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.partition.vertex_cut import ReplicaGraph
from tests.host.direct.crew import together
from tests.support.speed import seconds_here


def in_threads(work, workers, *barriers):
    """Return work(worker) of all workers; the first error aborts the barriers."""

    def run(worker):
        try:
            return work(worker)
        except BaseException:
            for barrier in barriers:
                barrier.abort()
            raise

    return together(run, workers)


class Gathering:
    """Sums of all workers' rows over the remote edges of the whole graph."""

    def __init__(self, graph, assignment, *, compression=NO_COMPRESSION, spoil=None):
        source, destination = graph.edges()
        remote = assignment[source] != assignment[destination]
        source, destination = source[remote], destination[remote]
        if isinstance(graph, ReplicaGraph):
            # Each replica gets the sum of all, if there are several.
            shared = np.bincount(graph.vertex)[graph.vertex] > 1
            source, destination = np.nonzero(np.equal.outer(graph.vertex, graph.vertex) & shared)
        if spoil is not None:
            source, destination = spoil(source, destination)
        shape = (graph.vertices, graph.vertices)
        ones = np.ones(len(source))
        self.matrix = scipy.sparse.csr_matrix((ones, (destination, source)), shape=shape)
        self.assignment = assignment
        self.workers = int(assignment.max()) + 1
        self.barrier = threading.Barrier(self.workers, timeout=seconds_here(60))
        self.rows = None
        end = _CachingEnd if compression.cache else _End
        self.transports = [end(self, worker) for worker in range(self.workers)]

    def meet(self, worker, rows, direction):
        mine = np.flatnonzero(self.assignment == worker)
        if self.barrier.wait() == 0:
            self.rows = np.zeros((len(self.assignment), rows.shape[1]))
        self.barrier.wait()
        self.rows[mine] = rows
        self.barrier.wait()
        matrix = self.matrix if direction is Direction.FORWARD else self.matrix.T
        sums = (matrix @ self.rows)[mine].astype(np.float32)
        self.barrier.wait()
        return sums


class _End:
    def __init__(self, gathering, worker):
        self.gathering, self.worker = gathering, worker
        self.calls, self.tensor_ids = [], []

    def aggregate(self, rows, direction, tensor_id):
        self.calls.append((direction, rows.shape[1]))
        self.tensor_ids.append((tensor_id, direction, rows.shape[1]))
        return self.gathering.meet(self.worker, rows, direction)

    def expected_traffic(self, width, _direction):
        return NO_TRAFFIC._replace(bytes_up=width)

    def next_epoch(self):
        pass

    def close(self):
        pass


class _CachingEnd(_End):
    """Rows as the others hold them: the last ones that had changed enough (CDFGNN, section 4)."""

    def __init__(self, gathering, worker):
        super().__init__(gathering, worker)
        self.epsilon, self.savings, self.held = 0.0, Savings(), {}
        self.compression = None
        self.skipped, self.told, self.forgotten = {}, [], []

    def compress(self, compression):
        self.compression = compression

    def skip(self, tensor_id, vertices):
        self.skipped[tensor_id] = vertices
        self.told.append((tensor_id, vertices))

    def forget(self, tensor_id):
        self.forgotten.append(tensor_id)
        self.held = {key: rows for key, rows in self.held.items() if key[0] != tensor_id}

    def aggregate(self, rows, direction, tensor_id):
        tensor = tensor_id, direction, rows.shape[1]
        skipped = self.skipped.get(tensor_id)
        if direction is Direction.BACKWARD or tensor not in self.held:
            skipped = None
        epsilon = self.epsilon if tensor in self.held else 0
        held = self.held.setdefault(tensor, np.zeros_like(rows))
        sizes = abs(rows).max(axis=1)
        changed = abs(rows - held).max(axis=1) > epsilon * sizes.clip(min=sizes.mean())
        if skipped is not None:
            changed &= ~skipped
        held[changed] = rows[changed]
        self.savings.rows += len(rows)
        self.savings.skipped += int((~changed).sum())
        return super().aggregate(held, direction, tensor_id)
