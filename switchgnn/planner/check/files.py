# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Plan files as the checker reads them: by docs/plans.md, without the reader of plans."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.arrays import ArrayKind, ArraysError, read_npy, read_npz
from switchgnn.base.files import (
    read_regular,
)
from switchgnn.planner.errors import PlannerError

Arrays = dict[str, NDArray[Any]]

_VERSIONS = (2, 3, 4, 5, 6)
# From this one on partial sums name their destinations.
_NAMED = 4
# From this one on destinations may be left to the hosts.
_LEAVING = 6
_SWITCH = {
    "source_vertex": "<u4",
    "source_worker": "<u2",
    "entry_block": "<u2",
    "entry_source": "<u4",
    "entry_hop": "<u2",
    "entry_last": "|b1",
    "entry_slot": "<u4",
    "entry_expected": "<u2",
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
    "send_row": "<i8",
    "receive_indptr": "<i8",
    "receive_vertex": "<u4",
    "receive_row": "<i8",
    "receive_count": "<u2",
    "neighbour_indptr": "<i8",
    "neighbour_vertex": "<u4",
    "neighbour_worker": "<u2",
}
# A plan without these has packets of one row each.
_OPTIONAL = {"entry_count": "<u2", "send_row_indptr": "<i8", "send_destination": "<u4"}
# The rows of a worker that are left to the hosts; nowhere, or in the files of all workers.
_LEFT = {"left_forward": "<i8", "left_backward": "<i8"}
_TABLES = ("entry_slot", "entry_expected")
_REMEDY = "plan again"


class PlanCheckError(PlannerError):
    """A plan that breaks a promise; the message names the first violation."""


@dataclass(frozen=True)
class RawPlan:
    """The content of the files of a plan."""

    manifest: dict[str, Any]  # plan.json
    assignment: NDArray[np.int32]  # [V]
    switch: Arrays  # the arrays of switch.npz; `entry_count` is filled in where it is missing
    # the arrays of each worker; `send_row_indptr` is filled in where it is missing
    workers: list[Arrays]

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
        raise PlanCheckError(f"{folder}/plan.json lacks workers or files") from error
    require(workers == len(files) - 2, f"{folder}/plan.json does not list the files of a plan")
    own = [f"worker-{worker:03d}.npz" for worker in range(workers)]
    expected = {"switch.npz", "assignment.npy", *own}
    require(set(files) == expected, f"{folder}/plan.json does not list the files of a plan")
    present = {path.name for path in folder.iterdir()} - {"plan.json"}
    strange = sorted(present ^ expected)
    require(not strange, f"{folder} should hold the files that plan.json lists, see {strange[:1]}")
    content = {name: _read_listed(folder / name, digest) for name, digest in files.items()}
    switch = _arrays(content["switch.npz"], _SWITCH, folder / "switch.npz")
    parts = [_arrays(content[name], _WORKER, folder / name, _LEFT) for name in own]
    leaving = [name in part for part in parts for name in _LEFT]
    require(
        all(leaving) or not any(leaving), f"{folder}: only some files say what is left to the hosts"
    )
    require(
        not any(leaving) or manifest["version"] >= _LEAVING,
        f"{folder} leaves destinations to the hosts, which its version does not know",
    )
    counted = ["entry_count" in switch, *("send_row_indptr" in part for part in parts)]
    require(all(counted) or not any(counted), f"{folder}: only some files say what packets carry")
    switch.setdefault("entry_count", np.ones(len(switch["entry_block"]), dtype=np.uint16))
    named = manifest["version"] >= _NAMED
    require(
        all(("send_destination" in part) == named for part in parts),
        f"{folder}: a worker does not say for whom its partial sums are",
    )
    for part in parts:
        part.setdefault("send_row_indptr", np.arange(len(part["send_row"]) + 1))
    return RawPlan(manifest, _assignment(content["assignment.npy"], folder), switch, parts)


def read_raw_manifest(folder: Path) -> dict[str, Any]:
    """Read plan.json and compare its digest; errors as read_raw_plan."""
    where = folder / "plan.json"
    try:
        manifest: dict[str, Any] = json.loads(read_regular(where))
    except (OSError, ValueError, RecursionError) as error:
        raise PlanCheckError(f"cannot read {where}: {error}") from error
    require(
        isinstance(manifest, dict) and manifest.get("format") == "switchgnn-plan",
        f"{where} is not the manifest of a plan",
    )
    version = manifest.get("version")
    require(version in _VERSIONS, f"{where} has version {version!r}, which cannot be checked")
    content = {key: value for key, value in manifest.items() if key != "digest"}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode("ascii")).hexdigest()
    require(digest == manifest.get("digest"), f"{where} was changed: its digest does not agree")
    return manifest


def _read_listed(path: Path, digest: object) -> bytes:
    try:
        data = read_regular(path)
    except OSError as error:
        raise PlanCheckError(f"cannot read {path}: {error.strerror}") from error
    require(
        hashlib.sha256(data).hexdigest() == digest,
        f"{path} was changed: its digest is not that of plan.json",
    )
    return data


def _arrays(
    data: bytes, kinds: Mapping[str, str], where: Path, left: Mapping[str, str] | None = None
) -> Arrays:
    expected = {
        name: ArrayKind((kind,), (2,) if name in _TABLES else (1,)) for name, kind in kinds.items()
    }
    expected |= {
        name: ArrayKind((kind,), optional=True)
        for name, kind in _OPTIONAL.items()
        if name.partition("_")[0] in {known.partition("_")[0] for known in kinds}
    }
    for name, kind in (left or {}).items():
        expected[name] = ArrayKind((kind,), optional=True)
    try:
        return read_npz(data, expected, where=str(where), remedy=_REMEDY)
    except ArraysError as error:
        raise PlanCheckError(str(error)) from error


def _assignment(data: bytes, folder: Path) -> NDArray[np.int32]:
    where = str(folder / "assignment.npy")
    try:
        return read_npy(data, ArrayKind(("<i4",)), where=where, remedy=_REMEDY)
    except ArraysError as error:
        raise PlanCheckError(str(error)) from error
