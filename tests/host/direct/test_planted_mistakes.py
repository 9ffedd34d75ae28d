# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What the other tests would say if the code were wrong: they would fail."""

from dataclasses import replace

import numpy as np
import pytest

import switchgnn.host.direct.transport as host_based
from switchgnn.host.direct import Stream, binned_schedules, copy_schedules, partial_schedules
from switchgnn.host.direct.sampling import Sample
from switchgnn.host.direct.schedule import RowSums
from switchgnn.planner.direction import Direction
from tests.host.direct.crew import exchange, on_hub, parts_of, random_case, wrong
from tests.host.direct.streams import binned_on_hub, stream_all
from tests.host.direct.test_sampling import (
    test_the_mean_over_epochs_is_the_exact_sum as mean_is_exact,
)


@pytest.fixture
def case():
    graph, assignment = random_case(60, 400, 3, 9, directed=False)
    features = np.random.default_rng(1).standard_normal((60, 33), dtype=np.float32)
    return graph, assignment, features


def wrong_with(case, change):
    graph, assignment, features = case
    schedules = [change(schedule) for schedule in partial_schedules(graph, assignment, 3)]
    parts = parts_of(assignment, 3)
    (sums,) = exchange(on_hub(schedules), parts, [(features, Direction.FORWARD, False)])
    return wrong(graph, assignment, features, sums)


def without_entry(sums, place):
    indptr = sums.indptr.copy()
    indptr[np.searchsorted(indptr, place, side="right") :] -= 1
    return RowSums(indptr, np.delete(sums.column, place), sums.width)


def with_entry_twice(sums, place):
    indptr = sums.indptr.copy()
    indptr[np.searchsorted(indptr, place, side="right") :] += 1
    return RowSums(indptr, np.insert(sums.column, place, sums.column[place]), sums.width)


def test_the_right_schedule_is_right(case):
    assert wrong_with(case, lambda schedule: schedule) == 0


@pytest.mark.parametrize("side", ["send", "add"])
@pytest.mark.parametrize("mistake", [without_entry, with_entry_twice])
def test_a_source_dropped_or_counted_twice(case, side, mistake):
    def change(schedule):
        if schedule.worker != 1:
            return schedule
        return replace(schedule, **{side: mistake(getattr(schedule, side), 3)})

    assert wrong_with(case, change) > 0


def test_rows_in_another_order(case):
    def change(schedule):
        if schedule.worker != 1:
            return schedule
        add = schedule.add
        return replace(schedule, add=replace(add, column=(add.column + 1) % add.width))

    assert wrong_with(case, change) > 0


def test_a_missing_scale(monkeypatch):
    right = host_based.sample_rows

    def unscaled(*arguments, **options):
        sample = right(*arguments, **options)
        return Sample(sample.place, sample.indptr, np.ones_like(sample.scale))

    monkeypatch.setattr(host_based, "sample_rows", unscaled)
    graph, assignment = random_case(45, 200, 3, 11, directed=True)
    features = np.random.default_rng(1).standard_normal((45, 4), dtype=np.float32)
    with pytest.raises(AssertionError):
        mean_is_exact((graph, assignment, features), Direction.FORWARD)


def stream_errors(case):
    graph, assignment, features = case
    parts = parts_of(assignment, 3)
    transports = binned_on_hub(binned_schedules(graph, assignment, 3))
    calls = [(features, way) for way in Direction]
    sums = stream_all(
        transports, parts, calls, lambda worker, _: np.array_split(np.arange(len(parts[worker])), 4)
    )
    return [
        wrong(graph, assignment, features, got, way)
        for (_, way), got in zip(calls, sums, strict=True)
    ]


def test_streams_of_the_right_code_are_right(case):
    assert stream_errors(case) == [0, 0]


def test_a_sum_that_forgets_the_bins_before(case, monkeypatch):
    """Forward nothing is added up before it is sent, so only backward is wrong."""
    feed = Stream.feed

    def forgetful(stream, places, rows):
        stream._rows[:] = 0
        feed(stream, places, rows)

    monkeypatch.setattr(Stream, "feed", forgetful)
    forward, backward = stream_errors(case)
    assert forward == 0
    assert backward > 0


def test_sums_that_do_not_wait_for_all_their_rows(case, monkeypatch):
    needs = Stream.needs
    monkeypatch.setattr(Stream, "needs", lambda stream, places: needs(stream, places)[1:])
    assert min(stream_errors(case)) > 0


def test_schedules_of_another_order(case, monkeypatch):
    """One worker numbers its rows as `host` does."""
    right = binned_schedules(*case[:2], 3)
    plain = copy_schedules(*case[:2], 3)[1]
    mixed = (right[0], replace(right[1], forward=replace(right[1].forward, send=plain.send)))
    graph, assignment, features = case
    transports = binned_on_hub((*mixed, right[2]))
    (sums,) = exchange(transports, parts_of(assignment, 3), [(features, Direction.FORWARD, False)])
    assert wrong(graph, assignment, features, sums) > 0
