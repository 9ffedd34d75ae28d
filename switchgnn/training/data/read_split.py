# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Reads a split from a file."""

from pathlib import Path

import numpy as np

from switchgnn.planner.graphs.graph import (
    SPLIT_NONE,
    SPLIT_TEST,
    SPLIT_TRAIN,
    SPLIT_VALIDATION,
    Graph,
)
from switchgnn.training.data.read_file import read_lines, read_table
from switchgnn.training.data.split import Split, split_of_codes
from switchgnn.training.data.vertex_rows import check_row_order, rows_of_ids
from switchgnn.training.errors import DatasetError

_CODES = {
    "": SPLIT_NONE,
    "none": SPLIT_NONE,
    "train": SPLIT_TRAIN,
    "validation": SPLIT_VALIDATION,
    "test": SPLIT_TEST,
}


def read_split(path: Path, graph: Graph) -> Split:
    """Read which vertices train, validate and test.

    A .csv has the id, then `train`, `validation`, `test` or `none`; vertices that it does not
    name are in no part. Any other file has one of these words per line, one line per vertex.

    Raises:
        DatasetError: bad content, or vertices that do not fit.
    """
    if path.suffix.lower() == ".csv":
        table = read_table(path)
        words = [""] * graph.vertices
        for row, cells in zip(rows_of_ids(graph, table.ids, path), table.cells, strict=True):
            words[row] = cells[-1].strip()
    else:
        words = read_lines(path)
        check_row_order(graph, len(words), path)
    strange = sorted(set(words) - set(_CODES))
    if strange:
        raise DatasetError(
            f"{path} has {strange[0][:40]!r}; a vertex is in train, validation, test or none"
        )
    return split_of_codes(np.array([_CODES[word] for word in words], dtype=np.int8))
