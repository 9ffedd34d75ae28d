# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Archives of arrays (``.npz``) from anybody, read within a limit and without a pickle."""

import struct
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.arrays import (
    CHUNK,
    ArrayHeader,
    ArrayKind,
    check_data,
    check_header,
    open_source,
    read_data,
    read_header,
    telling,
)

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


_ENDING = ".npy"


# The bytes from which on an array is mapped.
_LARGE = 1 << 20


# The end of a local header: the bytes of the name, and of what follows it (APPNOTE.TXT, 4.3.7).
_LOCAL_HEADER = struct.Struct("<26xHH")


def read_npz(
    source: Path | bytes,
    kinds: Mapping[str, ArrayKind],
    *,
    where: str = "",
    remedy: str,
    limit: UnpackLimit = NOT_PACKED,
    others: bool = False,
    mapped: bool = False,
) -> dict[str, NDArray[Any]]:
    """Read the arrays of an archive, all of whose claims are checked before one is unpacked.

    Args:
        source: a file, or its content.
        kinds: what each array has to be, by its name.
        where: what error messages call a content.
        remedy: what to do about a file that is damaged or something else.
        limit: on the bytes of all arrays that are read.
        others: whether it may hold more, which is not read.
        mapped: whether large arrays of a file that are not packed are mapped into memory, in place
            of read: what is never looked at costs none, and their checksums are not compared.

    Returns:
        The arrays that are there, by name, in the order of `kinds`; they may be written to, and
        the file stays as it is.

    Raises:
        ArraysError: the file cannot be read, is damaged or something else, lacks an array, has
            too many, or would unpack to more than it may.
    """
    where = str(source) if isinstance(source, Path) else where
    with (
        telling(where, remedy),
        open_source(source) as (file, size),
        open_archive(file) as archive,
        ExitStack() as stack,
    ):
        members = _wanted(archive, kinds, others=others)
        check_sizes(members.values(), size, limit)
        # All headers come before the first array.
        opened = []
        for name, member in members.items():
            with _named(name):
                # One byte more, so that it shows when there is more than the directory says.
                promised, member.file_size = member.file_size, member.file_size + 1
                stream = stack.enter_context(archive.open(member))
                header = read_header(stream)
                check_header(header, kinds[name], promised)
                opened.append((name, member, stream, header))
        found = {}
        for name, member, stream, header in opened:
            with _named(name):
                packed = member.compress_type != zipfile.ZIP_STORED
                if mapped and isinstance(source, Path) and header.size >= _LARGE and not packed:
                    found[name] = _map(file, member, header)
                    continue
                found[name] = read_data(stream, header)
                if stream.read(1):
                    raise ValueError("it unpacks to more than the archive's directory says")
        return found


def _wanted(
    archive: zipfile.ZipFile, kinds: Mapping[str, ArrayKind], *, others: bool
) -> dict[str, zipfile.ZipInfo]:
    """Return the members to read by the names of their arrays; refuse what is strange."""
    by_name = {member.filename: member for member in archive.infolist()}
    wanted = {name: by_name.pop(name + _ENDING, None) for name in kinds}
    missing = [name for name in kinds if wanted[name] is None and not kinds[name].optional]
    if missing:
        raise ValueError(f"it has no array {missing[0]}")
    if by_name and not others:
        raise ValueError(f"it holds {next(iter(by_name))!r}, which does not belong there")
    found = {name: member for name, member in wanted.items() if member is not None}
    for name, member in found.items():
        with _named(name):
            check_member(member)
    return found


def _map(file: IO[bytes], member: zipfile.ZipInfo, header: ArrayHeader) -> NDArray[Any]:
    """Return the array of a member, in the pages of its file."""
    file.seek(member.header_offset)
    local = file.read(_LOCAL_HEADER.size)
    start = member.header_offset + _LOCAL_HEADER.size + sum(_LOCAL_HEADER.unpack(local))
    order: Literal["F", "C"] = "F" if header.fortran else "C"
    array = np.memmap(file, header.dtype, "c", start + header.start, header.shape, order)
    check_data(array.reshape(-1, order=order).view(np.ndarray))
    return array.view(np.ndarray)


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Say which array an error is about."""
    try:
        yield
    except (OSError, MemoryError):
        raise
    except Exception as error:
        # A damaged or hostile archive can provoke any error in zipfile and zlib.
        raise ValueError(f"array {name}: {error or type(error).__name__}") from error
