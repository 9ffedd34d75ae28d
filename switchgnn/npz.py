# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Archives of arrays (``.npz``), read without running a pickle."""

import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray


class NotArraysError(ValueError):
    """A file is no archive of plain arrays; its reader says what to do."""


def read_npz(file: Path | IO[bytes]) -> dict[str, NDArray[Any]]:
    """Return all arrays of an archive by name.

    Raises:
        OSError: the file cannot be read.
        NotArraysError: it is damaged, something else, or holds Python objects.
    """
    try:
        with np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    # What NumPy and zipfile raise for damaged files; a bare array has no `files`.
    except (ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile) as error:
        raise NotArraysError(str(error)) from error
