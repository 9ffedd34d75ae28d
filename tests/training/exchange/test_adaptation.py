"""Votes on paths: the same decision on all workers, and nobody is blamed for another's delay."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from switchgnn.host.paths.base import Path, PathTime
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.costs.machine import PathCost, WidthCost
from switchgnn.training.exchange.adaptation import Adaptation, PathForecast

WORKERS, BLOCKS, WIDTH = 3, 4, 32
SECONDS = {"switch": 0.02, "host": 0.08, "host-partial": 0.04}


class StillTransport:
    """Paths without exchanges, whose times a test sets."""

    def __init__(self):
        self.paths = dict.fromkeys(Direction, (Path.SWITCH,) * BLOCKS)
        self.times = []

    def set_paths(self, paths):
        self.paths = paths

    def take_times(self):
        times, self.times = self.times, []
        return times


class TimedSums:
    """Sums of gradients whose last time a test sets."""

    in_switch, latest = False, (False, 0.0)


def forecast(**changes):
    costs = [
        PathCost(
            path, direction, (WidthCost(WIDTH, 1.0, each, 0.9 * each),), (1 / BLOCKS,) * BLOCKS
        )
        for path, each in SECONDS.items()
        for direction in Direction
    ]
    reduce = {"gloo": 0.01, "switch": 0.02}
    return PathForecast(
        **{"exchanges": tuple(costs), "first": "switch", "reduce": reduce, **changes}
    )


class Group:
    """The workers of a training, without the training."""

    def __init__(self, **changes):
        self.transports = [StillTransport() for _ in range(WORKERS)]
        self.members = [
            Adaptation(transport, forecast(**changes), worker, WORKERS)
            for worker, transport in enumerate(self.transports)
        ]
        self.sums = [TimedSums() for _ in self.members]
        for member, sums in zip(self.members, self.sums, strict=True):
            member.attach(sums)
        self.epoch = 0

    def train(self, slower=(1.0,) * WORKERS, reduce=(0.01,) * WORKERS):
        """Make an epoch: the times of workers over those predicted, and their all-reduces."""
        self.epoch += 1
        for transport, by in zip(self.transports, slower, strict=True):
            for direction, paths in transport.paths.items():
                for path in dict.fromkeys(paths):
                    share = paths.count(path) / BLOCKS
                    seconds = by * SECONDS[path.value] * (0.1 + 0.9 * share)
                    transport.times.append(PathTime(direction, WIDTH, path, seconds, 1))
        for sums, seconds in zip(self.sums, reduce, strict=True):
            sums.latest = sums.in_switch, seconds
        total = sum(member.votes() for member in self.members)
        for member in self.members:
            member.decide(self.epoch, total.tolist())
        assert all(transport.paths == self.transports[0].paths for transport in self.transports)
        assert len({sums.in_switch for sums in self.sums}) == 1
        return self.members[0].changes


def test_the_slowest_worker_counts_and_all_change_in_the_next_epoch():
    group = Group()
    assert group.train() == group.train() == []
    (change,) = group.train(slower=(1.0, 6.0, 1.0))
    assert group.transports[2].paths == dict.fromkeys(Direction, (Path.HOST_PARTIAL,) * BLOCKS)
    assert change["words"].replace("\N{EN DASH}", "-") == (
        "epoch 4: forward blocks 1-4 and backward blocks 1-4 from switch to host-partial: "
        "240 ms observed, 40 predicted; host-partial 80"
    )
    assert change["blocks"] == {"forward": [[1, 4]], "backward": [[1, 4]]}
    told = [change[name] for name in ("observed", "predicted", "expected")]
    assert told == pytest.approx([0.24, 0.04, 0.08], rel=1e-5)
    assert group.members[1].paths["forward"] == [["host-partial", 4]]
    assert group.members[1].metrics()["path_share/host_partial"] == 1.0


def test_the_first_epoch_does_not_count():
    assert Group().train(slower=(9.0,) * WORKERS) == []


def test_an_all_reduce_that_waits_for_a_slow_worker_is_not_late():
    group = Group()
    group.train()
    for _ in range(4):
        assert group.train(reduce=(0.5, 0.01, 0.5)) == []
    (change,) = group.train(reduce=(0.5, 0.4, 0.5))
    assert (change["from"], change["to"], change["blocks"]) == ("gloo", "switch", {})
    assert group.sums[0].in_switch
    # The time of the other path says nothing about this one.
    for sums in group.sums:
        sums.latest = False, 9.0
    assert group.members[0].votes().reshape(WORKERS, -1)[0, -2] == 0


def test_without_predicted_all_reduces_theirs_does_not_change():
    group = Group(reduce={})
    for _ in range(3):
        assert group.train(reduce=(9.0,) * WORKERS) == []
    assert "reduce" not in group.members[0].paths


def test_all_workers_know_whether_all_are_ready():
    group = Group()
    group.members[1].ready = False
    group.train()
    assert not any(member.all_ready for member in group.members)
    group.members[1].ready = True
    group.train()
    assert all(member.all_ready for member in group.members)


def test_gradients_without_a_number_change_nothing():
    group = Group()
    group.train()
    count = len(group.members[0].votes())
    group.members[0].decide(9, [np.nan] * count)
    assert group.members[0].changes == []
