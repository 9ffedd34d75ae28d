"""Sums of a vertex cut between hosts: gathered by masters, and scattered to all replicas."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st

from switchgnn.host.base.compression import Compression
from switchgnn.host.base.errors import ScheduleError
from switchgnn.host.direct.kinds import binned_schedules, copy_schedules, write_schedules
from switchgnn.host.direct.schedule import read_schedule
from switchgnn.host.direct.transport import ReplicaTransport
from switchgnn.host.wire.header import Kind
from switchgnn.planner import Direction, PlanRequest
from tests.host.direct.crew import Hub, together
from tests.planner import helpers
from tests.support.fabrics import PATIENT
from tests.support.speed import pace_here

BOTH = tuple(Direction)


def cut_of(graph, workers):
    return PlanRequest(partition="vertex-cut").cut(graph, workers, 0)


def replicas_on(hub, cut, **options):
    return [
        ReplicaTransport(
            *(replace(each, scatters=True), hub.link(worker), hub.stations),
            pace=pace_here(PATIENT),
            **options,
        )
        for worker, each in enumerate(copy_schedules(cut.gathered(), cut.worker, len(hub.stations)))
    ]


def exchange(cut, ends, rows, direction, tensor_id=0):
    def work(worker):
        return ends[worker].aggregate(rows[cut.worker == worker], direction, tensor_id)

    found = np.empty_like(rows)
    for worker, sums in enumerate(together(work, len(ends))):
        found[cut.worker == worker] = sums
    return found


@helpers.given(helpers.graphs(), st.integers(2, 5), settings=helpers.FEWER)
def test_all_replicas_get_the_same_bits_of_their_sum(graph, workers):
    workers = min(workers, graph.vertices)
    cut, hub = cut_of(graph, workers), Hub(workers)
    ends = replicas_on(hub, cut)
    rows = np.random.default_rng(0).standard_normal((cut.vertices, 5)).astype(np.float32)
    totals = np.zeros((cut.masters, 5))
    np.add.at(totals, cut.vertex, rows.astype(np.float64))
    held = np.bincount(cut.vertex)
    for direction in BOTH:
        found = exchange(cut, ends, rows, direction)
        right = np.where(held[cut.vertex] > 1, 1, 0)[:, None] * totals[cut.vertex]
        assert np.allclose(found, right, atol=1e-5)
        for vertex in np.flatnonzero(held > 1):
            assert len(np.unique(found[cut.vertex == vertex], axis=0)) == 1
    expected = sum(
        each.expected_traffic(5, direction).bytes_up for each in ends for direction in BOTH
    )
    # A busy machine asks and answers more often, and sends each row once all the same.
    sent = [size * n for (kind, size), n in hub.kinds().items() if kind == Kind.FEATURE]
    assert sum(sent) <= expected


def test_a_cache_keeps_both_rounds_of_both_directions_apart():
    cut, hub = cut_of(helpers.random_graph(30, 90, 1), 3), Hub(3)
    ends = replicas_on(hub, cut, compression=Compression(cache=True, bits=16))
    rng = np.random.default_rng(1)
    for number in range(3):
        for direction in BOTH:
            rows = rng.standard_normal((cut.vertices, 4)).astype(np.float32)
            totals = np.zeros((cut.masters, 4))
            np.add.at(totals, cut.vertex, rows.astype(np.float64))
            found = exchange(cut, ends, rows, direction, tensor_id=number % 2)
            shared = np.bincount(cut.vertex)[cut.vertex] > 1
            assert np.allclose(found[shared], totals[cut.vertex][shared], atol=3e-3)
            if number == 1:
                for end in ends:
                    end.forget(1)


def test_files_say_that_sums_are_scattered(tmp_path):
    graph = helpers.random_graph(20, 60, 2)
    cut, paths = cut_of(graph, 2), [tmp_path / "0", tmp_path / "1"]
    write_schedules(cut, cut.worker, paths, choose=copy_schedules)
    assert all(read_schedule(path).scatters for path in paths)
    write_schedules(graph, cut.worker[: cut.masters], paths, choose=copy_schedules)
    assert not any(read_schedule(path).scatters for path in paths)
    with pytest.raises(ScheduleError, match="g3 has no vertex cut"):
        write_schedules(cut, cut.worker, paths, choose=binned_schedules)
