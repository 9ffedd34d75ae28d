# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Partitions on disk: one archive per worker, and what they share in partitions.json."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.arrays import ArrayKind, ArraysError, read_npz
from switchgnn.base.files import read_bounded, replacing
from switchgnn.base.full_disk import why_not_written
from switchgnn.base.records import RecordError, parse_json
from switchgnn.training.data.dataset import Dataset
from switchgnn.training.errors import DatasetError
from switchgnn.training.partition import Partition, partition_dataset

SHARED_FILE = "partitions.json"
FORMAT, VERSION = "switchgnn-partitions", 1
_MOST_BYTES = 1 << 20

# What each array of a worker's file has to be, little-endian.
ARRAYS: Mapping[str, ArrayKind] = {
    "vertices": ArrayKind(("<i8",)),
    "edges": ArrayKind(("<i8",), (2,)),
    "self_loop": ArrayKind(("|b1",)),
    "in_degree": ArrayKind(("<i8",)),
    "out_degree": ArrayKind(("<i8",)),
    "features": ArrayKind(("<f4",), (2,)),
    "labels": ArrayKind(("<i8", "<f4", "|b1"), (1, 2)),
    "train": ArrayKind(("|b1",)),
    "validation": ArrayKind(("|b1",)),
    "test": ArrayKind(("|b1",)),
}
# What the workers share, and its type in JSON.
SHARED: Mapping[str, type] = {
    "workers": int,
    "name": str,
    "classes": int,
    "multilabel": bool,
    "undirected": bool,
    "total_vertices": int,
    "total_train": int,
    "total_validation": int,
    "total_test": int,
}


def partition_file(worker: int) -> str:
    """Return the file name of a worker's part."""
    return f"partition-{worker:03d}.npz"


def write_partitions(data: Dataset, assignment: NDArray[np.integer], folder: str | Path) -> None:
    """Write the part of each worker; a reader sees either all of them or none.

    Older partitions in `folder` are replaced as a whole.

    Args:
        data: the data set, with V vertices.
        assignment: integers[V], the worker of each vertex.
        folder: new, empty, or one that this function wrote.

    Raises:
        DatasetError: `folder` holds something else, or cannot be written.
        PlannerError: an assignment that does not fit; see partition_dataset.
    """
    target = Path(folder).resolve()
    try:
        _check_target(target)
        with replacing(target) as new:
            for part in partition_dataset(data, assignment):
                _write(part, new)
    except OSError as error:
        raise DatasetError(
            f"cannot write partitions {folder}: {why_not_written(error, target)}"
        ) from error


def read_partition(folder: str | Path, worker: int) -> Partition:
    """Read one worker's part, large arrays when they are used; other workers' are not touched.

    Raises:
        DatasetError: no partitions, no such worker, a missing or damaged file, or sizes and values
            that do not belong together.
    """
    shared = _read_shared(Path(folder) / SHARED_FILE)
    if not 0 <= worker < shared["workers"]:
        raise DatasetError(
            f"partitions {folder} are for the workers 0 to {shared['workers'] - 1}, "
            f"but not {worker}"
        )
    path = Path(folder) / partition_file(worker)
    try:
        arrays: dict[str, Any] = read_npz(
            path, ARRAYS, remedy="write the partitions again", mapped=True
        )
    except ArraysError as error:
        raise DatasetError(str(error)) from error
    return Partition(worker=worker, **arrays, **shared)


def _check_target(target: Path) -> None:
    """Refuse a folder that is not one of partitions, or that holds other files as well."""
    if not target.exists():
        return
    if not target.is_dir():
        raise DatasetError(f"{target} is a file; give the name of a folder for the partitions")
    for path in sorted(target.iterdir()):
        if path.name != SHARED_FILE and not _is_partition_file(path.name):
            raise DatasetError(
                f"{target} holds {path.name}, which is not part of partitions, so it is not "
                "overwritten; choose another name"
            )


def _is_partition_file(name: str) -> bool:
    digits = name.removeprefix("partition-").removesuffix(".npz")
    return digits.isdecimal() and name == partition_file(int(digits))


def _write(part: Partition, folder: Path) -> None:
    arrays: dict[str, Any] = {name: _little_endian(getattr(part, name)) for name in ARRAYS}
    np.savez(folder / partition_file(part.worker), **arrays)
    shared = {"format": FORMAT, "version": VERSION} | {name: getattr(part, name) for name in SHARED}
    (folder / SHARED_FILE).write_text(json.dumps(shared, indent=1) + "\n", encoding="utf-8")


def _little_endian(array: NDArray[np.generic]) -> NDArray[np.generic]:
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def _read_shared(path: Path) -> dict[str, Any]:
    try:
        shared = parse_json(read_bounded(path, _MOST_BYTES))
    except FileNotFoundError:
        raise DatasetError(f"{path.parent} holds no partitions: it has no {SHARED_FILE}") from None
    except OSError as error:
        raise DatasetError(f"cannot read {path}: {error.strerror}") from error
    except RecordError as error:
        raise DatasetError(f"{path} is damaged; write the partitions again") from error
    if not isinstance(shared, dict) or shared.get("format") != FORMAT:
        raise DatasetError(f"{path} does not describe partitions; write them again")
    if shared.get("version") != VERSION:
        raise DatasetError(f"{path} has another version than {VERSION}; write the partitions again")
    if any(type(shared.get(name)) is not kind for name, kind in SHARED.items()):
        raise DatasetError(f"{path} is damaged; write the partitions again")
    return {name: shared[name] for name in SHARED}
