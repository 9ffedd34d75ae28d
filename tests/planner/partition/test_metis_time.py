# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The time inside METIS, by scopes."""

import threading

import pymetis
import pytest

from switchgnn.planner import PlannerError, build_plan
from switchgnn.planner.partition.metis import metis_time, partition_vertices
from tests.planner.helpers import random_graph

GRAPH = random_graph(300, 2000, 1)


def cut():
    source, destination = GRAPH.edges()
    partition_vertices(source, destination, vertices=GRAPH.vertices, parts=4, seed=0)


def test_a_plan_spends_time_in_metis():
    with metis_time() as found:
        assert found.seconds == 0
        build_plan(GRAPH, workers=4, slots=20, program="ab")
    assert found.seconds > 0


def test_nothing_counts_after_the_scope():
    with metis_time() as found:
        cut()
    before = found.seconds
    cut()
    assert found.seconds == before


def test_an_outer_scope_has_the_time_of_an_inner_one():
    with metis_time() as outer:
        cut()
        first = outer.seconds
        with metis_time() as inner:
            cut()
        assert outer.seconds == first + inner.seconds
        cut()
    assert outer.seconds > first + inner.seconds
    assert inner.seconds > 0


def test_a_call_that_fails_counts(monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("no")

    monkeypatch.setattr(pymetis, "part_graph", fail)
    with metis_time() as found, pytest.raises(PlannerError):
        cut()
    assert found.seconds > 0
    with metis_time() as later:
        pass
    assert later.seconds == 0


def test_threads_count_for_themselves():
    """The calls overlap: all threads are inside their scopes before the first one cuts."""
    inside = threading.Barrier(5)
    found = {}

    def work(calls):
        with metis_time() as mine:
            inside.wait()
            for _ in range(calls):
                cut()
        found[calls] = mine

    threads = [threading.Thread(target=work, args=(calls,)) for calls in range(4)]
    with metis_time() as here:
        for thread in threads:
            thread.start()
        inside.wait()
        for thread in threads:
            thread.join()
    assert here.seconds == 0
    assert {calls: len(mine._calls) for calls, mine in found.items()} == {0: 0, 1: 1, 2: 2, 3: 3}
