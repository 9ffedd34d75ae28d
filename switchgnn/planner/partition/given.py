# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""An assignment that somebody else made, from a file."""

import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.errors import PlannerError


def load_assignment(path: Path | str) -> NDArray[np.int64]:
    """Return the worker of each vertex, in the order of the ids, for `build_plan(assignment=...)`.

    A file `.npy` holds an array of integers; any other file is text with one number per line,
    as METIS writes its partitions; `#` starts a comment. `build_plan` checks that the numbers
    fit the graph.

    Raises:
        PlannerError: the file cannot be read, or holds anything else.
    """
    path = Path(path)
    try:
        if path.suffix == ".npy":
            loaded = np.load(path, allow_pickle=False)
        else:
            # Older versions of NumPy would cut off a fraction, and only warn.
            with warnings.catch_warnings():
                warnings.simplefilter("error", DeprecationWarning)
                loaded = np.loadtxt(path, dtype=np.int64, ndmin=1, comments="#")
    except OSError as error:
        raise PlannerError(f"the assignment {path} cannot be read: {error}") from error
    except (ValueError, EOFError) as error:
        raise PlannerError(
            f"the assignment {path} must hold one whole number per vertex: {error}"
        ) from error
    if (
        not isinstance(loaded, np.ndarray)
        or loaded.ndim != 1
        or not np.issubdtype(loaded.dtype, np.integer)
    ):
        raise PlannerError(f"the assignment {path} must hold one whole number per vertex")
    return loaded.astype(np.int64)
