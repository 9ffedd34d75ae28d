# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A schedule comes back from its file as it was; everything else is refused."""

import itertools

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from switchgnn.host.direct import (
    ScheduleError,
    partial_schedules,
    read_schedule,
    schedule_file,
    write_schedule,
)
from tests.host.direct.crew import random_case


@pytest.fixture
def schedule():
    graph, assignment = random_case(50, 200, 3, 1, directed=True)
    return partial_schedules(graph, assignment, 3)[1]


def test_it_comes_back(schedule, tmp_path):
    path = tmp_path / schedule_file(1)
    write_schedule(schedule, path)
    got = read_schedule(path)
    assert got.worker == 1
    for name in ("vertices", "out_indptr", "in_indptr", "digest"):
        assert np.array_equal(getattr(got, name), getattr(schedule, name))
    for name in ("send", "add"):
        for part in ("indptr", "column", "width"):
            assert np.array_equal(
                getattr(getattr(got, name), part), getattr(getattr(schedule, name), part)
            )


def test_transposing_twice_changes_nothing(schedule):
    twice = schedule.transposed().transposed()
    assert np.array_equal(twice.add.column, schedule.add.column)
    assert np.array_equal(twice.send.indptr, schedule.send.indptr)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("digest", "short"),
        *itertools.product(
            ("send_column", "add_column", "in_indptr", "add_indptr"),
            ("large", "negative", "short", "empty"),
        ),
    ],
)
def test_rows_that_are_not_there_are_refused(schedule, tmp_path, name, change):
    """They would be added from other memory."""
    path = tmp_path / schedule_file(1)
    write_schedule(schedule, path)
    arrays = load_file(path)
    array = arrays[name]
    if change in ("large", "negative"):
        array[len(array) // 2] = 10**9 if change == "large" else -1
    else:
        arrays[name] = array[: len(array) - 1 if change == "short" else 0]
    save_file(arrays, path)
    with pytest.raises(ScheduleError, match="do not fit each other"):
        read_schedule(path)


def test_no_room_is_made_for_rows_that_nobody_adds(schedule, tmp_path):
    path = tmp_path / schedule_file(1)
    write_schedule(schedule, path)
    arrays = load_file(path)
    arrays["in_indptr"][-1] = 1 << 40
    save_file(arrays, path)
    with pytest.raises(ScheduleError, match="do not fit each other"):
        read_schedule(path)


def test_other_files_are_refused(schedule, tmp_path):
    with pytest.raises(ScheduleError, match="Cannot read"):
        read_schedule(tmp_path / "none.safetensors")
    text = tmp_path / "text.safetensors"
    text.write_text("no archive")
    with pytest.raises(ScheduleError, match="is refused"):
        read_schedule(text)
    other = tmp_path / "other.safetensors"
    save_file({"a": np.zeros(3)}, other)
    with pytest.raises(ScheduleError, match="has no array worker; write it again"):
        read_schedule(other)
    with pytest.raises(ScheduleError, match="Cannot write"):
        write_schedule(schedule, tmp_path / "no-folder" / "x.safetensors")
