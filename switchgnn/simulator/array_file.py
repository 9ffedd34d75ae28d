# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The arrays of a simulation in one file, as `models/arrays.cc` maps it."""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.full_disk import writing

_MAGIC = b"SGNNSIM1"
_ENTRY = struct.Struct("<40sQQQ")
_ALIGNMENT = 64


def write_array_file(arrays: Mapping[str, NDArray[Any]], path: Path) -> None:
    """Write arrays of one dimension; their item types are known to the models.

    Raises:
        WriteError: the file cannot be written.
    """
    offset = _aligned(len(_MAGIC) + 8 + len(arrays) * _ENTRY.size)
    entries = []
    for name, array in arrays.items():
        entries.append(_ENTRY.pack(name.encode(), array.itemsize, len(array), offset))
        offset = _aligned(offset + array.nbytes)
    with writing(path), path.open("wb") as file:
        file.write(_MAGIC + len(arrays).to_bytes(8, "little") + b"".join(entries))
        for array in arrays.values():
            file.seek(_aligned(file.tell()))
            np.ascontiguousarray(array).tofile(file)
        # A last array without items leaves a hole behind the end.
        file.truncate(max(offset, file.tell()))


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT
