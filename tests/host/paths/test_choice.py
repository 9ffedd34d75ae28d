"""Paths by observed time, against the best fixed choice that is known afterwards."""

import random
from itertools import pairwise

import numpy as np
import pytest

from switchgnn.host.paths.choice import PathRule, PathVote, RequestCosts

EPOCHS, REQUESTS = 60, 8
NOISE = 0.2


def costs_of(predicted, requests=REQUESTS):
    each = {path: np.full(requests, seconds / requests) for path, seconds in predicted.items()}
    return {path: RequestCosts(seconds, 0.9 * seconds) for path, seconds in each.items()}


def trained(true, predicted, slowed=lambda _path, _epoch: 1.0, seed=0):
    """Seconds with the rule and over each path alone, the first path, and the paths by epoch."""
    draw = random.Random(seed)
    first = min(predicted, key=predicted.get)
    rule = PathRule(costs_of(predicted), [first] * REQUESTS)
    total, alone, taken = 0.0, dict.fromkeys(true, 0.0), []
    for epoch in range(EPOCHS):
        now = {
            path: seconds * slowed(path, epoch) * draw.uniform(1 - NOISE, 1 + NOISE)
            for path, seconds in true.items()
        }
        share = {path: rule.taken.count(path) / REQUESTS for path in true}
        total += sum(now[path] * share[path] for path in true)
        alone = {path: alone[path] + now[path] for path in true}
        taken.append(share)
        rule.vote({path: PathVote(now[path], predicted[path]) for path in true if share[path]})
    return total, alone, first, taken


def over_seeds(figure):
    return np.mean([figure(seed) for seed in range(5)])


@pytest.mark.parametrize("other", [1.05, 1.5, 3.0])
@pytest.mark.parametrize("wrong", [0.7, 1.0, 2.0])
@pytest.mark.parametrize("machine", [0.5, 1.0, 2.5])
def test_when_nothing_happens_the_plans_choice_is_kept(other, wrong, machine):
    """`wrong`: the other path's prediction over its time; `machine`: all predictions'."""
    true = {"switch": 1.0, "host": other}

    def against_the_plan(seed):
        total, alone, first, _ = trained(
            true, {"switch": machine, "host": other * wrong * machine}, seed=seed
        )
        return total / alone[first]

    assert over_seeds(against_the_plan) <= 1.02


# What slows which path, and when: by path and epoch.
TRACES = {
    "begins": lambda by: lambda path, epoch: by if path == "switch" and epoch >= 20 else 1.0,
    "ends": lambda by: lambda path, epoch: by if path == "switch" and 10 <= epoch < 30 else 1.0,
    "is short": lambda by: lambda path, epoch: by if path == "switch" and 10 <= epoch < 13 else 1.0,
    "on the other": lambda by: lambda path, epoch: by if path == "host" and epoch >= 10 else 1.0,
    "on both": lambda by: lambda _path, epoch: by if 10 <= epoch < 30 else 1.0,
    "on both, then one": lambda by: (
        lambda path, epoch: (
            3.0 if 5 <= epoch < 15 else by if path == "switch" and epoch >= 25 else 1.0
        )
    ),
}


@pytest.mark.parametrize("by", [3.0, 5.0, 10.0])
@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("wrong", [0.7, 1.0, 2.0])
def test_disturbances_cost_little_more_than_the_best_fixed_choice(trace, by, wrong):
    true, slowed = {"switch": 1.0, "host": 1.6, "host-partial": 2.0}, TRACES[trace](by)
    predicted = {"switch": 1.0, "host": 1.6 * wrong, "host-partial": 2.0 * wrong}

    def against_the_best(seed):
        total, alone, *_ = trained(true, predicted, slowed, seed)
        return total / min(alone.values())

    assert over_seeds(against_the_best) <= 1.1


def votes_of(rule, **ratios):
    return rule.vote({path: PathVote(ratio, 1.0) for path, ratio in ratios.items()})


def test_a_path_that_is_late_by_a_toll_is_left_by_all_at_once():
    rule = PathRule(costs_of({"switch": 1.0, "host": 2.0}), ["switch"] * REQUESTS)
    votes_of(rule, switch=1.0)
    (change,) = votes_of(rule, switch=4.0)
    assert change.requests == tuple(range(REQUESTS))
    assert (change.left, change.taken) == ("switch", "host")
    assert (change.observed, change.predicted, change.expected) == pytest.approx((4.0, 1.0, 2.0))


def test_a_little_lateness_has_to_be_confirmed():
    rule = PathRule(costs_of({"switch": 1.0, "host": 1.1}), ["switch"] * REQUESTS)
    votes_of(rule, switch=1.0)
    assert not votes_of(rule, switch=1.6)
    assert not votes_of(rule, switch=1.0)
    assert not votes_of(rule, switch=1.6)
    assert [len(each.requests) for each in votes_of(rule, switch=1.6)] == [1]


def test_a_path_that_stays_late_is_tried_by_one_request_and_ever_more_rarely():
    def flooded(path, epoch):
        return 6.0 if path == "switch" and epoch >= 5 else 1.0

    *_, taken = trained({"switch": 1.0, "host": 1.2}, {"switch": 1.0, "host": 1.2}, flooded)
    tried = [epoch for epoch, share in enumerate(taken) if share["switch"] and epoch > 5]
    assert {taken[epoch]["switch"] for epoch in tried} == {1 / REQUESTS}
    assert len(tried) >= 2
    assert all(later >= 1.5 * sooner for sooner, later in pairwise(np.diff(tried)))


def test_a_path_that_has_recovered_gets_twice_as_many_requests_each_epoch():
    def flooded(path, epoch):
        return 6.0 if path == "switch" and 5 <= epoch < 9 else 1.0

    *_, taken = trained({"switch": 1.0, "host": 2.0}, {"switch": 1.0, "host": 2.0}, flooded)
    shares = [round(REQUESTS * share["switch"]) for share in taken[6:]]
    back = shares[shares.index(1) :]
    assert back[:4] == [1, 2, 4, 8]
    assert set(back[4:]) == {8}


def test_without_an_observation_nothing_changes():
    rule = PathRule(costs_of({"switch": 1.0, "host": 2.0}), ["switch"] * REQUESTS)
    for wrong in (PathVote(float("nan"), 1.0), PathVote(0.0, 1.0), PathVote(9.0, 0.0)):
        assert not rule.vote({"switch": wrong})


def test_no_path_is_late_sooner_because_its_toll_is_small():
    """As where barriers and latencies are most of T."""
    costs = costs_of({"switch": 1.0, "host": 1.2})
    small = {path: RequestCosts(each.seconds, each.tolls / 20) for path, each in costs.items()}
    rule = PathRule(small, ["switch"] * REQUESTS)
    votes_of(rule, switch=1.0)
    for ratio in (1.8, 1.0, 1.9, 1.1):
        assert not votes_of(rule, switch=ratio)
