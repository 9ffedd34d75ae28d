"""Workers that lose the switch anywhere around an operation, in threads, with a switch of dicts."""

import itertools
import threading
from concurrent.futures import Future
from types import SimpleNamespace

import numpy as np
import pytest
import torch.distributed as dist

from switchgnn.host.base.silence import SwitchSilentError
from switchgnn.host.direct.kinds import BinnedSchedule, partial_schedules
from switchgnn.host.paths.base import Path
from switchgnn.host.reduce import reducer as reducers
from switchgnn.planner import Direction, load_graph
from switchgnn.training.base.errors import LostWorkerError
from switchgnn.training.exchange import standby
from switchgnn.training.exchange.standby import Position, Rendezvous, Standby
from tests.support.fabrics import in_threads
from tests.support.speed import seconds_here

WORKERS, WIDTH = 3, 2
GRAPH = load_graph("karate")
ASSIGNMENT = (np.arange(GRAPH.vertices) % WORKERS).astype(np.int32)
SCHEDULES = partial_schedules(GRAPH, ASSIGNMENT, WORKERS)
FORWARD, BACKWARD = Direction
# What the switch adds to its all-reduces, to tell them from those of Gloo.
MARK = 0.5
# Two operations in each epoch, as (exchange or None, its direction).
EPOCHS = 6
OPERATIONS = [FORWARD, None] * EPOCHS


def inputs(number, worker):
    shape = (int(np.sum(worker == ASSIGNMENT)), WIDTH) if OPERATIONS[number] else (5,)
    return np.random.default_rng([number, worker]).integers(-9, 9, shape).astype(np.float32)


def number_of(values, worker):
    every = (inputs(number, worker) for number in range(len(OPERATIONS)))
    return next(number for number, each in enumerate(every) if np.array_equal(each, values))


def sums(number, worker):
    """What all workers' inputs add up to, from the edges alone."""
    if OPERATIONS[number] is None:
        return sum(inputs(number, each) for each in range(WORKERS))
    rows = np.zeros((GRAPH.vertices, WIDTH), dtype=np.float32)
    for each in range(WORKERS):
        rows[each == ASSIGNMENT] = inputs(number, each)
    source, destination = GRAPH.edges()
    far = ASSIGNMENT[source] != ASSIGNMENT[destination]
    total = np.zeros_like(rows)
    np.add.at(total, destination[far], rows[source[far]])
    return total[worker == ASSIGNMENT]


class Watch:
    """Is over at once where the switch is silent."""

    seconds, answered = 0.5, False

    def __init__(self):
        self.alarmed = lambda: False
        self.probing = False

    def begin(self, now):
        pass

    def look(self, now, **_):
        if self.alarmed():
            raise SwitchSilentError("silent")

    def probe(self):
        self.probing = True


class Switch:
    """Completes an operation for a worker when all have begun it, unless it is silent to that one.

    `silent`: pairs of a worker and an operation, each counts once. The first counts when all are
    in theirs, or have completed the operation `around`.
    """

    def __init__(self, silent, around):
        self.silent, self.around, self.placed = set(silent), around, False
        self.begun = [set() for _ in range(WORKERS)]
        self.completed = [[] for _ in range(WORKERS)]
        self.changed = threading.Condition()

    def begin(self, worker, number):
        with self.changed:
            self.begun[worker].add(number)
            self.changed.notify_all()

    def all_are_placed(self):
        here = self.around, self.around + 1
        for worker in range(WORKERS):
            own = [each for each in here if (worker, each) in self.silent]
            there = self.begun[worker] if own else self.completed[worker]
            self.placed = min(own, default=self.around) in there
            if not self.placed:
                break
        return self.placed

    def complete(self, worker, number, alarmed):
        with self.changed:
            while True:
                silent = (worker, number) in self.silent
                if alarmed() or (silent and (self.placed or self.all_are_placed())):
                    self.silent.discard((worker, number))
                    raise SwitchSilentError("silent")
                if not silent and all(number in each for each in self.begun):
                    break
                self.changed.wait(0.005)
            self.completed[worker].append(number)
            self.changed.notify_all()


class Exchange:
    """Stands for a PathsTransport."""

    stopped = False

    def __init__(self, switch, worker):
        self.switch, self.worker, self.watch = switch, worker, Watch()
        self.paths = dict.fromkeys(Direction, (Path.SWITCH,))
        self.interrupted = None

    def standby(self):
        own = SCHEDULES[self.worker]
        return BinnedSchedule(own, own.transposed())

    def set_paths(self, paths):
        pass

    def attend(self, until):
        pass

    def aggregate(self, rows, direction, tensor_id=0):
        self.interrupted = number = number_of(rows, self.worker)
        self.switch.begin(self.worker, number)
        self.resume()
        return sums(number, self.worker)

    def resume(self):
        if self.watch.probing:
            self.watch.probing, self.watch.answered = False, True
            raise SwitchSilentError("silent")
        self.switch.complete(self.worker, self.interrupted, self.watch.alarmed)
        self.interrupted = None


class Reducer:
    """Stands for a Reducer, whose thread goes on by itself."""

    def __init__(self, switch, worker):
        self.switch, self.worker = switch, worker
        self.timeout = SimpleNamespace(heard_at=float("inf"), progress_at=0.0, patient=False)

    def close(self, *, abort):
        assert abort

    def submit(self, values):
        number, future = number_of(values, self.worker), Future()
        self.switch.begin(self.worker, number)

        def run():
            try:
                self.switch.complete(self.worker, number, lambda: False)
                future.set_result(sums(number, self.worker) + MARK)
            except SwitchSilentError as error:
                future.set_exception(error)
                self.switch.complete(self.worker, number, lambda: False)

        threading.Thread(target=run, daemon=True).start()
        return future


def train(silent, around, attending=()):
    """Return the switch, and the results and changes of each worker.

    `attending`: pairs of a worker and an operation, before which it waits in a Gloo collective.
    """
    switch, store = Switch(silent, around), dist.HashStore()
    results = [[] for _ in range(WORKERS)]
    changes = [[] for _ in range(WORKERS)]

    def work(worker):
        exchange, reducer = Exchange(switch, worker), Reducer(switch, worker)
        own = Standby(exchange, Rendezvous(store, worker, WORKERS, 20.0))
        for number, direction in enumerate(OPERATIONS):
            if (worker, number) in attending:
                own.attend(lambda: own.down)
            values = inputs(number, worker)
            if direction is None:
                results[worker].append(own.reduce(values, reducer))
                own.next_epoch()
            else:
                results[worker].append(own.aggregate(values, direction))
        own.close()
        changes[worker] = [each["why"] for each in own.take_changes()]

    in_threads(work, WORKERS)
    return switch, results, changes


def check_sums(results):
    for number, direction in enumerate(OPERATIONS):
        found = [results[worker][number] for worker in range(WORKERS)]
        for worker, each in enumerate(found):
            # Weights stay equal everywhere only if all take the same sums.
            assert direction is not None or np.array_equal(each, found[0])
            apart = each - sums(number, worker)
            assert np.array_equal(apart, np.full_like(apart, apart.flat[0])) and (
                apart.flat[0] in (0.0, MARK)
            )


def check(switch, results):
    check_sums(results)

    def alike():
        return len({frozenset(each) for each in switch.completed}) == 1

    with switch.changed:
        # The thread of an all-reduce may still be at it.
        switch.changed.wait_for(alike, timeout=seconds_here(20.0))
    made = set(switch.completed[0])
    assert len(made) < len(OPERATIONS)
    for each in switch.completed:
        assert set(each) == made


PLACES = ("in it", "has completed it", "has begun the next", "waits for gloo")


@pytest.mark.parametrize("number", [2, 3])
def test_workers_agree_wherever_the_switch_leaves_them(number):
    """In all 4^3 ways to be around an exchange (2) or an all-reduce (3)."""
    for places in itertools.product(PLACES, repeat=WORKERS):
        if "in it" not in places and "has begun the next" not in places:
            continue
        silent = {(w, number) for w, each in enumerate(places) if each == "in it"}
        silent |= {(w, number + 1) for w, each in enumerate(places) if each == PLACES[2]}
        attending = {(w, number + 1) for w, each in enumerate(places) if each == PLACES[3]}
        switch, results, changes = train(silent, number, attending)
        check(switch, results)
        for each in changes:
            assert each == ["switch silent for 0.5 s", "switch answers again"], places


def test_a_switch_may_become_silent_while_workers_return():
    """To one of them, in what it has still to complete; the others are in the next operation."""
    for worker in range(WORKERS):
        # It has completed 2, and owes 3, which the others have begun.
        others = {(each, 3) for each in range(WORKERS) if each != worker}
        switch, results, changes = train({(worker, 2), (worker, 4), *others}, 2)
        check(switch, results)
        assert {len(each) for each in changes} <= {2, 3, 4}


@pytest.mark.parametrize("worker", range(WORKERS))
def test_a_switch_may_become_silent_to_one_worker_that_returns(worker):
    """The others have returned, and go on over the switch in the same epoch."""
    others = {(each, 2) for each in range(WORKERS) if each != worker}
    # It is in the all-reduce 1, and owes the exchange 2, which the others have begun.
    _, results, changes = train({(worker, 1), (worker, 2), *others}, 1)
    check_sums(results)
    assert changes[worker][:2] == ["switch silent for 0.5 s"] * 2


def test_a_training_ends_although_the_switch_still_owes_an_all_reduce():
    timeout = SimpleNamespace(heard_at=0.0, progress_at=0.0, patient=False)
    owed = {"submit": lambda *_, **__: SimpleNamespace(done=False), "step": lambda _: None}
    exchange = Exchange(Switch((), 0), 0)
    own = Standby(exchange, Rendezvous(dist.HashStore(), 0, 1, 20.0))
    exchange.watch.alarmed = lambda: True
    with reducers.Reducer(SimpleNamespace(idle=False, timeout=timeout, **owed)) as reducer:
        assert np.array_equal(own.reduce(inputs(1, 0), reducer), inputs(1, 0))
        own.close()
        with pytest.raises(reducers.ReducerClosedError):
            reducer.submit(inputs(1, 0))


def test_a_worker_that_does_not_come_is_named(monkeypatch):
    monkeypatch.setattr(standby, "word_left", lambda: None)
    store = dist.HashStore()
    made = {}

    def work(worker):
        made[worker] = Rendezvous(store, worker, 2, 0.1)

    in_threads(work, 2)
    with pytest.raises(LostWorkerError, match="worker 1 did not come"):
        made[0].hold(Position(0, begun=True, epoch=1), lambda: False)
