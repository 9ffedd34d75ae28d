# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Files from elsewhere, which may turn out to be pipes or devices that never end."""

import errno
import stat
from pathlib import Path
from typing import BinaryIO


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading, without waiting for anybody to write it.

    Raises:
        OSError: it cannot be opened, or it is no regular file.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return path.open("rb")


def read_regular(path: Path) -> bytes:
    """Return the content of a file; errors as open_regular."""
    with open_regular(path) as file:
        return file.read()
