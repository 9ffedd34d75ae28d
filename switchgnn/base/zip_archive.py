# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Zip archives from anybody: what their directory says is checked before anything is unpacked."""

import zipfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from switchgnn.base.arrays import CHUNK, open_source, telling

_ENCRYPTED = 1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@dataclass(frozen=True)
class UnpackLimit:
    """How many bytes an archive may unpack to: the larger of the two.

    Attributes:
        allowance: bytes that any archive may unpack to.
        ratio: and how many times its own size.
    """

    allowance: int
    ratio: int

    def bytes_of(self, size: int) -> int:
        """Return the limit of an archive of `size` bytes."""
        return max(self.allowance, self.ratio * size)


# What this program writes is never packed.
NOT_PACKED = UnpackLimit(allowance=0, ratio=1)
# Deflate makes 1,000 bytes of one at most, and 20 of one in tables of words. So what is large is
# held to the ratio, and tables of zeros and ones, which are packed best, to the allowance.
PACKED = UnpackLimit(allowance=256 << 20, ratio=50)


def open_archive(file: IO[bytes]) -> zipfile.ZipFile:
    """Open an archive whose directory is small.

    Raises:
        ValueError: it is none, or it has a member twice.
    """
    try:
        archive = zipfile.ZipFile(cast("IO[bytes]", _Bounded(file)))
    except zipfile.BadZipFile as error:
        raise ValueError(f"it is not an archive ({error})") from error
    times = Counter(member.filename for member in archive.infolist())
    twice = [name for name, number in times.items() if number > 1]
    if twice:
        raise ValueError(f"it holds {twice[0]!r} twice")
    return archive


def check_member(member: zipfile.ZipInfo) -> None:
    """Refuse a member that needs a password, or that is packed in an uncommon way.

    Raises:
        ValueError: it does, or is.
    """
    if member.flag_bits & _ENCRYPTED:
        raise ValueError("it is encrypted")
    if member.compress_type not in _METHODS:
        raise ValueError(f"it is packed by method {member.compress_type}; only deflate is read")
    if member.compress_type == zipfile.ZIP_STORED and member.compress_size != member.file_size:
        raise ValueError("it is not packed, but said to have two sizes")


def check_sizes(members: Iterable[zipfile.ZipInfo], size: int, limit: UnpackLimit) -> None:
    """Refuse members that would unpack to too much.

    Args:
        members: those that are to be read.
        size: of the whole archive, in bytes.
        limit: on their bytes together.

    Raises:
        ValueError: they would.
    """
    total, most = sum(member.file_size for member in members), limit.bytes_of(size)
    if total > most:
        raise ValueError(
            f"it has {size:,} bytes and would unpack to {total:,}, which is more than {most:,}"
        )


def check_not_packed(path: Path, remedy: str) -> None:
    """Refuse an archive that another reader would unpack: this program wrote it, and never packs.

    Args:
        path: the archive.
        remedy: what to do about one that is damaged or something else.

    Raises:
        ArraysError: the file cannot be read, or is anything else.
    """
    with telling(str(path), remedy), open_source(path) as (file, size):
        members = open_archive(file).infolist()
        for member in members:
            check_member(member)
        check_sizes(members, size, NOT_PACKED)


class _Bounded:
    """A file that nobody reads much of at once: so a directory cannot be large."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(CHUNK + 1 if size < 0 else min(size, CHUNK + 1))
        if len(data) > CHUNK:
            raise ValueError(f"its directory has more than {CHUNK:,} bytes")
        return data

    def close(self) -> None:
        """Who has opened the file closes it."""
