# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Plans on disk."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.files import read_regular, replacing
from switchgnn.base.full_disk import why_not_written
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.plan.archive import render_parts, unpack_arrays, unpack_assignment
from switchgnn.planner.plan.layout import (
    ASSIGNMENT_FILE,
    LEFT_ARRAYS,
    MANIFEST_FILE,
    SWITCH_ARRAYS,
    SWITCH_FILE,
    WORKER_ARRAYS,
    worker_file,
)
from switchgnn.planner.plan.manifest import Manifest, decode_manifest, encode_manifest
from switchgnn.planner.plan.plan import Plan, SwitchPart, WorkerPart
from switchgnn.planner.plan.shapes import check_switch_shapes, check_worker_shapes


def write_plan(plan: Plan, folder: str | Path) -> None:
    """Write a plan; readers see either all of it or nothing of it.

    An older plan in `folder` is replaced as a whole.

    Raises:
        PlannerError: `folder` is something other than a plan or an empty folder, or it
            cannot be written.
    """
    target = Path(folder).resolve()
    try:
        _check_target(target)
        with replacing(target) as new:
            _write_files(plan, new)
    except OSError as error:
        raise PlannerError(
            f"cannot write plan {folder}: {why_not_written(error, target)}"
        ) from error


def check_place(folder: str | Path) -> None:
    """Check that a plan may be written to a folder, before it is made.

    Raises:
        PlannerError: it is something other than a plan or an empty folder.
    """
    try:
        _check_target(Path(folder).resolve())
    except OSError as error:
        raise PlannerError(f"cannot write plan {folder}: {error.strerror}") from error


def read_plan(folder: str | Path) -> Plan:
    """Read a whole plan; see the functions for its parts."""
    manifest = read_manifest(folder)
    return Plan(
        manifest=manifest,
        switch=read_switch_part(folder),
        workers=tuple(read_worker_part(folder, worker) for worker in range(manifest.workers)),
        assignment=read_assignment(folder),
    )


def read_manifest(folder: str | Path) -> Manifest:
    """Read and verify plan.json.

    Raises:
        PlannerError: not a plan, another version, or a changed file.
    """
    path = Path(folder) / MANIFEST_FILE
    try:
        data = read_regular(path)
    except FileNotFoundError:
        raise PlannerError(f"{folder} is not a plan: it has no {MANIFEST_FILE}") from None
    except OSError as error:
        raise PlannerError(f"cannot read {path}: {error.strerror}") from error
    return decode_manifest(data, str(path))


def read_switch_part(folder: str | Path) -> SwitchPart:
    """Read and verify the switch's part.

    Raises:
        PlannerError: as read_manifest, or a missing or changed file.
    """
    data, where = _read_file(folder, SWITCH_FILE)
    arrays: dict[str, Any] = dict(unpack_arrays(data, SWITCH_ARRAYS, where))
    check_switch_shapes(arrays, where)
    return SwitchPart(**arrays)


def read_worker_part(folder: str | Path, worker: int) -> WorkerPart:
    """Read and verify one worker's part; the files of the others are not touched.

    Raises:
        PlannerError: as read_manifest, no such worker, or a missing or changed file.
    """
    manifest = read_manifest(folder)
    workers = manifest.workers
    if not 0 <= worker < workers:
        raise PlannerError(f"plan {folder} has the workers 0 to {workers - 1}, but not {worker}")
    data, where = _read_file(folder, worker_file(worker))
    arrays: dict[str, Any] = dict(unpack_arrays(data, WORKER_ARRAYS, where, LEFT_ARRAYS))
    check_worker_shapes(arrays, manifest.blocks, where)
    return WorkerPart(worker=worker, **arrays)


def read_assignment(folder: str | Path) -> NDArray[np.int32]:
    """Read and verify the worker of each vertex, int32[V]; errors as read_switch_part."""
    data, where = _read_file(folder, ASSIGNMENT_FILE)
    return unpack_assignment(data, where)


def _read_file(folder: str | Path, name: str) -> tuple[bytes, str]:
    """Return the content of a file whose digest is the manifest's, and what to call it."""
    manifest = read_manifest(folder)
    path = Path(folder) / name
    try:
        data = read_regular(path)
    except OSError as error:
        raise PlannerError(f"plan {folder} is incomplete: {name}: {error.strerror}") from error
    if hashlib.sha256(data).hexdigest() != manifest.files.get(name):
        raise PlannerError(f"{path} does not belong to this plan or was changed; plan again")
    return data, str(path)


def _write_files(plan: Plan, folder: Path) -> None:
    for name, data in render_parts(plan.switch, plan.workers, plan.assignment):
        (folder / name).write_bytes(data)
    (folder / MANIFEST_FILE).write_bytes(encode_manifest(plan.manifest))


def _check_target(target: Path) -> None:
    """Refuse to replace anything that is not a plan, or that holds other files as well."""
    if not target.exists():
        return
    if not target.is_dir():
        raise PlannerError(f"{target} is a file; give the name of a folder for the plan")
    present = {path.name for path in target.iterdir()}
    if not present:
        return
    if MANIFEST_FILE not in present:
        raise PlannerError(f"{target} is not a plan, so it is not overwritten; choose another name")
    strange = sorted(name for name in present if not is_plan_file(name))
    if strange:
        raise PlannerError(
            f"{target} holds {strange[0]}, which is not part of a plan, so it is not "
            "overwritten; move that file or choose another name"
        )


def is_plan_file(name: str) -> bool:
    """Return whether a plan may hold a file of that name."""
    if name in (MANIFEST_FILE, SWITCH_FILE, ASSIGNMENT_FILE):
        return True
    digits = name.removeprefix("worker-").removesuffix(".npz")
    return digits.isdecimal() and name == worker_file(int(digits))
