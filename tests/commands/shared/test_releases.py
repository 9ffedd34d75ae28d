# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Who has the switch release slots all the time is named."""

from types import SimpleNamespace

import pytest

from switchgnn.commands.shared import console as releases
from switchgnn.commands.shared.console import (
    naming_who_releases,
    releases_between,
    too_many_releases,
)
from switchgnn.commands.shared.workers import WorkerError
from switchgnn.planner.partition.leaf_spine import LeafSpine


def counters(*cells):
    return SimpleNamespace(releases=(*cells, 0, 0, 0))


@pytest.mark.parametrize(
    ("counts", "named"),
    [
        ((0, 0, 0), []),
        ((99, 0, 0), []),
        ((0, 100, 0), [1]),
        ((1000, 100, 100), []),
        ((1001, 100, 100), [0]),
        ((500, 500), []),
        ((700,), [0]),
    ],
)
def test_who_is_far_from_the_others_is_named(counts, named):
    sentence = too_many_releases(counts)
    for worker, number in enumerate(counts):
        assert (f"Worker {worker} had {number:,} slots released" in sentence) == (worker in named)
    assert bool(sentence) == bool(named)


def test_a_star_has_one_switch():
    assert releases_between(None, 2, [counters(1, 2)], [counters(4, 9)]) == (3, 7)


def test_leaves_count_their_workers_and_spines_are_left_out():
    """Its cells stand for leaves."""
    topology = LeafSpine(leaf_of_worker=(0, 0, 1), spines=1)
    before = [counters(0, 1, 0), counters(0, 0, 2), counters(5, 5, 5)]
    after = [counters(3, 9, 0), counters(0, 0, 6), counters(50, 50, 50)]
    assert releases_between(topology, 3, before, after) == (3, 8, 4)


@pytest.mark.parametrize(("number", "more"), [(99, ""), (100, " Worker 1 had 100 slots")])
def test_the_error_of_a_run_names_them(monkeypatch, number, more):
    cells = iter([counters(0, 0), counters(0, number)])
    monkeypatch.setattr(releases, "read_counters", lambda client: next(cells))
    with (
        pytest.raises(WorkerError, match="^Worker 0 waited." + more),
        naming_who_releases([None], None, 2),
    ):
        raise WorkerError("Worker 0 waited.")
