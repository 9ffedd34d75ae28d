"""Schedules: no cover is smaller, a file gives back what was written, and all else is refused."""

from operator import attrgetter

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from switchgnn.host import direct
from switchgnn.host.base.errors import ScheduleError
from switchgnn.planner.graphs.boundary import boundary_edges
from tests.host.direct.crew import random_case
from tests.planner.costs.test_report import smallest_cover


@pytest.mark.parametrize("seed", range(4))
def test_rows_of_each_pair_are_its_sources_or_the_fewest(seed):
    graph, assignment = random_case(18, 40, 3, seed, directed=True)
    boundary = boundary_edges(graph, assignment)
    copied = direct.rows_per_pair(direct.copy_schedules(graph, assignment, 3))
    partial = direct.rows_per_pair(direct.partial_schedules(graph, assignment, 3))
    for a in range(3):
        for b in range(3):
            here = (boundary.source_worker == a) & (boundary.destination_worker == b)
            edges = np.stack([boundary.source[here], boundary.destination[here]], axis=1)
            assert copied[a, b] == len(np.unique(edges[:, 0]))
            assert partial[a, b] == smallest_cover(set(map(tuple, edges.tolist())))


@pytest.mark.parametrize("workers", [0, 257])
def test_impossible_numbers_of_workers_are_refused(workers):
    graph, assignment = random_case(10, 20, 2, 0, directed=False)
    with pytest.raises(ScheduleError, match="workers can exchange"):
        direct.copy_schedules(graph, assignment, workers)


def test_an_assignment_must_fit():
    graph, assignment = random_case(10, 20, 2, 0, directed=False)
    with pytest.raises(ScheduleError, match="assignment"):
        direct.copy_schedules(graph, assignment + 1, 2)
    with pytest.raises(ScheduleError, match="assignment"):
        direct.partial_schedules(graph, assignment[1:], 2)


@pytest.fixture
def schedule():
    graph, assignment = random_case(50, 200, 3, 1, directed=True)
    return direct.partial_schedules(graph, assignment, 3)[1]


def test_it_comes_back(schedule, tmp_path):
    path = tmp_path / direct.schedule_file(1)
    direct.write_schedule(schedule, path)
    got = direct.read_schedule(path)
    assert got.worker == 1
    names = ["vertices", "out_indptr", "in_indptr", "digest"]
    names += [
        f"{name}.{part}" for name in ("send", "add") for part in ("indptr", "column", "width")
    ]
    for get in map(attrgetter, names):
        assert np.array_equal(get(got), get(schedule))


@pytest.mark.parametrize(
    ("name", "change", "part"),
    [
        ("digest", "short", "digest: it has the shape"),
        ("send_column", "large", "send_column: it has numbers outside"),
        ("add_column", "negative", "add_column: it has numbers outside"),
        ("in_indptr", "short", "in_indptr: it has the shape"),
        ("in_indptr", "huge", "do not fit each other"),
        ("add_indptr", "empty", "add_indptr: it has the shape"),
    ],
)
def test_rows_that_are_not_there_are_refused(schedule, tmp_path, name, change, part):
    """They would be added from other memory."""
    path = tmp_path / direct.schedule_file(1)
    direct.write_schedule(schedule, path)
    arrays = load_file(path)
    array = arrays[name]
    if change == "huge":  # no room is made for rows that nobody adds
        array[-1] = 1 << 40
    elif change in ("large", "negative"):
        array[len(array) // 2] = 10**9 if change == "large" else -1
    else:
        arrays[name] = array[: len(array) - 1 if change == "short" else 0]
    save_file(arrays, path)
    with pytest.raises(ScheduleError, match=part):
        direct.read_schedule(path)


def test_other_files_are_refused(schedule, tmp_path):
    with pytest.raises(ScheduleError, match="Cannot read"):
        direct.read_schedule(tmp_path / "none.safetensors")
    text = tmp_path / "text.safetensors"
    text.write_text("no archive")
    with pytest.raises(ScheduleError, match="is refused"):
        direct.read_schedule(text)
    other = tmp_path / "other.safetensors"
    save_file({"a": np.zeros(3)}, other)
    with pytest.raises(ScheduleError, match="has no array worker; write it again"):
        direct.read_schedule(other)
    with pytest.raises(ScheduleError, match="Cannot write"):
        direct.write_schedule(schedule, tmp_path / "no-folder" / "x.safetensors")
