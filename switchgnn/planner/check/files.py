"""Plan files as the checker reads them: by docs/plans.md, without the reader of plans."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.array_types import Int32s
from switchgnn.base.arrays import ArrayKind, ArraysError, read_arrays
from switchgnn.base.files import read_regular
from switchgnn.planner.errors import PlannerError

Arrays = dict[str, NDArray[Any]]

_VERSION = 9
_SWITCH = {
    "source_vertex": "<u4",
    "source_worker": "<u2",
    "entry_block": "<u2",
    "entry_source": "<u4",
    "entry_hop": "<u2",
    "entry_last": "|b1",
    "entry_count": "<u2",
    "entry_slot": "<u4",
    "entry_expected": "<u2",
    "entry_row": "|u1",
    "result_block": "<u2",
    "result_bank": "|u1",
    "result_slot": "<u4",
    "result_vertex": "<u4",
    "result_worker": "<u2",
    "result_expected": "<u2",
}
_WORKER = {
    "vertices": "<i8",
    "send_indptr": "<i8",
    "send_source": "<u4",
    "send_destination": "<u4",
    "send_row_indptr": "<i8",
    "send_row": "<i8",
    "receive_indptr": "<i8",
    "receive_vertex": "<u4",
    "receive_row": "<i8",
    "receive_count": "<u2",
    "neighbour_indptr": "<i8",
    "neighbour_vertex": "<u4",
    "neighbour_worker": "<u2",
}
_ASSIGNMENT = {"assignment": "<i4"}
# The rows of a worker that are left to the hosts; nowhere, or in the files of all workers.
_LEFT = {"left_forward": "<i8", "left_backward": "<i8"}
_TABLES = ("entry_slot", "entry_expected", "entry_row")


class PlanCheckError(PlannerError):
    """A plan that breaks a promise; the message names the first violation."""


@dataclass(frozen=True)
class RawPlan:
    """The content of the files of a plan."""

    manifest: dict[str, Any]  # plan.json
    assignment: Int32s  # [V]
    switch: Arrays  # the arrays of switch.safetensors
    workers: list[Arrays]  # the arrays of each worker

    @property
    def leaves_any(self) -> bool:
        """Whether any destination may be left to the hosts."""
        return "left_forward" in self.workers[0]


def require(holds: bool | np.bool_, problem: str) -> None:
    """Raise PlanCheckError with that message unless the condition holds."""
    if not holds:
        raise PlanCheckError(problem)


def read_raw_plan(folder: Path) -> RawPlan:
    """Read all files and compare their digests."""
    manifest = read_raw_manifest(folder)
    try:
        workers, files = int(manifest["workers"]), dict(manifest["files"])
    except (KeyError, TypeError, ValueError) as error:
        raise PlanCheckError(f"{folder}/plan.json lacks workers or files.") from error
    require(workers == len(files) - 2, f"{folder}/plan.json does not list the files of a plan.")
    own = [f"worker-{worker:03d}.safetensors" for worker in range(workers)]
    expected = {"switch.safetensors", "assignment.safetensors", *own}
    require(set(files) == expected, f"{folder}/plan.json does not list the files of a plan.")
    present = {path.name for path in folder.iterdir()} - {"plan.json"}
    strange = sorted(present ^ expected)
    require(not strange, f"{folder} should hold the files that plan.json lists, see {strange[:1]}.")
    content = {name: _read_listed(folder / name, digest) for name, digest in files.items()}

    def arrays_of(name: str, kinds: Mapping[str, str]) -> Arrays:
        return _arrays(content[name], kinds, folder / name)

    parts = [arrays_of(name, _WORKER | _LEFT) for name in own]
    leaving = [name in part for part in parts for name in _LEFT]
    require(
        all(leaving) or not any(leaving), f"{folder}: only some files list what is left to hosts."
    )
    switch = arrays_of("switch.safetensors", _SWITCH)
    assignment = arrays_of("assignment.safetensors", _ASSIGNMENT)["assignment"]
    return RawPlan(manifest, assignment, switch, parts)


def read_raw_manifest(folder: Path) -> dict[str, Any]:
    """Read plan.json and compare its digest; errors as read_raw_plan."""
    where = folder / "plan.json"
    try:
        manifest: dict[str, Any] = json.loads(read_regular(where))
    except (OSError, ValueError, RecursionError) as error:
        raise PlanCheckError(f"Cannot read {where}: {error}.") from error
    require(
        isinstance(manifest, dict) and manifest.get("format") == "switchgnn-plan",
        f"{where} is not the manifest of a plan.",
    )
    version = manifest.get("version")
    require(version == _VERSION, f"{where} has version {version!r}, which cannot be checked.")
    content = {key: value for key, value in manifest.items() if key != "digest"}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode("ascii")).hexdigest()
    require(digest == manifest.get("digest"), f"{where} was changed: its digest does not agree.")
    return manifest


def _read_listed(path: Path, digest: object) -> bytes:
    try:
        data = read_regular(path)
    except OSError as error:
        raise PlanCheckError(f"Cannot read {path}: {error.strerror}.") from error
    require(
        hashlib.sha256(data).hexdigest() == digest,
        f"{path} was changed: its digest is not that of plan.json.",
    )
    return data


def _arrays(data: bytes, kinds: Mapping[str, str], where: Path) -> Arrays:
    expected = {
        name: ArrayKind((kind,), (2,) if name in _TABLES else (1,), optional=name in _LEFT)
        for name, kind in kinds.items()
    }
    try:
        return read_arrays(data, expected, where=str(where), remedy="plan again")
    except ArraysError as error:
        raise PlanCheckError(str(error)) from error
