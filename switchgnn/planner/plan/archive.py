# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays to bytes and back; the same arrays always give the same bytes."""

import io
import zipfile
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.arrays import ArrayKind, ArraysError, read_npy, read_npz
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.plan.layout import (
    ASSIGNMENT_FILE,
    LEFT_ARRAYS,
    SWITCH_ARRAYS,
    SWITCH_FILE,
    TABLES,
    WORKER_ARRAYS,
    worker_file,
)
from switchgnn.planner.plan.plan import SwitchPart, WorkerPart

# The earliest time that a zip archive can hold.
_NO_TIME = (1980, 1, 1, 0, 0, 0)
_UNIX = 3
_READABLE = 0o644 << 16
_REMEDY = "plan again"


def render_parts(
    switch: SwitchPart, workers: Sequence[WorkerPart], assignment: NDArray[np.int32]
) -> Iterator[tuple[str, bytes]]:
    """Yield every file of a plan but its manifest.

    Args:
        switch: the part of the switch.
        workers: one part per worker.
        assignment: int32[V], the worker of each vertex.

    Yields:
        (file name, content).
    """
    yield SWITCH_FILE, pack_arrays(switch, SWITCH_ARRAYS)
    for part in workers:
        kinds = {**WORKER_ARRAYS, **(LEFT_ARRAYS if part.leaves_any else {})}
        yield worker_file(part.worker), pack_arrays(part, kinds)
    yield ASSIGNMENT_FILE, _npy(assignment.astype("<i4"))


def pack_arrays(part: SwitchPart | WorkerPart, kinds: Mapping[str, str]) -> bytes:
    """Return an .npz archive of the attributes of `part` that `kinds` names, uncompressed.

    numpy.savez stamps the time into its archives; this does not.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, kind in kinds.items():
            info = zipfile.ZipInfo(f"{name}.npy", _NO_TIME)
            info.create_system = _UNIX
            info.external_attr = _READABLE
            archive.writestr(info, _npy(getattr(part, name).astype(kind)))
    return buffer.getvalue()


def unpack_arrays(
    data: bytes, kinds: Mapping[str, str], where: str, optional: Mapping[str, str] | None = None
) -> dict[str, NDArray[np.generic]]:
    """Read the arrays of an archive, which must have the names and types of `kinds`.

    Args:
        data: the content of the file.
        kinds: the type of each array, by its name.
        where: what error messages call the file.
        optional: the type of each array that may be there besides.

    Returns:
        The arrays by name.

    Raises:
        PlannerError: a damaged archive, or other arrays.
    """
    expected = {
        name: ArrayKind((kind,), (2,) if name in TABLES else (1,)) for name, kind in kinds.items()
    }
    for name, kind in (optional or {}).items():
        expected[name] = ArrayKind((kind,), optional=True)
    try:
        return read_npz(data, expected, where=where, remedy=_REMEDY)
    except ArraysError as error:
        raise PlannerError(str(error)) from error


def unpack_assignment(data: bytes, where: str) -> NDArray[np.int32]:
    """Read an assignment, int32[V].

    Raises:
        PlannerError: the file does not hold one.
    """
    try:
        return read_npy(data, ArrayKind(("<i4",)), where=where, remedy=_REMEDY)
    except ArraysError as error:
        raise PlannerError(str(error)) from error


def _npy(array: NDArray[np.generic]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), (1, 0), allow_pickle=False)
    return buffer.getvalue()
