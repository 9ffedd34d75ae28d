# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Archives of arrays (``.npz``) from anybody, read within a limit and without a pickle."""

import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from switchgnn.npy import (
    ArrayHeader,
    ArrayKind,
    check_data,
    check_header,
    open_source,
    read_data,
    read_header,
    telling,
)
from switchgnn.zip_archive import (
    NOT_PACKED,
    UnpackLimit,
    check_member,
    check_sizes,
    open_archive,
)

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
