"""Arrays in files: safetensors for our own files, ``.npy`` and ``.npz`` for those of users.

NumPy allocates what a header claims, so headers are compared with the file's size first. It reads
no pickles. Safetensors (https://github.com/huggingface/safetensors) checks all sizes itself.
"""

import io
import math
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from switchgnn.base.array_types import Integers
from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.files import PACKED, UnpackLimit, open_unpacked, read_regular

_ENCRYPTED = 1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_HEADER_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_WORDS = {
    "b": "booleans",
    "i": "integers",
    "u": "integers",
    "f": "floats",
    "c": "complex numbers",
    "S": "strings",
    "U": "strings",
}


class ArraysError(SwitchGNNError):
    """A file of arrays that cannot be read, is damaged, or holds other arrays than expected."""


@dataclass(frozen=True)
class ArrayKind:
    """What an array in a file has to be.

    Sizes are letters, which have the same value in all arrays of a file, or numbers.
    """

    types: tuple[str, ...]  # dtypes of NumPy (`<i8`) or kinds of them (`i`), any of which will do
    dims: tuple[int, ...] = (1,)  # the permitted numbers of dimensions
    optional: bool = False  # whether the array may be missing
    # Checked by `read_arrays` and `check_arrays`; "": anything.
    shape: str = ""  # sizes, such as `K,8`, `S*F` or `Q+1`
    cuts: str = ""  # the numbers rise from 0 to this size
    below: str = ""  # the numbers are from 0, and below this size
    ascending: bool = False  # strictly

    def fits(self, dtype: np.dtype[Any], dims: int) -> bool:
        """Return whether an array may have this dtype and number of dimensions."""
        return dims in self.dims and (dtype.str in self.types or dtype.kind in self.types)

    def __str__(self) -> str:
        dims = " or ".join(f"{number}-D" for number in self.dims)
        types = " or ".join(dict.fromkeys(_WORDS.get(each, each) for each in self.types))
        return f"a {dims} array of {types}"


def pack_arrays(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the content of a safetensors file, the same for the same arrays."""
    return safetensors.numpy.save({name: np.asarray(arrays[name], order="C") for name in arrays})


def read_arrays(
    source: Path | bytes,
    kinds: Mapping[str, ArrayKind],
    *,
    where: str = "",
    remedy: str,
    sizes: Mapping[str, int] | None = None,
) -> dict[str, NDArray[Any]]:
    """Read the arrays of a safetensors file, by name, in the order of `kinds`, which describe them.

    `source`: a file, or its content. `sizes`: those that are known before. For error messages:
    `where` names the content, `remedy` says what to do about a damaged file.

    Raises:
        ArraysError: the file cannot be read, is damaged, lacks an array, or has further ones.
    """
    with _refusing(source, where, remedy):
        data = source if isinstance(source, bytes) else read_regular(source)
        arrays = safetensors.numpy.load(data)
        found = {name: arrays.pop(name) for name in kinds if name in arrays}
        missing = [name for name in kinds if name not in found and not kinds[name].optional]
        if missing:
            raise ValueError(f"it has no array {missing[0]}")
        if arrays:
            raise ValueError(f"it holds {next(iter(arrays))!r}, which does not belong there")
        for name, array in found.items():
            _check(array.dtype, array.shape, kinds[name], len(data), f"array {name}: ")
            _check_booleans(array, f"array {name}: ")
        check_arrays(found, kinds, sizes or {})
        return found


def check_arrays(
    arrays: Mapping[str, NDArray[Any]], kinds: Mapping[str, ArrayKind], sizes: Mapping[str, int]
) -> None:
    """Raise ValueError for the first array that is not what its kind says.

    `sizes`: those that are known before; shapes define the others.
    """
    sizes = dict(sizes)
    for name, array in arrays.items():
        _check_kind(array.dtype, array.shape, kinds[name], f"array {name}: ")
    for name, array in arrays.items():
        pairs = zip(kinds[name].shape.split(","), array.shape, strict=False)
        shape = [_size(formula, sizes, length) for formula, length in pairs if formula]
        if shape != list(array.shape[: len(shape)]):
            raise ValueError(f"array {name}: it has the shape {list(array.shape)}, not {shape}")
    for name, array in arrays.items():
        kind = kinds[name]
        if kind.cuts:
            end = _size(kind.cuts, sizes, int(array[-1]) if len(array) else 0)
            if not are_offsets(array, end):
                raise ValueError(f"array {name}: it does not rise from 0 to {end}")
        if kind.ascending and np.any(array[1:] <= array[:-1]):
            raise ValueError(f"array {name}: it is not ascending")
        if kind.below and array.size:
            last = _size(kind.below, sizes) - 1
            if int(array.max()) > last or (array.dtype.kind == "i" and array.min() < 0):
                raise ValueError(f"array {name}: it has numbers outside 0..{last}")


def _size(formula: str, sizes: dict[str, int], found: int = 0) -> int:
    """Return the value of a formula; a size that is not known yet makes it `found`."""
    product, _, more = formula.partition("+")
    factors, plus = product.split("*"), int(more or 0)
    if not product.isdecimal() and len(factors) == 1:
        sizes.setdefault(product, found - plus)
    return math.prod(int(it) if it.isdecimal() else sizes[it] for it in factors) + plus


def are_offsets(indptr: Integers, end: int) -> bool:
    """Return whether an untrusted indptr rises from 0 to `end`; differences may overflow."""
    if len(indptr) == 0 or indptr[0] != 0 or indptr[-1] != end:
        return False
    return not np.any(indptr[1:] < indptr[:-1])


def read_npy(
    source: Path | bytes, kind: ArrayKind, *, where: str = "", remedy: str
) -> NDArray[Any]:
    """Read one array, which takes no more memory than its file, or what gzip has packed in it.

    `source`, `where`, `remedy` and errors: see `read_arrays`.
    """
    with _refusing(source, where, remedy), _opened(source, PACKED) as (file, size):
        return _load(file, size, kind)


def read_npz(
    source: Path | bytes,
    kinds: Mapping[str, ArrayKind],
    *,
    where: str = "",
    remedy: str,
    limit: UnpackLimit,
    others: str = "",
    ignored: list[str] | None = None,
) -> dict[str, NDArray[Any]]:
    """Read the arrays of an archive whose directory keeps to a limit, as `read_arrays` does.

    `limit`: on the bytes of all arrays that are read. `others`: a pattern of the names of further
    arrays that are ignored, and added to the list `ignored`; others are refused.
    """
    with _refusing(source, where, remedy), _opened(source, limit) as (file, _):
        # Of the packed file: what is packed twice gets no second allowance.
        size = len(source) if isinstance(source, bytes) else source.stat().st_size
        try:
            archive = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            raise ValueError(f"it is not an archive ({error})") from error
        members = _members(archive, kinds, others=others)
        total, most = sum(member.file_size for member in members.values()), limit.bytes_of(size)
        if total > most:
            raise ValueError(
                f"it has {size:,} bytes and would unpack to {total:,}, which is more than {most:,}"
            )
        found = {}
        for name, member in members.items():
            try:
                with archive.open(member) as stream:
                    found[name] = _load(stream, member.file_size, kinds[name])
            except (OSError, MemoryError):
                raise
            except Exception as error:  # zipfile and zlib raise many kinds on damaged archives
                raise ValueError(f"array {name}: {error or type(error).__name__}") from error
        if ignored is not None:
            names = [name.removesuffix(".npy") for name in archive.namelist()]
            ignored += [name for name in names if name not in found]
        return found


def _members(
    archive: zipfile.ZipFile, kinds: Mapping[str, ArrayKind], *, others: str
) -> dict[str, zipfile.ZipInfo]:
    entries = {member.filename: member for member in archive.infolist()}
    found = {}
    for name, kind in kinds.items():
        member = entries.pop(f"{name}.npy", None)
        if member is not None:
            found[name] = member
        elif not kind.optional:
            raise ValueError(f"it has no array {name}")
    for name in entries:
        if not re.fullmatch(others, name, re.DOTALL):
            raise ValueError(f"it holds {name!r}, which does not belong there")
    for name, member in found.items():
        if member.flag_bits & _ENCRYPTED or member.compress_type not in _METHODS:
            raise ValueError(f"array {name}: it is encrypted, or not compressed by deflate")
    return found


def _load(file: IO[bytes], size: int, kind: ArrayKind) -> NDArray[Any]:
    shape, dtype = _read_header(file)
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are refused: reading them could run code")
    held = size - file.tell()
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != held:
        raise ValueError(f"its shape {shape} of {dtype.str} does not fit {held:,} bytes of data")
    _check(dtype, shape, kind, size)
    file.seek(0)
    array: NDArray[Any] = np.load(file, allow_pickle=False)
    _check_booleans(array)
    return array


def _check(
    dtype: np.dtype[Any], shape: tuple[int, ...], kind: ArrayKind, size: int, whose: str = ""
) -> None:
    _check_kind(dtype, shape, kind, whose)
    # An array without elements can have any length in its other dimensions.
    if max(shape, default=0) > size:
        raise ValueError(f"{whose}it has no elements, but the shape {shape}")


def _check_kind(dtype: np.dtype[Any], shape: tuple[int, ...], kind: ArrayKind, whose: str) -> None:
    if not kind.fits(dtype, len(shape)):
        raise ValueError(f"{whose}it is {dtype.str}{list(shape)}, not {kind}")


def _check_booleans(array: NDArray[Any], whose: str = "") -> None:
    if array.dtype == np.bool_ and array.view(np.uint8).max(initial=0) > 1:
        raise ValueError(f"{whose}it has booleans that are neither 0 nor 1")


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    try:
        version = np.lib.format.read_magic(file)
        shape, _, dtype = _HEADER_READERS[version](file)
    except KeyError as error:
        raise ValueError("it has an unknown version of NumPy's format") from error
    except OSError:
        raise
    except Exception as error:  # NumPy parses the header as Python, which raises many kinds
        raise ValueError(f"it is not an array of NumPy ({error})") from error
    return shape, dtype


@contextmanager
def _refusing(source: Path | bytes, where: str, remedy: str) -> Iterator[None]:
    where = str(source) if isinstance(source, Path) else where
    try:
        yield
    except OSError as error:
        raise ArraysError(f"Cannot read {where}: {error.strerror or error}.") from error
    except MemoryError as error:
        raise ArraysError(f"The arrays of {where} do not fit into memory.") from error
    except Exception as error:
        problem = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise ArraysError(f"{where} is refused: {problem}; {remedy}.") from error


@contextmanager
def _opened(source: Path | bytes, limit: UnpackLimit) -> Iterator[tuple[IO[bytes], int]]:
    with io.BytesIO(source) if isinstance(source, bytes) else open_unpacked(source, limit) as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        yield file, size
