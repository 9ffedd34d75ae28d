"""All-reduces of all workers of a bed, beside neighbour sums over the same links."""

import threading
from contextlib import contextmanager

import numpy as np

from switchgnn.host.links.faults import Faults, FaultyLink
from switchgnn.host.links.split import kinds_from, split_link
from switchgnn.host.reduce.reducer import Reducer
from switchgnn.host.reduce.stream import ReduceStream
from switchgnn.host.wire.header import Kind
from tests.host.reduce.switch_model import largest_error
from tests.support.fabrics import JOIN_SECONDS, PATIENT, Team, added_up
from tests.support.speed import pace_here, seconds_here

# Also whole frames of 256 integers or 170 floats; more fragments than slots.
SIZES = (1, 257, 20_001, 8, 60_000, 512, 700)


class Crew:
    """Streams of all workers, each with a thread; a stack closes them."""

    def __init__(self, bed, stack, *, faults="", pace=PATIENT):
        self.bed = bed
        self.pace = pace_here(pace)
        self.links, self.streams = [], []
        self.halves = []  # of each worker's link, for neighbour sums and for all-reduces
        self.reducers = {}  # of the workers that have begun
        parsed = Faults.parse(faults)
        for worker in range(bed.workers):
            link = bed.link(worker)
            if faults:
                link = FaultyLink(link, parsed, worker)
            self.links.append(link)
            halves = split_link(link, kinds_from(Kind.REDUCE))
            self.halves.append([stack.enter_context(half) for half in halves])
            self.streams.append(self._stream(worker))
        stack.callback(self.end)

    def _stream(self, worker):
        return ReduceStream(
            self.halves[worker][1],
            self.bed.addresses(worker),
            worker=worker,
            workers=self.bed.workers,
            session=self.bed.session,
            plan_id=self.bed.plan.manifest.number,
            pace=self.pace,
        )

    def agree(self):
        self.first = max(stream.query().first for stream in self.streams)

    def begin(self, workers=None):
        """Start some workers, or all."""
        for worker in range(self.bed.workers) if workers is None else workers:
            self.streams[worker].start(self.first)
            self.reducers[worker] = Reducer(self.streams[worker])

    def begun(self):
        self.agree()
        self.begin()
        return self

    def end(self, workers=None):
        for worker in list(self.reducers) if workers is None else workers:
            self.reducers.pop(worker).close(abort=True)

    def submit(self, seed, sizes, kinds=(np.int32, np.float32), workers=None):
        """Queue tensors of these sizes, of each kind, at all workers that have begun."""
        drawn = [draw(seed, size, kind, self.bed.workers) for size in sizes for kind in kinds]
        jobs = [Job(values) for values in drawn]
        for worker in self.reducers if workers is None else workers:
            for job in jobs:
                job.futures[worker] = self.reducers[worker].submit(job.values[worker])
        return jobs

    def total(self):
        return added_up(stream.counters for stream in self.streams)

    def injected(self):
        return added_up(counts for link in self.links for counts in link.counts.values())

    @contextmanager
    def exchanging(self, stack):
        """Exchange neighbour sums until the block ends, and check them; yields the team."""
        team = Team(self.bed, stack, link=lambda worker: self.halves[worker][0])
        over, wrong = threading.Event(), []

        def exchange():
            while not (over.is_set() and wrong) and not team.errors:
                wrong.append(team.run(1, seed=len(wrong)))

        thread = threading.Thread(target=exchange, daemon=True)
        thread.start()
        try:
            yield team
        finally:
            over.set()
            thread.join(seconds_here(JOIN_SECONDS))
        assert not thread.is_alive()
        assert not team.errors, team.errors
        assert not any(wrong)


class Job:
    """A tensor of each worker, and the futures of their sum."""

    def __init__(self, values):
        self.values = values
        self.futures = {}

    def check(self):
        """Wait for all sums; they are the same, and right."""
        results = [future.result(seconds_here(JOIN_SECONDS)) for future in self.futures.values()]
        for result in results:
            assert np.array_equal(result, results[0])
        exact = np.sum(self.values, axis=0, dtype=np.float64)
        if results[0].dtype == np.int32:
            wrapped = np.sum(self.values, axis=0, dtype=np.int64).astype(np.int32)
            assert np.array_equal(results[0], wrapped)
        else:
            error = np.abs(results[0] - exact)
            # Of a fragment with the largest exponent of all.
            exponent = int(np.ceil(np.log2(np.abs(self.values).max())))
            bound = float(largest_error(len(self.values), exponent))
            assert (error <= bound + np.abs(exact) * 2.0**-24).all()


def check(jobs):
    for job in jobs:
        job.check()


def all_done(jobs):
    return all(future.done() for job in jobs for future in job.futures.values())


def draw(seed, size, kind, workers):
    generator = np.random.default_rng((seed, size))
    if kind is np.int32:
        return generator.integers(-(2**31), 2**31, (workers, size), dtype=np.int32)
    return generator.standard_normal((workers, size), dtype=np.float32)
