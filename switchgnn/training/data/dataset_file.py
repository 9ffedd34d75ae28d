# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A data set in one archive of plain arrays, which is fast to read and holds no pickles."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from switchgnn.base.arrays import ArrayKind, ArraysError, read_npz
from switchgnn.base.files import whole_file
from switchgnn.base.full_disk import why_not_written
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.graph import Graph
from switchgnn.training.data.dataset import Dataset
from switchgnn.training.errors import DatasetError

# The arrays and their kinds; labels may be whole numbers, or zeros and ones.
_KINDS: Mapping[str, ArrayKind] = {
    "name": ArrayKind(("U",), (0,)),
    "indptr": ArrayKind(("i",)),
    "indices": ArrayKind(("i",)),
    "features": ArrayKind(("f",), (2,)),
    "labels": ArrayKind(("i", "f", "b"), (1, 2)),
    "train": ArrayKind(("b",)),
    "validation": ArrayKind(("b",)),
    "test": ArrayKind(("b",)),
    "self_loops": ArrayKind(("i",)),
    "classes": ArrayKind(("i",), (0,)),
    "undirected": ArrayKind(("b",), (0,)),
}


def write_dataset(data: Dataset, path: Path) -> None:
    """Write a data set; a reader sees either the whole file or nothing of it.

    Raises:
        DatasetError: the file cannot be written.
    """
    arrays: dict[str, Any] = {
        "name": np.array(data.name),
        "indptr": data.graph.indptr,
        "indices": data.graph.indices,
        "classes": np.array(data.classes),
        "undirected": np.array(data.undirected),
    }
    arrays |= {name: getattr(data, name) for name in _KINDS if name not in arrays}
    try:
        with whole_file(path) as file:
            np.savez(file, **arrays)
    except OSError as error:
        raise DatasetError(f"cannot write {path}: {why_not_written(error, path)}") from error


def read_dataset(path: Path) -> Dataset:
    """Read what write_dataset wrote; nothing in the file is ever unpickled.

    Raises:
        DatasetError: the file is unreadable or damaged.
    """
    try:
        arrays = read_npz(path, _KINDS, remedy="delete it")
    except ArraysError as error:
        raise DatasetError(str(error)) from error
    try:
        graph = Graph(arrays["indptr"], arrays["indices"], str(arrays["name"]))
        return Dataset(
            graph=graph,
            features=arrays["features"],
            labels=arrays["labels"],
            train=arrays["train"],
            validation=arrays["validation"],
            test=arrays["test"],
            classes=int(arrays["classes"]),
            multilabel=arrays["labels"].ndim == 2,
            name=graph.name,
            self_loops=arrays["self_loops"],
            undirected=bool(arrays["undirected"]),
        )
    except (DatasetError, PlannerError, TypeError, ValueError) as error:
        raise DatasetError(f"{path} is damaged, delete it: {error}") from error
