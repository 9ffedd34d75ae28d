# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Files from elsewhere, which may turn out to be pipes or devices that never end."""

import errno
import io
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading, without waiting for anybody to write it.

    What is looked at is what was opened: another file may take the place of a name at any moment.

    Raises:
        OSError: it cannot be opened, or it is no regular file.
    """
    # A pipe would otherwise be waited for; a terminal would become that of this process.
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return os.fdopen(number, "rb")


def read_regular(path: Path) -> bytes:
    """Return the content of a file; errors as open_regular."""
    with open_regular(path) as file:
        return file.read()


def read_bounded(path: Path, most_bytes: int) -> bytes:
    """Return the content of a file that people write.

    Raises:
        OSError: as open_regular, or it is longer than that.
    """
    with open_regular(path) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {most_bytes >> 10:,} kB", str(path))
    return content


def read_regular_text(path: Path, encoding: str) -> str:
    """Return the text of a file, lines ending in a newline alone.

    Raises:
        OSError: as open_regular.
        UnicodeDecodeError: it is no text in this encoding.
    """
    with io.TextIOWrapper(open_regular(path), encoding=encoding) as file:
        return file.read()
