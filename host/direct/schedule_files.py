# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's schedule on disk: an ``.npz`` archive without pickle."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from switchgnn.host.direct.errors import ScheduleError
from switchgnn.host.direct.operator import RowSums
from switchgnn.host.direct.schedule import DirectSchedule
from switchgnn.npz import NotArraysError, read_npz

_ARRAYS = {
    "worker": "<i8",
    "vertices": "<i8",
    "out_indptr": "<i8",
    "send_indptr": "<i8",
    "send_column": "<i8",
    "in_indptr": "<i8",
    "add_indptr": "<i8",
    "add_column": "<i8",
    "digest": "|u1",
}


def schedule_file(worker: int) -> str:
    """Return the usual name of a worker's file."""
    return f"host-schedule-{worker:03d}.npz"


def write_schedule(schedule: DirectSchedule, path: str | Path) -> None:
    """Write one worker's schedule.

    Raises:
        ScheduleError: the file cannot be written.
    """
    arrays = {
        "worker": np.array(schedule.worker),
        "vertices": schedule.vertices,
        "out_indptr": schedule.out_indptr,
        "send_indptr": schedule.send.indptr,
        "send_column": schedule.send.column,
        "in_indptr": schedule.in_indptr,
        "add_indptr": schedule.add.indptr,
        "add_column": schedule.add.column,
        "digest": schedule.digest,
    }
    typed: dict[str, Any] = {name: array.astype(_ARRAYS[name]) for name, array in arrays.items()}
    try:
        with Path(path).open("wb") as file:
            np.savez(file, **typed)
    except OSError as error:
        raise ScheduleError(f"Cannot write {path}: {error.strerror}.") from error


def write_schedules(schedules: Sequence[DirectSchedule], paths: Sequence[Path]) -> None:
    """Write the schedules of all workers, each into its file.

    Raises:
        ScheduleError: a file cannot be written.
    """
    for schedule, path in zip(schedules, paths, strict=True):
        write_schedule(schedule, path)


def read_schedule(path: str | Path) -> DirectSchedule:
    """Read what ``write_schedule`` wrote.

    Raises:
        ScheduleError: no such file, or something else in it.
    """
    try:
        arrays = read_npz(Path(path))
    except OSError as error:
        raise ScheduleError(f"Cannot read {path}: {error.strerror or error}.") from error
    except NotArraysError as error:
        raise ScheduleError(f"{path} is not an archive of arrays; write it again.") from error
    if {name: array.dtype.str for name, array in arrays.items()} != _ARRAYS:
        raise ScheduleError(f"{path} does not hold a schedule; write it again.")
    return DirectSchedule(
        worker=int(arrays["worker"]),
        vertices=arrays["vertices"],
        out_indptr=arrays["out_indptr"],
        send=RowSums(arrays["send_indptr"], arrays["send_column"], len(arrays["vertices"])),
        in_indptr=arrays["in_indptr"],
        add=RowSums(arrays["add_indptr"], arrays["add_column"], int(arrays["in_indptr"][-1])),
        digest=arrays["digest"],
    )
