# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the data out of a pickle without running any of it.

A pickle may name any function for the reader to call. Here the names that the Planetoid files
use stand for harmless classes of this module, and every other name is refused. Not even
NumPy's own reconstruction code runs.
"""

import io
import math
import pickle
import pickletools
from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.files import read_regular
from switchgnn.planner.errors import PlannerError

_NUMBER_KINDS = "biuf"
_REMEMBERING = ("PUT", "BINPUT", "LONG_BINPUT")


class _RefusedError(Exception):
    """What a pickle has or wants that is not admitted."""


class InertType:
    """Stands for numpy.dtype; accepts numbers only."""

    def __init__(self, code: object = None, *_: object) -> None:
        self.code = str(code)
        self.order = "<"

    def __setstate__(self, state: tuple[object, ...]) -> None:
        self.order = ">" if state[1] == ">" else "<"

    def number(self) -> np.dtype[np.generic]:
        """Return the NumPy type; raise _RefusedError if it is not one of numbers."""
        kind, size = self.code[:1], self.code[1:]
        if kind not in _NUMBER_KINDS or size not in ("1", "2", "4", "8"):
            raise _RefusedError(f"it has an array of type {self.code!r}")
        return np.dtype(f"{self.order}{self.code}")


class InertArray:
    """Stands for numpy.ndarray."""

    def __init__(self, *_: object) -> None:
        self.array: NDArray[np.generic] = np.empty(0)

    def __setstate__(self, state: tuple[object, ...]) -> None:
        _, shape, dtype, fortran, raw = state
        if not (isinstance(shape, tuple) and all(isinstance(n, int) for n in shape)):
            raise _RefusedError("it has an array without a shape")
        if not isinstance(dtype, InertType):
            raise _RefusedError("it has an array without a type")
        data = raw.encode("latin1") if isinstance(raw, str) else raw
        if not isinstance(data, bytes):
            raise _RefusedError("it has an array of objects")
        number = dtype.number()
        # An array without elements could have any length in its other dimensions.
        if any(not 0 <= n <= len(data) for n in shape) or math.prod(shape) * number.itemsize != len(
            data
        ):
            raise _RefusedError("it has an array whose shape does not fit its data")
        flat = np.frombuffer(data, dtype=number)
        self.array = flat.reshape(shape, order="F" if fortran else "C")


class InertMatrix:
    """Stands for scipy.sparse.csr_matrix; `state` holds its attributes."""

    def __init__(self, *_: object) -> None:
        self.state: dict[str, object] = {}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.state = dict(state)


def _reconstruct_array(*_: object) -> InertArray:
    return InertArray()


def _reconstruct_object(cls: type, *_: object) -> InertMatrix:
    if cls is not InertMatrix:
        raise _RefusedError("it has an object that is not a sparse matrix")
    return InertMatrix()


def _encode(text: str, encoding: str = "latin1") -> bytes:
    if encoding != "latin1":
        raise _RefusedError(f"it has text in the encoding {encoding!r}")
    return text.encode("latin1")


_ADMITTED: dict[tuple[str, str], object] = {
    ("numpy", "ndarray"): InertArray,
    ("numpy", "dtype"): InertType,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct_array,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct_array,
    ("scipy.sparse.csr", "csr_matrix"): InertMatrix,
    ("scipy.sparse._csr", "csr_matrix"): InertMatrix,
    ("copy_reg", "_reconstructor"): _reconstruct_object,
    ("copyreg", "_reconstructor"): _reconstruct_object,
    ("_codecs", "encode"): _encode,
    ("collections", "defaultdict"): defaultdict,
    **{
        (module, plain.__name__): plain
        for module in ("__builtin__", "builtins")
        for plain in (list, int, object)
    },
}


class InertUnpickler(pickle.Unpickler):
    """An unpickler that knows the names above and refuses all others."""

    def find_class(self, module_name: str, global_name: str, /) -> object:
        """Return the stand-in for a name; raise _RefusedError if there is none."""
        try:
            return _ADMITTED[module_name, global_name]
        except KeyError:
            raise _RefusedError(f"it asks for {module_name}.{global_name}") from None


def _check_numbers(data: bytes) -> None:
    """Refuse a number of a remembered object that no writer has come to.

    Python's reader makes room for all numbers below: a file of ten bytes could take 32 GiB.
    """
    for operation, number, _ in pickletools.genops(data):
        if operation.name in _REMEMBERING and not 0 <= int(number or 0) < len(data):
            raise _RefusedError(f"it remembers an object as number {number:,}")


def read_inert_pickle(path: Path) -> object:
    """Read a pickle of plain numbers, lists, dictionaries, arrays and CSR matrices.

    Arrays come back as InertArray, matrices as InertMatrix.

    Raises:
        PlannerError: missing file, or a pickle that holds or asks for anything else.
    """
    try:
        data = read_regular(path)
    except OSError as error:
        raise PlannerError(f"cannot read {path}: {error.strerror}") from error
    try:
        _check_numbers(data)
        return InertUnpickler(io.BytesIO(data), encoding="latin1").load()
    except _RefusedError as error:
        raise PlannerError(
            f"{path} is refused: a Planetoid file holds numbers, lists and arrays only, but {error}"
        ) from error
    except Exception as error:
        # A damaged or hostile file can provoke any error in the unpickler.
        raise PlannerError(
            f"{path} is refused: it is not a pickle of numbers, lists and arrays"
        ) from error
