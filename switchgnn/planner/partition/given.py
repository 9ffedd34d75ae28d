# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""An assignment that somebody else made, from a file."""

import io
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.arrays import ArrayKind, ArraysError, read_npy
from switchgnn.base.files import read_regular_text
from switchgnn.planner.errors import PlannerError

_CONTENT = "one whole number per vertex"


def load_assignment(path: Path | str) -> NDArray[np.int64]:
    """Return the worker of each vertex, in the order of the ids, for `build_plan(assignment=...)`.

    A file `.npy` holds an array of integers; any other file is text with one number per line,
    as METIS writes its partitions; `#` starts a comment. `build_plan` checks that the numbers
    fit the graph.

    Raises:
        PlannerError: the file cannot be read, or holds anything else.
    """
    path = Path(path)
    return _array(path) if path.suffix == ".npy" else _lines(path)


def _array(path: Path) -> NDArray[np.int64]:
    try:
        remedy = f"it must hold {_CONTENT}"
        loaded = read_npy(path, ArrayKind(("i", "u")), remedy=remedy)
    except ArraysError as error:
        raise PlannerError(f"the assignment cannot be read: {error}") from error
    return loaded.astype(np.int64)


def _lines(path: Path) -> NDArray[np.int64]:
    try:
        text = io.StringIO(read_regular_text(path, "utf-8"))
        # Older versions of NumPy would cut off a fraction, and only warn.
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)
            loaded = np.loadtxt(text, dtype=np.int64, ndmin=1, comments="#")
    except OSError as error:
        raise PlannerError(f"the assignment {path} cannot be read: {error}") from error
    except ValueError as error:
        raise PlannerError(f"the assignment {path} must hold {_CONTENT}: {error}") from error
    if loaded.ndim != 1:
        raise PlannerError(f"the assignment {path} must hold {_CONTENT}")
    return loaded.astype(np.int64, copy=False)
