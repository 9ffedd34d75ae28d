"""Stand-ins for a worker's connection to the switch: between threads, and between processes."""

import queue
import threading
from concurrent.futures import Future

import numpy as np
import torch
import torch.distributed as dist


class Pile:
    """Adds arrays of threads in the order of their submission; `hold` delays all results."""

    def __init__(self, workers):
        self.lines = [[] for _ in range(workers)]
        self.newest = [10 * worker for worker in range(workers)]
        self.opened, self.closed, self.calls = {}, [], []
        self.error = None
        self._complete = 0
        self._free = True
        self._lock = threading.Lock()

    def reducer(self, rank, _size):
        return _End(self, rank)

    def hold(self):
        self._free = False

    def release(self):
        with self._lock:
            self._free = True
            self._answer()

    def put(self, rank, *job):
        with self._lock:
            self.lines[rank].append(job)
            self._answer()

    def _answer(self):
        while self._free and all(len(line) > self._complete for line in self.lines):
            jobs = [line[self._complete] for line in self.lines]
            self._complete += 1
            if self.error is not None:
                for _, _, future in jobs:
                    future.set_exception(self.error)
                continue
            # A sum in the type of the wire: int32 wraps around.
            total = np.sum([values for values, _, _ in jobs], axis=0, dtype=jobs[0][0].dtype)
            for _, call, future in jobs:
                divisor = len(jobs) if call.average else 1
                future.set_result((total / divisor).astype(total.dtype))


class _End:
    def __init__(self, pile, rank):
        self.pile, self.rank = pile, rank

    def open(self, agree):
        self.pile.opened[self.rank] = agree(self.pile.newest[self.rank])

    def submit(self, values, call):
        self.pile.calls.append(call)
        assert values.ndim == 1
        assert values.flags.c_contiguous
        assert values.dtype in (np.int32, np.float32)
        future = Future()
        self.pile.put(self.rank, values.copy(), call, future)
        return future

    def close(self, *, abort=False):
        self.pile.closed.append((self.rank, abort))


class BesideGloo:
    """Adds arrays of processes in a thread, through Gloo; `error` comes at array `fail_at`."""

    def __init__(self, store, rank, size, error=None, fail_at=None):
        self.rank, self.size = rank, size
        self.arrays = 0
        self._store = store
        self._error, self._fail_at = error, fail_at
        self._jobs = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def open(self, agree):
        self._gloo = dist.ProcessGroupGloo(self._store, self.rank, self.size)
        assert agree(self.rank) == self.size - 1
        self._thread.start()

    def submit(self, values, call):
        future = Future()
        self._jobs.put((values, call.average, future))
        return future

    def close(self, *, abort=False):
        if self._thread.is_alive():
            self._jobs.put(None)
            self._thread.join()

    def _run(self):
        while (job := self._jobs.get()) is not None:
            values, average, future = job
            self.arrays += 1
            if self.arrays == self._fail_at:
                future.set_exception(self._error)
                continue
            total = torch.from_numpy(values.copy())
            self._gloo.allreduce([total]).wait()
            future.set_result((total / self.size if average else total).numpy())
