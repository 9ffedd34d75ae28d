"""Workers that make other calls than the others, leave early, or have other weights."""

import threading
import time
from concurrent.futures import Future
from datetime import timedelta
from itertools import product

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402

from switchgnn.base.errors import SwitchGNNError  # noqa: E402
from switchgnn.host.direct.kinds import copy_schedules  # noqa: E402
from switchgnn.planner.base.direction import Direction  # noqa: E402
from switchgnn.training.base import steps as module  # noqa: E402
from switchgnn.training.base.errors import LostWorkerError, OutOfStepError  # noqa: E402
from switchgnn.training.base.steps import SharedSteps, leave_word  # noqa: E402
from switchgnn.training.exchange.sums import RemoteSum  # noqa: E402
from tests.host.direct.crew import on_hub, random_case, together  # noqa: E402
from tests.support.speed import seconds_here  # noqa: E402
from tests.training.gathering import in_threads  # noqa: E402
from tests.training.threads import ThreadSums  # noqa: E402

RULE = ": all workers must make the same calls in the same order."


class Gather:
    """A gather of workers that are threads, as PyTorch has it."""

    def __init__(self, pile, found):
        self.pile, self.found = pile, found

    def is_completed(self):
        return len(self.pile) == len(self.found)

    def wait(self, most=None):
        began, most = time.monotonic(), most or timedelta(seconds=seconds_here(60))
        while not self.is_completed():
            if time.monotonic() - began > most.total_seconds():
                raise RuntimeError("Operation timed out!")
            time.sleep(0.001)
        for each, value in zip(self.found, self.pile, strict=True):
            each.copy_(value)


@pytest.fixture(autouse=True)
def store(monkeypatch):
    """The store of workers that are threads, and have little patience."""
    store, piles, lock = dist.HashStore(), [[]], threading.Lock()

    def all_gather(found, mine, **_):
        with lock:
            if len(piles[-1]) == len(found):
                piles.append([])
            piles[-1].append(mine)
            return Gather(piles[-1], found)

    monkeypatch.setattr(module, "_get_default_store", lambda: store)
    monkeypatch.setattr(dist, "get_backend", lambda: "gloo")
    monkeypatch.setattr(dist, "all_gather", all_gather)
    monkeypatch.setattr(module, "_PATIENCE", 0.1)
    monkeypatch.setattr(module, "_PERIOD", 0.05)
    return store


def raised(makes, known=""):
    """Return the sentences that workers raise; each makes calls, and waits in the last one."""

    def work(worker):
        steps = SharedSteps(worker, len(makes), 0)
        steps._known |= set(product(("", *known), known))
        with pytest.raises(OutOfStepError) as error:
            enter(steps, makes[worker])
            steps.result(Future())
        return str(error.value)

    return set(together(work, len(makes)))


def enter(steps, words):
    for each in words:
        steps.enter(each)


def test_an_operation_that_follows_another_one_for_the_first_time_is_agreed_on():
    assert raised(["ab", "ab", "ac"]) <= {
        # Any of those that are right may be named.
        f"Worker {one} is in b, and worker 2 in c{RULE}"
        for one in (0, 1)
    }


@pytest.mark.parametrize(
    ("makes", "sentence"),
    [
        (["abbcabb", "abbcabc"], "Worker 0 is in b, and worker 1 in c"),
        (["abbcac", "abbcabc"], "Worker 0 was in c, and worker 1 in b"),
        (["a", "b" * 200], "Worker 0 was in a, and worker 1 in b"),
    ],
)
def test_workers_that_wait_in_usual_operations_find_the_first_difference(makes, sentence):
    assert raised(makes, known="abc") == {sentence + RULE}


def test_usual_operations_use_neither_store_nor_gathers():
    def work(worker):
        steps = SharedSteps(worker, 2, 0)
        enter(steps, "abcabc")
        steps._store = object()
        enter(steps, "abcabc")
        done = Future()
        done.set_result(worker)
        return steps.result(done)

    assert together(work, 2) == [0, 1]


def test_a_worker_that_has_left_is_named_and_one_that_computes_is_not():
    one, other = (SharedSteps(worker, 2, 0) for worker in range(2))
    together(lambda worker: enter((one, other)[worker], "ab"), 2)
    other.check()
    one._known.add(("b", "a"))
    one.enter("a")
    later = Future()
    threading.Timer(0.5, later.set_result, args=(3,)).start()
    assert one.result(later) == 3
    other.leave()
    with pytest.raises(OutOfStepError) as error:
        one.result(Future())
    assert str(error.value) == f"Worker 1 has left the job, and worker 0 is in a{RULE}"
    assert error.value.workers == (1,)


def test_the_failure_of_another_worker_ends_a_wait():
    leave_word(1, SwitchGNNError("Out of paper."))
    with pytest.raises(LostWorkerError, match=r"^Worker 1 has failed: Out of paper\.$"):
        SharedSteps(0, 2, 0).result(Future())


def test_an_exchange_ends_with_the_sums_that_wait_for_it():
    graph, assignment = random_case(20, 60, 2, 3, directed=False)
    transport, _ = on_hub(copy_schedules(graph, assignment, 2))
    rows, started = torch.zeros(transport.vertices, 2), time.monotonic()
    with pytest.raises(LostWorkerError), RemoteSum(transport) as remote:
        exchange = remote.submit(rows, Direction.FORWARD)
        leave_word(1, KeyboardInterrupt())
        remote.steps = SharedSteps(0, 2, 0)
        remote.result(exchange)
    assert time.monotonic() - started < seconds_here(5)


def reduced(model_of, times=1, words="aaa"):
    """Reduce on three workers; return what each has raised, None for nothing."""
    shared = (threading.Barrier(3, timeout=seconds_here(60)), [])

    def work(worker):
        sums = ThreadSums(shared, own=worker == 0)
        sums._steps = SharedSteps(worker, 3, 0)
        sums._steps._known.add(("", words[worker]))
        sums._steps.enter(words[worker])
        sums._compares, model = True, model_of(worker)
        try:
            for _ in range(times):
                assert sums.add_with_gradients(model, torch.ones(1)) == (3,)
        except OutOfStepError as error:
            return str(error)
        return None

    return in_threads(work, 3, shared[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.half])
def test_other_weights_are_named_on_all_workers(dtype):
    def model_of(worker, apart=True):
        model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)).to(dtype)
        for parameter in model.parameters():
            nn.init.constant_(parameter, 0.5)
        nn.init.constant_(model[1].weight, 0.5 + apart * (worker != 0))
        return model

    assert reduced(lambda worker: model_of(worker, apart=False)) == [None] * 3
    assert set(reduced(model_of, times=2)) == {
        "The weights of workers 1, 2 differ from those of worker 0, first in 1.weight: call "
        "worker.spread(model) after reset_parameters(), or draw the same random numbers "
        "everywhere (torch.manual_seed)."
    }


def test_one_other_number_is_found_in_time_but_rounding_is_no_difference():
    def model_of(worker, by=1.0):
        model = nn.Linear(1000, 20)
        nn.init.ones_(model.weight)
        nn.init.zeros_(model.bias)
        model.weight.data[19, 5] += by * (worker == 2)
        return model

    assert reduced(lambda worker: model_of(worker, by=1e-6), times=6) == [None] * 3
    (sentence,) = set(reduced(model_of, times=5))
    assert sentence.startswith(
        "The weights of worker 2 differ from those of worker 0, first in weight: "
    )


def test_other_calls_that_have_met_are_found_by_the_next_reduction():
    assert set(reduced(lambda _: nn.LayerNorm(2), words="aba")) == {
        f"Worker 0 was in a, and worker 1 in b{RULE}",
        f"Worker 1 was in b, and worker 2 in a{RULE}",
    }
