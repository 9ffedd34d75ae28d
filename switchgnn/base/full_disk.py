# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Error messages of failed writes, and room for them in logs on a full disk."""

import ctypes
import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from switchgnn.base.errors import SwitchGNNError

_FULL = (errno.ENOSPC, errno.EDQUOT)
# A traceback and some warnings of a library.
_LOG_BYTES = 16384
# https://man7.org/linux/man-pages/man2/fallocate.2.html
_FALLOC_FL_KEEP_SIZE = 1


class WriteError(SwitchGNNError):
    """A file could not be written."""


def is_full(error: OSError) -> bool:
    """Return whether a disk or the quota of its user is full."""
    return error.errno in _FULL


def has_room(folder: Path) -> bool:
    """Return whether the disk of a folder has room for another log."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize > _LOG_BYTES and (not disk.f_files or disk.f_favail > 0)


def why_not_written(error: OSError, place: Path) -> str:
    """Return why `place` cannot be written, and for a full disk what to do; no full stop."""
    if error.errno is None:  # NumPy reports short writes without one
        return f"the disk took only a part of it ({error}); {_remedy(place)}"
    reason = error.strerror or str(error)
    return f"{reason}; {_remedy(place)}" if is_full(error) else reason


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Raise WriteError in place of an OSError of the block, which writes `place`."""
    try:
        yield
    except OSError as error:
        raise WriteError(f"Cannot write {place}: {why_not_written(error, place)}.") from error


def keep_room(file: int) -> None:
    """Reserve room in an open log, so that a process can report a disk that fills up."""
    libc = ctypes.CDLL(None, use_errno=True)
    size = ctypes.c_int64(_LOG_BYTES)
    if libc.fallocate64(file, _FALLOC_FL_KEEP_SIZE, ctypes.c_int64(0), size) != 0:
        number = ctypes.get_errno()
        if number in _FULL:
            raise OSError(number, os.strerror(number))


def _remedy(place: Path) -> str:
    # Python uses another folder where the one of TMPDIR is full.
    folders = {Path(os.environ.get("TMPDIR") or "/tmp"), Path(tempfile.gettempdir())}  # noqa: S108
    above = {place.absolute(), *place.absolute().parents}
    if above & {folder.absolute() for folder in folders}:
        return "make room there, or set TMPDIR to a folder on another disk"
    return "make room there, or choose another folder"
