# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What the other tests would say if the code were wrong: they would fail."""

from dataclasses import replace

import numpy as np
import pytest

from switchgnn.host.direct import Stream, binned_schedules, copy_schedules, partial_schedules
from switchgnn.host.direct.schedule import RowSums
from switchgnn.planner.direction import Direction
from tests.host.direct.crew import (
    binned_on_hub,
    exchange,
    on_hub,
    parts_of,
    random_case,
    stream_all,
    wrong,
)


@pytest.fixture
def case():
    graph, assignment = random_case(60, 400, 3, 9, directed=False)
    features = np.random.default_rng(1).standard_normal((60, 33), dtype=np.float32)
    return graph, assignment, features


def wrong_sums(case, transports):
    graph, assignment, features = case
    calls = [(features, Direction.FORWARD, False)]
    (sums,) = exchange(transports, parts_of(assignment, 3), calls)
    return wrong(graph, assignment, features, sums)


def without_entry(sums):
    indptr = sums.indptr.copy()
    indptr[np.searchsorted(indptr, 3, side="right") :] -= 1
    return RowSums(indptr, np.delete(sums.column, 3), sums.width)


def with_entry_twice(sums):
    indptr = sums.indptr.copy()
    indptr[np.searchsorted(indptr, 3, side="right") :] += 1
    return RowSums(indptr, np.insert(sums.column, 3, sums.column[3]), sums.width)


def rows_in_another_order(sums):
    return replace(sums, column=(sums.column + 1) % sums.width)


@pytest.mark.parametrize(
    ("side", "mistake"),
    [
        ("send", without_entry),
        ("send", with_entry_twice),
        ("add", without_entry),
        ("add", with_entry_twice),
        ("add", rows_in_another_order),
    ],
)
def test_schedules_of_one_worker(case, side, mistake):
    first, second, third = partial_schedules(*case[:2], 3)
    second = replace(second, **{side: mistake(getattr(second, side))})
    assert wrong_sums(case, on_hub([first, second, third])) > 0


def test_a_stream_of_a_worker_that_numbers_its_rows_as_host_does(case):
    first, second, third = binned_schedules(*case[:2], 3)
    plain = copy_schedules(*case[:2], 3)[1]
    second = replace(second, forward=replace(second.forward, send=plain.send))
    assert wrong_sums(case, binned_on_hub((first, second, third))) > 0


def stream_errors(case):
    graph, assignment, features = case
    parts = parts_of(assignment, 3)
    transports = binned_on_hub(binned_schedules(graph, assignment, 3))
    calls = [(features, direction) for direction in Direction]
    sums = stream_all(
        transports, parts, calls, lambda worker, _: np.array_split(np.arange(len(parts[worker])), 4)
    )
    return [
        wrong(graph, assignment, features, got, direction)
        for (_, direction), got in zip(calls, sums, strict=True)
    ]


def test_a_sum_that_forgets_the_bins_before(case, monkeypatch):
    """Forward nothing is added up before it is sent, so only backward is wrong."""
    feed = Stream.feed

    def forgetful(stream, indices, rows):
        stream._rows[:] = 0
        feed(stream, indices, rows)

    monkeypatch.setattr(Stream, "feed", forgetful)
    forward, backward = stream_errors(case)
    assert forward == 0
    assert backward > 0


def test_sums_that_do_not_wait_for_all_their_rows(case, monkeypatch):
    needs = Stream.needs
    monkeypatch.setattr(Stream, "needs", lambda stream, indices: needs(stream, indices)[1:])
    assert min(stream_errors(case)) > 0
