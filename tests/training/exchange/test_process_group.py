"""All-reduces of tensors in the switch, whose part a pile of arrays plays; ranks are threads."""

import faulthandler
import gc
import re
import threading
import warnings
from concurrent.futures import Future
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import AllreduceOptions, _DistributedBackendOptions

from switchgnn.host.base.errors import HostError
from switchgnn.host.reduce.reduction import Call
from switchgnn.training.base.errors import AllReduceError
from switchgnn.training.exchange.process_group import SwitchAllReduce, SwitchProcessGroup
from tests.support.speed import seconds_here
from tests.training.gathering import in_threads
from tests.training.reducing import Pile

WORKERS = 3
SUM, AVG, MAX = dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX


@pytest.fixture(autouse=True)
def _limit():
    """End the process if a test hangs: threads that hold the GIL in C++ stop all else."""
    faulthandler.dump_traceback_later(seconds_here(120), exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


class Ranks:
    """The groups of some workers."""

    def __init__(self, pile=None):
        self.pile = pile or Pile(WORKERS)
        self.store = dist.HashStore()
        self.groups = in_threads(lambda rank: self.group(rank, self.pile.reducer), WORKERS)

    def close(self):
        for group in self.groups:
            group.shutdown()

    def group(self, rank, open_reducer=None):
        options = _DistributedBackendOptions()
        options.store = dist.PrefixStore("some" if open_reducer is None else "all", self.store)
        options.group_rank, options.group_size = rank, WORKERS
        options.timeout = timedelta(seconds=seconds_here(30))
        return SwitchProcessGroup(options, open_reducer(rank, WORKERS) if open_reducer else None)

    def reduce(self, tensors, op=SUM, groups=None):
        """All-reduce one tensor of each worker, in place."""
        options = AllreduceOptions()
        options.reduceOp = op
        groups = groups or self.groups
        # Warnings belong to the process and not to threads.
        works = in_threads(lambda rank: groups[rank].allreduce([tensors[rank]], options), WORKERS)
        assert all(map(arrived, works))
        return tensors


@pytest.fixture
def ranks():
    made = Ranks()
    yield made
    made.pile.release()
    made.close()


def arrived(work):
    return work.wait(timedelta(seconds=seconds_here(30)))


def value_of(future):
    done = threading.Event()
    future.add_done_callback(lambda _: done.set())
    assert done.wait(seconds_here(30))
    return future.value()


def drawn(shape, dtype):
    generator = torch.Generator().manual_seed(7)
    values = [torch.randn(shape, generator=generator) * 100 for _ in range(WORKERS)]
    return [each.to(dtype) for each in values]


@pytest.mark.parametrize("shape", [(), (0,), (1,), (257,), (3, 4, 5)])
@pytest.mark.parametrize(
    ("dtype", "relative"),
    [
        (torch.float32, 1e-6),
        # The sum is made in float32, and rounded once.
        (torch.bfloat16, 2**-8),
        (torch.float16, 2**-11),
        (torch.int32, 0),
    ],
)
def test_sums_and_means_are_made_in_the_switch(ranks, dtype, relative, shape):
    for op, divisor in ((SUM, 1), (AVG, WORKERS)):
        tensors = drawn(shape, dtype)
        expected = sum(each.double() for each in tensors) / divisor
        if dtype is torch.int32:
            expected = expected.trunc()
        for found in ranks.reduce(tensors, op):
            assert found.dtype == dtype
            assert torch.allclose(found.double(), expected, rtol=relative, atol=1e-4 * relative)
    assert [group.arrays for group in ranks.groups] == WORKERS * [2]
    assert {call.type for call in ranks.pile.calls} == {str(dtype).removeprefix("torch.")}
    assert not any(group.fallbacks for group in ranks.groups)


def test_tensors_keep_their_place_in_memory(ranks):
    wholes = drawn((6, 8), torch.float32)
    before = [whole.clone() for whole in wholes]
    ranks.reduce([whole.t()[1::2] for whole in wholes])
    for whole, old in zip(wholes, before, strict=True):
        assert torch.allclose(whole[:, 1::2], sum(each[:, 1::2] for each in before), atol=1e-4)
        assert torch.equal(whole[:, ::2], old[:, ::2])


def test_the_caller_goes_on_before_the_result_is_there(ranks):
    ranks.pile.hold()
    tensors = [[torch.full((5,), float(number)) for number in range(20)] for _ in range(WORKERS)]
    works = [
        [group.allreduce([each]) for each in own]
        for group, own in zip(ranks.groups, tensors, strict=True)
    ]
    futures = [work.get_future() for own in works for work in own]
    assert not any(work.is_completed() for own in works for work in own)
    assert not any(future.done() for future in futures)
    with pytest.raises(RuntimeError, match=r"longer than 0\.01 s"):
        works[0][0].wait(timedelta(seconds=0.01))
    assert all((each == number).all() for own in tensors for number, each in enumerate(own))
    ranks.pile.release()
    results = [value_of(future) for future in futures]
    for own, of_worker in zip(works, tensors, strict=True):
        for number, (work, each) in enumerate(zip(own, of_worker, strict=True)):
            assert arrived(work)
            assert work.is_completed()
            assert work.is_success()
            assert (each == WORKERS * number).all()
    # DDP takes the tensors from the future.
    every = [each for own in tensors for each in own]
    assert all(value[0] is each for value, each in zip(results, every, strict=True))


def test_callbacks_may_wait_for_other_all_reduces(ranks):
    """As those of PowerSGD do."""

    def again(group):
        def reduce(future):
            (values,) = future.value()
            return value_of(group.allreduce([values]).get_future())[0]

        return reduce

    ranks.pile.hold()
    chained = [
        group.allreduce([torch.ones(3)]).get_future().then(again(group))
        for group in ranks.groups
        for _ in range(4)
    ]
    ranks.pile.release()
    assert all((value_of(each) == WORKERS**2).all() for each in chained)


def test_each_call_has_its_own_timeout_or_that_of_the_group(ranks):
    """The timeout of a group may change, as by `_set_pg_timeout` of torch.distributed."""
    options = AllreduceOptions()
    options.timeout = timedelta(seconds=7)
    group = ranks.groups[0]
    of_group = group._get_backend(torch.device("cpu"))._set_default_timeout
    of_group(timedelta(seconds=80))
    group.allreduce([torch.ones(2)], options)
    group.allreduce([torch.ones(2)], AllreduceOptions())
    group.allreduce([torch.ones(2)], SUM, timedelta(seconds=3))
    group.allreduce_coalesced([torch.ones(2)])
    of_group(timedelta(seconds=90))
    group.allreduce([torch.ones(2)])
    assert [call.timeout for call in ranks.pile.calls] == [7.0, 80.0, 3.0, 80.0, 90.0]


@pytest.mark.parametrize("last", [0, 1, 2])
def test_a_work_is_complete_with_the_last_of_its_tensors(last):
    class Sum(Future):
        def result(self, timeout=None):
            assert self.done(), "a thread would wait for it"
            return super().result(timeout)

    sums, seconds = [Sum() for _ in range(3)], 5.0
    waiting = iter(sums)

    class Slow:
        def submit(self, _values, call):
            assert call == Call(type="float32", timeout=seconds)
            return next(waiting)

        def close(self, *, abort):
            assert abort

    switch = SwitchAllReduce(Slow())
    tensors = [torch.zeros(2) for _ in sums]
    work = switch.start(tensors, average=False, timeout=timedelta(seconds=seconds))
    for number in (each for each in range(3) if each != last):
        sums[number].set_result(np.full(2, 5, np.float32))
    # A work that ends too early does so here.
    with pytest.raises(RuntimeError, match="taken longer"):
        work.wait(timedelta(seconds=0.2))
    assert not work.is_completed()
    sums[last].set_result(np.full(2, 5, np.float32))
    assert arrived(work)
    assert all((each == 5).all() for each in tensors)
    switch.close(abort=True)


def test_gloo_rounds_means_of_integers_towards_zero(ranks):
    """As the switch does: a floor would give -3 and -1."""
    parts = ([-7, 7, -1], [0, 0, 0], [-1, 1, 0])
    with pytest.warns(UserWarning, match="through Gloo"):
        for found in ranks.reduce([torch.tensor(each) for each in parts], AVG):
            assert found.tolist() == [-2, 2, 0]


@pytest.mark.parametrize(
    ("tensor", "op", "expected", "reason"),
    [
        (torch.tensor([5, -8]), SUM, [15, -24], "tensors of torch.int64"),
        (torch.tensor([5, -7]), AVG, [5, -7], "tensors of torch.int64"),
        (torch.tensor([0.5], dtype=torch.float64), AVG, [0.5], "tensors of torch.float64"),
        (torch.tensor([2.0]), MAX, [2.0], "the operation MAX"),
        (torch.eye(2).to_sparse(), SUM, [[3, 0], [0, 3]], "sparse tensors"),
    ],
)
def test_gloo_reduces_the_rest_and_one_warning_says_so(ranks, tensor, op, expected, reason):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(2):
            for found in ranks.reduce([tensor.clone() for _ in range(WORKERS)], op):
                assert found.to_dense().tolist() == expected
    sentence = f"All-reduces of {reason} go through Gloo and not through the switch."
    said = [str(each.message) for each in seen if "Gloo" in str(each.message)]
    # One per worker.
    assert said == WORKERS * [sentence]
    assert [group.fallbacks for group in ranks.groups] == WORKERS * [{reason: 2}]
    assert not ranks.groups[0].arrays


def test_no_operation_waits_for_gloo_with_the_gil_held():
    """PyTorch holds the GIL in methods that a Python class may override but does not.

    A thread of Gloo that holds the lock of the queue then waits for the GIL, and never gets it.
    """
    header = Path(torch.__file__).parent.joinpath(
        "include/torch/csrc/distributed/c10d/PyProcessGroup.hpp"
    )
    text = header.read_text().partition("class PyProcessGroup")[2]
    names = re.findall(r"intrusive_ptr<Work> (\w+)\(", text)
    assert {"allgather", "barrier", "broadcast", "send"} <= set(names)
    assert [name for name in names if name not in vars(SwitchProcessGroup)] == []


def test_workers_begin_at_the_largest_number(ranks):
    assert ranks.pile.opened == dict.fromkeys(range(WORKERS), 20)
    assert ranks.groups[1].getBackendName() == "switchgnn"
    assert (ranks.groups[1].rank(), ranks.groups[1].size()) == (1, WORKERS)


def test_an_error_names_the_worker(ranks):
    ranks.pile.error = HostError("Worker 2 has not sent its part.", [2])
    for work in [group.allreduce([torch.ones(2)]) for group in ranks.groups]:
        with pytest.raises(RuntimeError, match="Worker 2 has not") as error:
            arrived(work)
        assert isinstance(error.value, AllReduceError)
        assert error.value.workers == (2,)
        assert work.is_completed()
        assert not work.is_success()
        assert work.exception() is error.value
        # C++ code gets this one.
        with pytest.raises(RuntimeError, match="Worker 2 has not"):
            value_of(work.get_future())


def test_the_end_of_a_group_completes_its_work_once():
    ranks = Ranks()
    ranks.close()
    ranks.close()
    assert sorted(ranks.pile.closed) == [(0, False), (1, False), (2, False)]


def test_a_program_that_forgets_its_group_waits_for_nothing():
    ranks = Ranks()
    ranks.groups.clear()
    gc.collect()
    assert sorted(ranks.pile.closed) == [(0, True), (1, True), (2, True)]


def test_a_failed_start_closes_the_connection():
    class Silent(Pile):
        def reducer(self, rank, size):
            end = super().reducer(rank, size)

            def fail(_agree):
                raise HostError("The switch does not answer.")

            end.open = fail
            return end

    pile = Silent(WORKERS)
    with pytest.raises(HostError, match="does not answer"):
        Ranks(pile)
    assert sorted(pile.closed) == [(0, True), (1, True), (2, True)]
