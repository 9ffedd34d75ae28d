"""Reducers of several workers in threads, over a model switch in real time."""

import queue
import threading
import time

import numpy as np
import pytest

from switchgnn.host.base.pace import Pace
from switchgnn.host.innetwork.errors import ExchangeTimeoutError
from switchgnn.host.reduce.frames import number_of
from switchgnn.host.reduce.reducer import Reducer, ReducerClosedError
from switchgnn.host.reduce.reduction import Call
from switchgnn.host.wire.header import Kind, unpack_header
from tests.host.addresses import QueueLink
from tests.host.reduce.switch_model import ModelSwitch, started_streams
from tests.support.fabrics import in_threads

WORKERS, SLOTS = 3, 16
PATIENCE = 2.0
LONG = 30.0


class Threads:
    """Links between threads and a model switch."""

    def __init__(self):
        self.switch = ModelSwitch(WORKERS, SLOTS)
        self.lock = threading.Lock()
        self.sent = []  # the worker and the frame
        self.inboxes = [queue.SimpleQueue() for _ in range(WORKERS)]

    def link(self, worker):
        def take(frame):
            with self.lock:
                self.sent.append((worker, bytes(frame)))
                for receiver, answer in self.switch.take(worker, frame):
                    self.inboxes[receiver].put(answer)

        return QueueLink(worker, take, self.inboxes[worker])


@pytest.fixture
def threads():
    return Threads()


@pytest.fixture
def streams(threads):
    return started_streams(threads.link, WORKERS, pace=Pace(timeout=PATIENCE, shortest_timeout=0.2))


@pytest.fixture
def reducers(streams):
    made = [Reducer(stream) for stream in streams]
    yield made
    for reducer in made:
        reducer.close(abort=True)


def tensors(size):
    return [np.arange(size, dtype=np.int32) + worker for worker in range(WORKERS)]


def test_futures_get_the_sums_in_the_order_of_submission(reducers):
    sizes = (1, 5000, 0, 256)
    futures = [
        [reducer.submit(tensors(size)[worker]) for size in sizes]
        for worker, reducer in enumerate(reducers)
    ]
    for row in futures:
        for size, future in zip(sizes, row, strict=True):
            assert np.array_equal(future.result(LONG), sum(tensors(size)))


def test_frames_say_whether_their_tensor_is_late(reducers, threads):
    futures = [
        [reducer.submit(tensors(300)[worker], late=late) for late in (False, True, True, False)]
        for worker, reducer in enumerate(reducers)
    ]
    for future in (future for row in futures for future in row):
        assert np.array_equal(future.result(LONG), sum(tensors(300)))
    # A mark and two fragments each, by number; others are questions.
    frames = [(unpack_header(frame), frame) for worker, frame in threads.sent if worker == 0]
    dscps = {number_of(each): frame[15] >> 2 for each, frame in frames if each.kind is Kind.REDUCE}
    assert [dscps[number] for number in sorted(dscps)] == [8] * 3 + [1] * 6 + [8] * 3


def test_many_threads_may_submit(reducers):
    """In the same order at all workers, which a lock gives here."""
    turn, found = threading.Lock(), []

    def work(_):
        for _ in range(5):
            with turn:
                futures = [
                    reducer.submit(np.full(300, worker + 1.0, dtype=np.float32), Call(average=True))
                    for worker, reducer in enumerate(reducers)
                ]
            found.extend(future.result(LONG) for future in futures)

    in_threads(work, 4)
    assert len(found) == 5 * 4 * WORKERS
    assert all(np.allclose(each, 2.0, atol=1e-6) for each in found)


def test_close_finishes_what_was_submitted(streams):
    values = tensors(3000)
    with Reducer(streams[0]) as first, Reducer(streams[1]) as second, Reducer(streams[2]) as third:
        made = (first, second, third)
        futures = [reducer.submit(each) for reducer, each in zip(made, values, strict=True)]
    assert all(future.done() for future in futures)
    assert np.array_equal(futures[0].result(), sum(values))
    with pytest.raises(ReducerClosedError):
        first.submit(values[0])
    first.close()


def test_an_exception_in_its_block_gives_up_what_is_pending(streams):
    with pytest.raises(KeyError), Reducer(streams[0]) as reducer:
        future = reducer.submit(tensors(10)[0])
        raise KeyError
    with pytest.raises(ReducerClosedError):
        future.result(LONG)


def test_a_future_cannot_be_cancelled(reducers):
    futures = [reducer.submit(each) for reducer, each in zip(reducers, tensors(10), strict=True)]
    assert not futures[0].cancel()
    assert np.array_equal(futures[0].result(LONG), sum(tensors(10)))


@pytest.mark.whole
def test_an_error_reaches_what_is_pending_and_what_comes_later(reducers):
    reducers[2].close()
    for future in [reducers[0].submit(np.zeros(4, dtype=np.float32)) for _ in range(2)]:
        with pytest.raises(ExchangeTimeoutError) as caught:
            future.result(LONG)
        # Worker 1 has not submitted, but lives.
        assert caught.value.workers == (2,)
    with pytest.raises(ExchangeTimeoutError):
        reducers[0].submit(np.zeros(4, dtype=np.float32))


@pytest.mark.whole
def test_workers_that_are_idle_or_wait_use_little_time(reducers):
    before = time.process_time()
    time.sleep(1.0)
    idle = time.process_time() - before
    reducers[0].submit(np.zeros(4, dtype=np.int32))
    before = time.process_time()
    time.sleep(1.0)
    waiting = time.process_time() - before
    assert idle < 0.1
    assert waiting < 0.3
