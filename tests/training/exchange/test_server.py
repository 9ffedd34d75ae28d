"""Sums that worker 0 makes for all, over Gloo between threads."""

from collections import Counter
from datetime import timedelta
from functools import reduce

import numpy as np
import pytest
import torch
import torch.distributed as dist

from switchgnn.training.exchange.gradients import ParameterServer
from tests.support.speed import seconds_here
from tests.training.gathering import in_threads

SIZES = (1, 5_000, 300_000, 0)


class Counted(dist.ProcessGroupGloo):
    """Counts the bytes from each worker to each other in `sent`."""

    def send(self, tensors, other, tag):
        self.sent[self.rank(), other] += sum(each.nbytes for each in tensors)
        return super().send(tensors, other, tag)


@pytest.mark.parametrize("workers", [2, 4])
def test_all_get_the_sums_in_the_order_of_workers_and_only_worker_0_sends_to_many(workers):
    random = np.random.default_rng(3)
    drawn = [random.normal(size=(workers, size)).astype(np.float32) for size in SIZES]
    store, sent, limit = dist.HashStore(), Counter(), timedelta(seconds=seconds_here(60))

    def work(worker):
        group, server = Counted(store, worker, workers, limit), ParameterServer()
        group.sent = sent
        values = [torch.tensor(each[worker]) for each in drawn]
        for each in reversed([server.start(each, group) for each in values]):
            each.wait()
        return values

    totals = [reduce(np.add, each) for each in drawn]
    for found in in_threads(work, workers):
        assert all(map(np.array_equal, found, totals))
    links = [link for other in range(1, workers) for link in ((0, other), (other, 0))]
    assert sent == dict.fromkeys(links, 4 * sum(SIZES))
