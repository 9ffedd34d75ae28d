"""Plans on disk."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from switchgnn.base.array_types import Int32s
from switchgnn.base.arrays import ArrayKind, ArraysError, pack_arrays, read_arrays
from switchgnn.base.files import read_regular, reason_to_keep, replacing
from switchgnn.base.full_disk import writing
from switchgnn.planner.arrays import are_offsets
from switchgnn.planner.errors import PlannerError
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

# These arrays have a number for each bank; all others are rows of numbers.
_TABLES = ("entry_slot", "entry_expected", "entry_row")

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


def _pack(part: SwitchPart | WorkerPart, kinds: Mapping[str, str]) -> bytes:
    return pack_arrays({name: getattr(part, name).astype(kind) for name, kind in kinds.items()})


def _unpack(
    data: bytes, kinds: Mapping[str, str], where: str, optional: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Read arrays, which must have the names and types of `kinds`."""
    expected = {
        name: ArrayKind((kind,), (2,) if name in _TABLES else (1,)) for name, kind in kinds.items()
    }
    for name, kind in (optional or {}).items():
        expected[name] = ArrayKind((kind,), optional=True)
    try:
        return read_arrays(data, expected, where=where, remedy="plan again")
    except ArraysError as error:
        raise PlannerError(str(error)) from error


Arrays = Mapping[str, NDArray[Any]]

# The array that each indptr cuts into rows.
_CUT = {
    "send_indptr": "send_source",
    "send_row_indptr": "send_row",
    "receive_indptr": "receive_vertex",
    "neighbour_indptr": "neighbour_vertex",
}
# Arrays of a worker that are as long as another one, or one longer.
_AS_LONG = {
    "receive_row": "receive_vertex",
    "receive_count": "receive_vertex",
    "neighbour_worker": "neighbour_vertex",
}
_ONE_LONGER = {"send_row_indptr": "send_destination", "neighbour_indptr": "receive_vertex"}


def check_switch_shapes(arrays: Arrays, where: str) -> None:
    """Check that sources, entries and results have equally long arrays."""
    for prefix in ("source", "entry", "result"):
        lengths = {len(array) for name, array in arrays.items() if name.startswith(prefix)}
        if len(lengths) > 1:
            raise _damaged(where, f"arrays {prefix}_* differ in length")
    if len({arrays[name].shape for name in _TABLES}) > 1:
        raise _damaged(where, f"{', '.join(_TABLES)} differ in shape")


def check_worker_shapes(arrays: Arrays, blocks: int, where: str, rows: int = 1) -> None:
    """Check that all is inside the arrays that it names; packets have that many rows."""
    if len(arrays["send_destination"]) != len(arrays["send_source"]) * rows:
        raise _damaged(where, f"send_destination is not for {rows} rows of each packet")
    for name, other in _AS_LONG.items():
        if len(arrays[name]) != len(arrays[other]):
            raise _damaged(where, f"{name} and {other} differ in length")
    for name, other in _ONE_LONGER.items():
        if len(arrays[name]) != len(arrays[other]) + 1:
            raise _damaged(where, f"{name} is not one longer than {other}")
    for name in ("send_indptr", "receive_indptr"):
        if len(arrays[name]) != blocks + 1:
            raise _damaged(where, f"{name} is not for {blocks} blocks")
    for name, other in _CUT.items():
        if not are_offsets(arrays[name], len(arrays[other])):
            raise _damaged(where, f"{name} does not rise from 0 to the length of {other}")
    if ("left_forward" in arrays) != ("left_backward" in arrays):
        raise _damaged(where, "only one direction is left to the hosts")
    for name in ("send_row", "receive_row", "left_forward", "left_backward"):
        named = arrays.get(name, arrays["receive_row"])
        if named.min(initial=0) < 0 or named.max(initial=-1) >= len(arrays["vertices"]):
            raise _damaged(where, f"{name} names a row that the worker does not have")


def _damaged(where: str, problem: str) -> PlannerError:
    return PlannerError(f"{where} is damaged: {problem}; plan again.")


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
        switch=read_switch_part(folder),
        workers=tuple(read_worker_part(folder, worker) for worker in range(manifest.workers)),
        assignment=read_assignment(folder),
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
    data, where = _read_file(folder, SWITCH_FILE)
    arrays = _unpack(data, SWITCH_ARRAYS, where)
    check_switch_shapes(arrays, where)
    return SwitchPart(**arrays)


def read_worker_part(folder: str | Path, worker: int) -> WorkerPart:
    """Read and verify one worker's part, and no other file but the manifest."""
    manifest = read_manifest(folder)
    workers = manifest.workers
    if not 0 <= worker < workers:
        raise PlannerError(f"Plan {folder} has the workers 0 to {workers - 1}, but not {worker}.")
    data, where = _read_file(folder, worker_file(worker))
    arrays = _unpack(data, WORKER_ARRAYS, where, LEFT_ARRAYS)
    check_worker_shapes(arrays, manifest.blocks, where, manifest.rows)
    return WorkerPart(worker=worker, **arrays)


def read_assignment(folder: str | Path) -> Int32s:
    """Read and verify the worker of each vertex, int32[V]."""
    data, where = _read_file(folder, ASSIGNMENT_FILE)
    assignment: Int32s = _unpack(data, ASSIGNMENT_ARRAYS, where)["assignment"]
    return assignment


def _read_file(folder: str | Path, name: str) -> tuple[bytes, str]:
    """Return the content of a file with the manifest's digest, and its name for messages."""
    manifest = read_manifest(folder)
    path = Path(folder) / name
    try:
        data = read_regular(path)
    except OSError as error:
        raise PlannerError(f"Plan {folder} is incomplete: {name}: {error.strerror}.") from error
    if hashlib.sha256(data).hexdigest() != manifest.files.get(name):
        raise PlannerError(f"{path} does not belong to this plan or was changed; plan again.")
    return data, str(path)


def is_plan_file(name: str) -> bool:
    """Return whether a plan may hold a file of that name."""
    if name in (MANIFEST_FILE, SWITCH_FILE, ASSIGNMENT_FILE):
        return True
    digits = name.removeprefix("worker-").removesuffix(".safetensors")
    return digits.isdecimal() and name == worker_file(int(digits))
