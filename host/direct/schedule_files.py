# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's schedule on disk: an ``.npz`` archive without pickle."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.arrays import ArrayKind, ArraysError, read_npz
from switchgnn.base.full_disk import why_not_written
from switchgnn.host.direct.errors import ScheduleError
from switchgnn.host.direct.operator import RowSums
from switchgnn.host.direct.schedule import DirectSchedule
from switchgnn.planner.arrays import are_offsets

_REMEDY = "write it again"
_DIGEST_SIZE = 32
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
        why = why_not_written(error, Path(path))
        raise ScheduleError(f"Cannot write {path}: {why}.") from error


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
    kinds = {
        name: ArrayKind((kind,), (0,) if name == "worker" else (1,))
        for name, kind in _ARRAYS.items()
    }
    try:
        arrays = read_npz(Path(path), kinds, remedy=_REMEDY)
    except ArraysError as error:
        raise ScheduleError(f"Cannot read the schedule: {error}.") from error
    if not _fit(arrays):
        raise ScheduleError(f"The arrays of {path} do not fit each other; {_REMEDY}.")
    return DirectSchedule(
        worker=int(arrays["worker"]),
        vertices=arrays["vertices"],
        out_indptr=arrays["out_indptr"],
        send=RowSums(arrays["send_indptr"], arrays["send_column"], len(arrays["vertices"])),
        in_indptr=arrays["in_indptr"],
        add=RowSums(arrays["add_indptr"], arrays["add_column"], int(arrays["in_indptr"][-1])),
        digest=arrays["digest"],
    )


def _fit(arrays: Mapping[str, NDArray[Any]]) -> bool:
    """Return whether no row is named that is not there: they are added without looking."""
    workers, vertices = len(arrays["out_indptr"]) - 1, len(arrays["vertices"])
    sent, received = len(arrays["send_indptr"]) - 1, arrays["in_indptr"][-1:]
    return (
        0 <= int(arrays["worker"]) < workers
        and len(arrays["in_indptr"]) == workers + 1
        and len(arrays["digest"]) == _DIGEST_SIZE
        and len(arrays["add_indptr"]) == vertices + 1
        and are_offsets(arrays["out_indptr"], sent)
        and are_offsets(arrays["in_indptr"], int(received[0]))
        # Room is made for what comes in, and each of these rows is added to something.
        and int(received[0]) <= len(arrays["add_column"])
        and are_offsets(arrays["send_indptr"], len(arrays["send_column"]))
        and are_offsets(arrays["add_indptr"], len(arrays["add_column"]))
        and _inside(arrays["send_column"], vertices)
        and _inside(arrays["add_column"], int(received[0]))
    )


def _inside(places: NDArray[np.int64], end: int) -> bool:
    return bool(places.min(initial=0) >= 0 and places.max(initial=-1) < end)
