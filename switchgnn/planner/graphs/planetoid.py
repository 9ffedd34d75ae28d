"""Planetoid data sets (Cora, Citeseer, Pubmed) in their original files."""

import io
import pickle
import pickletools
import re
from collections import defaultdict
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.array_types import Float32s, Int64s
from switchgnn.base.files import read_regular, read_regular_text
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.graphs.array_file import dense_rows
from switchgnn.planner.graphs.graph import SPLIT_TEST, SPLIT_TRAIN, SPLIT_VALIDATION, Graph
from switchgnn.planner.graphs.graph import graph_from_edges as build

_NUMBER_KINDS = "biuf"
_REMEMBERING = ("PUT", "BINPUT", "LONG_BINPUT")


_Number = TypeVar("_Number", np.float32, np.int64)


class _RefusedError(Exception): ...


class InertMatrix:
    """A stand-in for scipy.sparse.csr_matrix, whose attributes have changed names."""

    def __init__(self, *_: object) -> None: ...


def _reconstruct(cls: type, *_: object) -> object:
    return object.__new__(cls)


def _encode(text: str, encoding: str = "latin1") -> bytes:
    if encoding != "latin1":
        raise _RefusedError(f"it has text in the encoding {encoding!r}")
    return text.encode("latin1")


_ADMITTED: dict[tuple[str, str], object] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    **{
        (f"numpy.{it}.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0]
        for it in ("core", "_core")
    },
    **{(f"scipy.sparse.{it}", "csr_matrix"): InertMatrix for it in ("csr", "_csr")},
    **{(it, "_reconstructor"): _reconstruct for it in ("copy_reg", "copyreg")},
    ("_codecs", "encode"): _encode,
    ("collections", "defaultdict"): defaultdict,
    **{
        (module, plain.__name__): plain
        for module in ("__builtin__", "builtins")
        for plain in (list, int, object)
    },
}


class InertUnpickler(pickle.Unpickler):
    """An unpickler that admits only the names above."""

    def find_class(self, module_name: str, global_name: str, /) -> object:
        """Return what a name stands for, or raise _RefusedError."""
        try:
            return _ADMITTED[module_name, global_name]
        except KeyError:
            raise _RefusedError(f"it asks for {module_name}.{global_name}") from None


def _check_numbers(data: bytes) -> None:
    """Refuse large memo numbers: Python allocates all below, 32 GiB for a file of 10 bytes."""
    for operation, number, _ in pickletools.genops(data):
        if operation.name in _REMEMBERING and not 0 <= int(number or 0) < len(data):
            raise _RefusedError(f"it remembers an object as number {number:,}")


def read_inert_pickle(path: Path) -> object:
    """Read numbers, lists, dictionaries, arrays of numbers and CSR matrices (InertMatrix)."""
    try:
        data = read_regular(path)
        _check_numbers(data)
        value: object = InertUnpickler(io.BytesIO(data), encoding="latin1").load()
        if isinstance(value, np.ndarray) and value.dtype.kind not in _NUMBER_KINDS:
            raise _RefusedError(f"it has an array of {value.dtype}")
    except OSError as error:
        raise PlannerError(f"Cannot read {path}: {error.strerror}.") from error
    except _RefusedError as error:
        raise PlannerError(
            f"{path} is refused: Planetoid files hold numbers, lists and arrays only, but {error}."
        ) from error
    except Exception as error:
        # A damaged or hostile file can provoke any error in the unpickler.
        raise PlannerError(
            f"{path} is refused: it is not a pickle of numbers, lists and arrays."
        ) from error
    return value


_PART_FILE = re.compile(r"ind\.(?P<name>.+)\.(graph|x|tx|allx|y|ty|ally|test\.index)")
VALIDATION_VERTICES = 500
# Those of Pubmed, the largest of the three, take 40 MB.
_MOST_FEATURE_BYTES = 1 << 30


def find_planetoid(path: Path) -> tuple[Path, str] | None:
    """Return (folder, name) of a file of a data set, or of FOLDER/NAME; else None."""
    match = _PART_FILE.fullmatch(path.name)
    if match:
        return path.parent, match["name"]
    if (path.parent / f"ind.{path.name}.graph").is_file():
        return path.parent, path.name
    return None


def load_planetoid(folder: Path, name: str) -> Graph:
    """Read `ind.NAME.*`: graph, allx, tx, ally, ty, y, test.index; undirected, with a split.

    The published split: the first len(y) vertices train, the next 500 validate, those of test.index
    test. Vertices missing from test.index (in Citeseer) get zero features and class 0. No code in
    the pickles runs.
    """
    start = f"{folder / 'ind.'}{name}."
    neighbours = read_inert_pickle(Path(f"{start}graph"))
    features, test_features = (_matrix(Path(start + part)) for part in ("allx", "tx"))
    classes, test_classes, train = (_classes(Path(start + part)) for part in ("ally", "ty", "y"))
    ids, known = _test_ids(Path(f"{start}test.index")), len(features)
    fits = (
        len(classes) == known
        and len(test_features) == len(test_classes) == len(ids) == len(np.unique(ids)) > 0
        and ids.min() >= known
        and features.shape[1] == test_features.shape[1]
    )
    if not fits:
        raise PlannerError(
            f"The Planetoid files of {name} in {folder} do not belong together: "
            "allx and ally, and tx, ty and test.index, must have the same number of rows."
        )
    vertices = int(ids.max()) + 1
    _check_room(vertices, features.shape[1], f"ind.{name}.* in {folder}")
    split = np.zeros(vertices, dtype=np.int8)
    split[: min(known, len(train) + VALIDATION_VERTICES)] = SPLIT_VALIDATION
    split[: len(train)] = SPLIT_TRAIN
    split[ids] = SPLIT_TEST
    return build(
        *_edges(Path(f"{start}graph"), neighbours, vertices),
        name=name,
        vertices=vertices,
        directed=False,
        features=_by_vertex(features, test_features, ids),
        labels=_by_vertex(classes, test_classes, ids),
        split=split,
    )


def _by_vertex(known: NDArray[_Number], tests: NDArray[_Number], ids: Int64s) -> NDArray[_Number]:
    """Return the rows of all vertices: those of `known` first, then row i of `tests` at ids[i]."""
    rows = np.zeros((int(ids.max()) + 1, *known.shape[1:]), dtype=known.dtype)
    rows[: len(known)], rows[ids] = known, tests
    return rows


def _edges(path: Path, neighbours: object, vertices: int) -> tuple[Int64s, Int64s]:
    if not isinstance(neighbours, dict):
        raise PlannerError(f"{path} does not hold a dictionary of neighbours.")
    try:
        rows = {int(u): np.array(row, dtype=np.int64) for u, row in neighbours.items()}
    except (TypeError, ValueError, OverflowError) as error:
        raise PlannerError(f"{path} holds neighbours that are not vertex ids.") from error
    if not rows:
        raise PlannerError(f"{path} holds no vertices.")
    source = np.repeat(list(rows), [len(row) for row in rows.values()])
    destination = np.concatenate(list(rows.values()))
    largest = max([*rows, int(destination.max(initial=0))])
    if largest >= vertices or min([*rows, int(destination.min(initial=0))]) < 0:
        raise PlannerError(
            f"{path} names vertex {largest}, but allx and test.index end at {vertices - 1}."
        )
    return source, destination


def _matrix(path: Path) -> Float32s:
    value = read_inert_pickle(path)
    if isinstance(value, np.ndarray) and value.ndim == 2:
        return value.astype(np.float32)
    state = vars(value) if isinstance(value, InertMatrix) else {}
    shape: Any = state.get("_shape", state.get("shape"))
    arrays = [state.get(key) for key in ("data", "indices", "indptr")]
    parts = [each for each in arrays if isinstance(each, np.ndarray) and each.dtype.kind in "iuf"]
    sized = isinstance(shape, tuple) and len(shape) == 2 and {*map(type, shape)} == {int}
    if not sized or len(parts) != len(arrays):
        raise PlannerError(f"{path} does not hold a feature matrix in CSR form.")
    _check_room(shape[0], shape[1], str(path))
    return dense_rows(parts, shape, str(path))


def _check_room(rows: int, columns: int, where: str) -> None:
    # Beside its features a vertex has a class, and more.
    size = rows * (columns + 2) * np.dtype(np.float32).itemsize
    if size > _MOST_FEATURE_BYTES:
        raise PlannerError(
            f"{where}: {rows:,} vertices with {columns:,} features would take {size:,} bytes, "
            f"more than {_MOST_FEATURE_BYTES:,}; save such a graph as .npz."
        )


def _classes(path: Path) -> Int64s:
    value = read_inert_pickle(path)
    if not isinstance(value, np.ndarray) or value.ndim != 2 or not value.size:
        raise PlannerError(f"{path} does not hold a table of classes, one row per vertex.")
    classes: Int64s = np.argmax(value.astype(np.float64), axis=1)
    return classes


def _test_ids(path: Path) -> Int64s:
    try:
        words = read_regular_text(path, "ascii").split()
    except (OSError, UnicodeDecodeError) as error:
        raise PlannerError(f"Cannot read {path}: {error}.") from error
    try:
        return np.array([int(word) for word in words], dtype=np.int64)
    except (ValueError, OverflowError) as error:
        raise PlannerError(f"{path} holds something other than vertex ids: {error}.") from error
