# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays in NumPy's format (``.npy``), checked before there is room made for them.

NumPy's own reader believes what a file says about itself. This one compares it with what the
caller expects and with the bytes that are there.
"""

import io
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.files import open_regular

# How much is read at once.
CHUNK = 1 << 20
_MAGIC = b"\x93NUMPY"
# NumPy's headers of numbers have 118 bytes; only records need more.
_MOST_HEADER = 1024
_LAST_LETTER, _SURROGATES = 0x10FFFF, 0xD800 >> 11
# What error messages call kinds of types, and numbers of dimensions.
_WORDS = {
    "b": "truth values",
    "i": "whole numbers",
    "u": "whole numbers",
    "f": "fractions",
    "c": "complex numbers",
    "S": "text",
    "U": "text",
}
_FORMS = {0: "a single value", 1: "a row", 2: "a table", 3: "a row of tables"}
# Of each version: the bytes of the header's length, and NumPy's parser.
_PARSERS = {
    b"\x01\x00": (2, np.lib.format.read_array_header_1_0),
    b"\x02\x00": (4, np.lib.format.read_array_header_2_0),
}


class ArraysError(SwitchGNNError):
    """A file of arrays that is damaged, hostile or of another kind."""


@dataclass(frozen=True)
class ArrayKind:
    """What an array in a file has to be.

    Attributes:
        types: its type may be any of these: whole types of NumPy (`<i8`), or kinds of them (`i`).
        dims: how many dimensions it may have.
        optional: whether it may be missing.
    """

    types: tuple[str, ...]
    dims: tuple[int, ...] = (1,)
    optional: bool = False

    def fits(self, dtype: np.dtype[Any], dims: int) -> bool:
        """Return whether an array may have this type and that number of dimensions."""
        return dims in self.dims and (dtype.str in self.types or dtype.kind in self.types)

    def __str__(self) -> str:
        forms = " or ".join(_FORMS[dims] for dims in self.dims)
        return f"{forms} of {' or '.join(dict.fromkeys(_WORDS.get(t, t) for t in self.types))}"


@dataclass(frozen=True)
class ArrayHeader:
    """What a file says about its array.

    Attributes:
        dtype: a type without Python objects.
        shape: not negative.
        fortran: whether the first index runs fastest.
        start: the bytes before the data.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran: bool
    start: int

    @property
    def size(self) -> int:
        """The bytes of the data."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_npy(
    source: Path | bytes, kind: ArrayKind, *, where: str = "", remedy: str
) -> NDArray[Any]:
    """Read an array; it is as large as its file, or refused.

    Args:
        source: a file, or its content.
        kind: what the array has to be.
        where: what error messages call a content.
        remedy: what to do about a file that is damaged or something else.

    Returns:
        The array, which may be written to.

    Raises:
        ArraysError: the file cannot be read, or holds anything else.
    """
    where = str(source) if isinstance(source, Path) else where
    with telling(where, remedy), open_source(source) as (file, size):
        header = read_header(file)
        check_header(header, kind, size)
        return read_data(file, header)


@contextmanager
def telling(where: str, remedy: str) -> Iterator[None]:
    """Raise ArraysError for whatever a file has provoked.

    Args:
        where: what to call the file.
        remedy: what to do about a file that is damaged or something else.
    """
    try:
        yield
    except OSError as error:
        raise ArraysError(f"cannot read {where}: {error.strerror or error}") from error
    except MemoryError as error:
        raise ArraysError(f"the arrays of {where} do not fit into memory") from error
    # A damaged or hostile file can provoke any error in zipfile, zlib and NumPy.
    except Exception as error:
        problem = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise ArraysError(f"{where} is refused: {problem}; {remedy}") from error


@contextmanager
def open_source(source: Path | bytes) -> Iterator[tuple[IO[bytes], int]]:
    """Open a file or its content; yield it and its size in bytes.

    Raises:
        OSError: the file cannot be read.
    """
    with io.BytesIO(source) if isinstance(source, bytes) else open_regular(source) as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        yield file, size


def read_header(file: IO[bytes]) -> ArrayHeader:
    """Read the header of an array.

    Raises:
        ValueError: it is none, or one of Python objects.
    """
    magic = file.read(len(_MAGIC))
    if magic != _MAGIC:
        is_archive = magic.startswith(b"PK")
        raise ValueError("it is an archive" if is_archive else "it is not an array of NumPy")
    version = _exactly(file, 2)
    if version not in _PARSERS:
        raise ValueError(f"it has version {version[0]}.{version[1]} of NumPy's format")
    digits, parse = _PARSERS[version]
    prefix = _exactly(file, digits)
    length = int.from_bytes(prefix, "little")
    if length > _MOST_HEADER:
        raise ValueError(f"its header has {length:,} bytes, more than {_MOST_HEADER:,}")
    text = io.BytesIO(prefix + _exactly(file, length))
    with warnings.catch_warnings():
        # Those of Python's parser, about a strange header.
        warnings.simplefilter("ignore")
        try:
            shape, fortran, dtype = parse(text)
        except Exception as error:
            # A strange header can provoke any error in Python's parser and tokenizer.
            raise ValueError("its header cannot be understood") from error
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are refused: reading them could run code")
    if any(type(length) is not int or length < 0 for length in shape):
        raise ValueError(f"its shape is {shape}")
    if not dtype.itemsize:
        raise ValueError(f"it has items of no size ({dtype.str})")
    return ArrayHeader(dtype, shape, fortran, len(_MAGIC) + 2 + digits + length)


def check_header(header: ArrayHeader, kind: ArrayKind, size: int) -> None:
    """Compare a header with what is expected, and with its file.

    Args:
        header: of an array.
        kind: what the array has to be.
        size: of the whole file, in bytes.

    Raises:
        ValueError: they differ.
    """
    if not kind.fits(header.dtype, len(header.shape)):
        raise ValueError(f"it is {header.dtype.str}{list(header.shape)}, not {kind}")
    if header.start + header.size != size:
        raise ValueError(
            f"its header promises {header.size:,} bytes of data, but it has {size - header.start:,}"
        )
    # An array without elements can have any length in its other dimensions.
    if any(length > size for length in header.shape):
        raise ValueError(f"it has no elements, but a shape of {header.shape}")


def read_data(file: IO[bytes], header: ArrayHeader) -> NDArray[Any]:
    """Read the data that follows a header.

    Raises:
        ValueError: there is less, or it is not of that type.
    """
    flat: NDArray[Any] = np.empty(math.prod(header.shape), dtype=header.dtype)
    room = flat.view(np.uint8).data
    for start in range(0, len(room), CHUNK):
        part = room[start : start + CHUNK]
        part[:] = _exactly(file, len(part))
    check_data(flat)
    return flat.reshape(header.shape, order="F" if header.fortran else "C")


def check_data(flat: NDArray[Any]) -> None:
    """Refuse what is no truth value, and what is no text.

    Args:
        flat: the data, in one row.

    Raises:
        ValueError: it is none.
    """
    if flat.dtype == np.bool_ and flat.view(np.uint8).max(initial=0) > 1:
        raise ValueError("it has truth values that are neither 0 nor 1")
    if flat.dtype.kind == "U":
        letters = flat.view(np.dtype(np.uint32).newbyteorder(flat.dtype.byteorder))
        # NumPy would make them into a text that Python cannot write.
        no_letters = (letters > _LAST_LETTER) | (letters >> 11 == _SURROGATES)
        if no_letters.any():
            raise ValueError("it has text that is none")


def _exactly(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise ValueError("it ends too early")
    return data
