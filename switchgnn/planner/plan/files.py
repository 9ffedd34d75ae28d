"""Plans on disk."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from switchgnn.base.array_types import Int32s
from switchgnn.base.arrays import ArrayKind, ArraysError, pack_arrays, read_arrays
from switchgnn.base.files import read_regular, reason_to_keep, replacing, writing
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.plan.manifest import Manifest, decode_manifest, encode_manifest
from switchgnn.planner.plan.plan import (
    ASSIGNMENT_ARRAYS,
    LEFT_ARRAYS,
    SWITCH_ARRAYS,
    WORKER_ARRAYS,
    Plan,
    SwitchPart,
    WorkerPart,
)

MANIFEST_FILE = "plan.json"
SWITCH_FILE = "switch.safetensors"
ASSIGNMENT_FILE = "assignment.safetensors"


def worker_file(worker: int) -> str:
    """Return the file name of a worker's part."""
    return f"worker-{worker:03d}.safetensors"


def render_parts(
    switch: SwitchPart, workers: Sequence[WorkerPart], assignment: Int32s
) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of every file of a plan but its manifest."""
    yield SWITCH_FILE, _pack(switch, SWITCH_ARRAYS)
    for part in workers:
        kinds = {**WORKER_ARRAYS, **(LEFT_ARRAYS if part.leaves_any else {})}
        yield worker_file(part.worker), _pack(part, kinds)
    yield ASSIGNMENT_FILE, pack_arrays({"assignment": assignment.astype("<i4")})


def _pack(part: SwitchPart | WorkerPart, kinds: Mapping[str, ArrayKind]) -> bytes:
    arrays = {name: getattr(part, name).astype(kind.types[0]) for name, kind in kinds.items()}
    return pack_arrays(arrays)


def write_plan(plan: Plan, folder: str | Path) -> None:
    """Write a plan atomically; a plan in `folder` is replaced as a whole.

    Raises PlannerError if `folder` is neither a plan nor an empty folder, or cannot be written.
    """
    target = Path(folder).resolve()
    check_target(target)
    with writing(Path(folder), "plan ", PlannerError), replacing(target) as new:
        for name, data in render_parts(plan.switch, plan.workers, plan.assignment):
            (new / name).write_bytes(data)
        (new / MANIFEST_FILE).write_bytes(encode_manifest(plan.manifest))


def check_target(folder: str | Path) -> None:
    """Check before planning that a plan may be written to a folder."""
    with writing(Path(folder), "plan ", PlannerError):
        reason = reason_to_keep(Path(folder).resolve(), "a plan", is_plan_file)
    if reason:
        raise PlannerError(reason)


def read_plan(folder: str | Path) -> Plan:
    """Read and verify a whole plan."""
    manifest = read_manifest(folder)
    return Plan(
        manifest=manifest,
        switch=SwitchPart(**_read(folder, manifest, SWITCH_FILE, SWITCH_ARRAYS)),
        workers=tuple(_worker_part(folder, manifest, each) for each in range(manifest.workers)),
        assignment=_read(folder, manifest, ASSIGNMENT_FILE, ASSIGNMENT_ARRAYS)["assignment"],
    )


def read_manifest(folder: str | Path) -> Manifest:
    """Read and verify plan.json."""
    path = Path(folder) / MANIFEST_FILE
    try:
        data = read_regular(path)
    except FileNotFoundError:
        raise PlannerError(f"{folder} is not a plan: it has no {MANIFEST_FILE}.") from None
    except OSError as error:
        raise PlannerError(f"Cannot read {path}: {error.strerror}.") from error
    return decode_manifest(data, str(path))


def read_switch_part(folder: str | Path) -> SwitchPart:
    """Read and verify the switch's part."""
    return SwitchPart(**_read(folder, read_manifest(folder), SWITCH_FILE, SWITCH_ARRAYS))


def read_worker_part(folder: str | Path, worker: int) -> WorkerPart:
    """Read and verify one worker's part, and no other file but the manifest."""
    manifest = read_manifest(folder)
    workers = manifest.workers
    if not 0 <= worker < workers:
        raise PlannerError(f"Plan {folder} has the workers 0 to {workers - 1}, but not {worker}.")
    return _worker_part(folder, manifest, worker)


def _worker_part(folder: str | Path, manifest: Manifest, worker: int) -> WorkerPart:
    kinds = {**WORKER_ARRAYS, **LEFT_ARRAYS}
    return WorkerPart(worker=worker, **_read(folder, manifest, worker_file(worker), kinds))


def read_assignment(folder: str | Path) -> Int32s:
    """Read and verify the worker of each vertex, int32[V]."""
    arrays = _read(folder, read_manifest(folder), ASSIGNMENT_FILE, ASSIGNMENT_ARRAYS)
    assignment: Int32s = arrays["assignment"]
    return assignment


def _read(
    folder: str | Path, manifest: Manifest, name: str, kinds: Mapping[str, ArrayKind]
) -> dict[str, Any]:
    path = Path(folder) / name
    try:
        data = read_regular(path)
    except OSError as error:
        raise PlannerError(f"Plan {folder} is incomplete: {name}: {error.strerror}.") from error
    if hashlib.sha256(data).hexdigest() != manifest.files.get(name):
        raise PlannerError(f"{path} does not belong to this plan or was changed; plan again.")
    sizes = {"B": manifest.blocks, "F": manifest.rows, "W": manifest.workers}
    sizes["V"] = manifest.graph.vertices
    try:
        return read_arrays(data, kinds, where=str(path), remedy="plan again", sizes=sizes)
    except ArraysError as error:
        raise PlannerError(str(error)) from error


def is_plan_file(name: str) -> bool:
    """Return whether a plan may hold a file of that name."""
    if name in (MANIFEST_FILE, SWITCH_FILE, ASSIGNMENT_FILE):
        return True
    digits = name.removeprefix("worker-").removesuffix(".safetensors")
    return digits.isdecimal() and name == worker_file(int(digits))
