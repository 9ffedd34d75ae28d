# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Disks that are full: the sentence that says so, and room that is kept for last words."""

import ctypes
import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from switchgnn.base.errors import SwitchGNNError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_ONLY_A_PART = "the disk took only a part of it"
# A traceback and some warnings of a library.
_LAST_WORDS_BYTES = 16384
# https://man7.org/linux/man-pages/man2/fallocate.2.html
_FALLOC_FL_KEEP_SIZE = 1


class WriteError(SwitchGNNError):
    """A file could not be written."""


def is_full(error: OSError) -> bool:
    """Tell whether an error says that a disk is full, or the share of its user."""
    return error.errno in _FULL


def speaks_of_full_disk(sentence: str) -> bool:
    """Tell whether a sentence, perhaps of another process, says that a disk is full."""
    return any(words in sentence for words in (*map(os.strerror, _FULL), _ONLY_A_PART))


def why_not_written(error: OSError, place: Path) -> str:
    """Return why something cannot be written, and for a full disk what to do.

    Args:
        error: what happened.
        place: the file or folder.

    Returns:
        Words that go behind "cannot write it: ", without a full stop.
    """
    if error.errno is None:
        # NumPy says how many numbers it has written, and not why those were all.
        return f"{_ONLY_A_PART} ({error}); {_remedy(place)}"
    reason = error.strerror or str(error)
    return f"{reason}; {_remedy(place)}" if is_full(error) else reason


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Say in a sentence what the block could not write.

    Args:
        place: the file or folder.

    Raises:
        WriteError: in place of an ``OSError``.
    """
    try:
        yield
    except OSError as error:
        raise WriteError(f"Cannot write {place}: {why_not_written(error, place)}.") from error


def keep_room(file: int) -> None:
    """Keep room for the first words of a log, which may be those that say that a disk is full.

    A file system that cannot promise room promises none.

    Args:
        file: its descriptor.

    Raises:
        OSError: there is no room left.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    size = ctypes.c_int64(_LAST_WORDS_BYTES)
    if libc.fallocate64(file, _FALLOC_FL_KEEP_SIZE, ctypes.c_int64(0), size) != 0:
        number = ctypes.get_errno()
        if number in _FULL:
            raise OSError(number, os.strerror(number))


def _remedy(place: Path) -> str:
    # Where there is no room, Python takes another folder than the one that TMPDIR says.
    folders = {Path(os.environ.get("TMPDIR") or "/tmp"), Path(tempfile.gettempdir())}  # noqa: S108
    above = {place.absolute(), *place.absolute().parents}
    if above & {folder.absolute() for folder in folders}:
        return "make room there, or set TMPDIR to a folder on another disk"
    return "make room there, or choose another folder"
