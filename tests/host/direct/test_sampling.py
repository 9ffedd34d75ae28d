# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Boundary node sampling: right on average, and the same for the same seed."""

import numpy as np
import pytest

from switchgnn.host.direct import DirectError, Framing, Sampling, copy_schedules
from switchgnn.planner.direction import Direction
from tests.host.direct.crew import Hub, exact_sums, exchange, on_hub, parts_of, random_case

WORKERS = 3
EPOCHS = 200
FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD


@pytest.fixture(scope="module")
def case():
    graph, assignment = random_case(45, 200, WORKERS, 11, directed=True)
    features = np.random.default_rng(1).standard_normal((45, 4), dtype=np.float32)
    return graph, assignment, features


def sampled(case, calls, rate=0.4, seed=0, hub=None, **options):
    graph, assignment, _ = case
    transports = on_hub(
        copy_schedules(graph, assignment, WORKERS),
        hub=hub,
        sampling=Sampling(rate, seed),
        **options,
    )
    return exchange(transports, parts_of(assignment, WORKERS), calls), transports


def deviations(samples, exact):
    """How many standard errors the mean is off, largest element; 0/0 counts as 0."""
    mean, error = samples.mean(axis=0), samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    off = np.abs(mean - exact)
    assert not np.any((error < 1e-9) & (off > 1e-5))
    return float(np.max(off / np.maximum(error, 1e-9), where=error >= 1e-9, initial=0))


@pytest.mark.parametrize("way", [FORWARD, BACKWARD])
def test_the_mean_over_epochs_is_the_exact_sum(case, way):
    """200 epochs, 180 elements: 6 standard errors are exceeded once in millions of runs."""
    graph, assignment, features = case
    sums, _ = sampled(case, [(features, way, True)] * EPOCHS)
    exact, _ = exact_sums(graph, assignment, features, way)
    assert deviations(np.array(sums), exact) < 6


def test_the_statistic_catches_a_missing_scale(case):
    graph, assignment, features = case
    sums, _ = sampled(case, [(features, FORWARD, True)] * EPOCHS)
    exact, _ = exact_sums(graph, assignment, features)
    with pytest.raises(AssertionError):
        assert deviations(0.4 * np.array(sums), exact) < 6


def test_the_same_seed_gives_the_same_sums(case):
    _, _, features = case
    calls = [(features, FORWARD, False), (features, FORWARD, True)]
    first, _ = sampled(case, calls, seed=7)
    again, _ = sampled(case, calls, seed=7)
    other, _ = sampled(case, calls, seed=8)
    for index in range(2):
        assert np.array_equal(first[index], again[index])
        assert not np.array_equal(first[index], other[index])
    assert not np.array_equal(first[0], first[1])


def test_within_an_epoch_backward_is_the_transpose_of_forward(case):
    _, _, x = case
    y = np.random.default_rng(2).standard_normal(x.shape, dtype=np.float32)
    (ax, aty, ax_again), _ = sampled(
        case, [(x, FORWARD, True), (y, BACKWARD, False), (x, FORWARD, False)]
    )
    assert np.vdot(y, ax) == pytest.approx(np.vdot(aty, x), rel=1e-4)
    assert np.array_equal(ax, ax_again)


def test_fewer_frames_travel(case):
    graph, assignment, features = case
    hub = Hub(WORKERS)
    one_by_one = Framing(None)
    _, transports = sampled(case, [(features, FORWARD, False)], hub=hub, framing=one_by_one)
    pairs = [
        max(1, round(0.4 * rows))
        for schedule in copy_schedules(graph, assignment, WORKERS)
        for rows in np.diff(schedule.out_indptr).tolist()
        if rows
    ]
    assert sum(each.tally.data_sent for each in transports) == sum(pairs)
    assert sum(size == 188 for _, size in hub.kinds().elements()) == sum(pairs)


@pytest.mark.parametrize(("rate", "seed"), [(0.0, 0), (1.1, 0), (float("nan"), 0), (0.5, -1)])
def test_impossible_samplings_are_refused(rate, seed):
    with pytest.raises(DirectError, match=r"rate|seed"):
        Sampling(rate, seed)
