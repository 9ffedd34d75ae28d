# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The ParMETIS interface of PT-Scotch, called by every rank."""

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.errors import PlannerError
from switchgnn.planner.partition.shards import Shard

# Debian 12 and 13, and builds without a version in their names.
_ENDINGS = ("-7.0.so", ".so")
# Debian's libptscotch-7.0 also holds builds that count with 64 bits; these are not on the path
# of the linker.
_WIDE_FOLDERS = "*/scotch-int64"
_LIBRARY_FOLDER = Path("/usr/lib")
_LEAST_VERSION = 7
# More than this many ends of edges need 64 bits.
_MOST_NARROW = 2**31 - 1
# METIS_OK of Scotch's parmetis.h.
_DONE = 1
# PT-Scotch's generator sets the lowest bit of its seed, so only the others count.
_SEED_LIMIT = 2**30


class PTScotch:
    """The loaded library.

    Attributes:
        version: as 7.0.3.
        number: its integer type.
    """

    def __init__(self, scotch: ctypes.CDLL, parmetis: ctypes.CDLL) -> None:
        self._scotch, self._parmetis = scotch, parmetis
        parts = [ctypes.c_int() for _ in range(3)]
        scotch.SCOTCH_version(*map(ctypes.byref, parts))
        self.version = ".".join(str(part.value) for part in parts)
        if parts[0].value < _LEAST_VERSION:
            raise PlannerError(
                f"PT-Scotch {self.version} is too old: install {_LEAST_VERSION}.0 or newer"
            )
        self.number = np.dtype(f"i{scotch.SCOTCH_numSizeof()}")

    def mpi_version(self) -> str:
        """Return the version of PT-Scotch's MPI library."""
        text = ctypes.create_string_buffer(8192)
        length = ctypes.c_int()
        self._scotch.MPI_Get_library_version(text, ctypes.byref(length))
        return text.value.decode()

    def part(self, shard: Shard, parts: int, seed: int, communicator: int) -> NDArray[np.int32]:
        """Cut the graph into parts with about as many vertices and few edges between them.

        All ranks call this together, each with its shard; returns int32[n] for its vertices. Sizes
        are up to about 5 % above their mean: PT-Scotch ignores the tolerance of its caller.
        """
        number = self.number
        starts, indptr, indices = (
            array.astype(number, copy=False)
            for array in (shard.starts, shard.indptr, shard.indices)
        )
        found = np.full(len(indptr) - 1, -1, dtype=number)
        # No weights; ids from 0; one constraint.
        no_weights, base, constraints, count = (
            np.array([n], dtype=number) for n in (0, 0, 1, parts)
        )
        # PT-Scotch makes integers of the shares: as ones they need no rounding.
        shares, balance = np.ones(parts, dtype=np.float32), np.full(1, 1.05, dtype=np.float32)
        options, cut = np.zeros(10, dtype=number), np.zeros(1, dtype=number)
        self._seed(seed)
        answer = self._parmetis.ParMETIS_V3_PartKway(
            *map(_pointer, (starts, indptr, indices)),
            *(None, None),
            *map(_pointer, (no_weights, base, constraints, count)),
            *map(_pointer, (shares, balance, options, cut, found)),
            ctypes.c_void_p(communicator),
        )
        # Some versions always report success.
        if answer != _DONE or (len(found) and (found.min() < 0 or found.max() >= parts)):
            raise PlannerError(f"PT-Scotch {self.version} could not make {parts} parts")
        return found.astype(np.int32)

    def _seed(self, seed: int) -> None:
        kind = ctypes.c_int64 if self.number.itemsize == 8 else ctypes.c_int32
        self._scotch.SCOTCH_randomSeed(kind(2 * (seed % _SEED_LIMIT) + 1))
        self._scotch.SCOTCH_randomReset()


def load_ptscotch(edges: int = 0) -> PTScotch:
    """Load the library whose integers hold that many ends of edges.

    One thread for each rank and deterministic algorithms: with more threads Scotch does not even
    repeat itself on one rank.
    """
    os.environ["SCOTCH_PTHREAD_NUMBER"] = "1"
    os.environ["SCOTCH_DETERMINISTIC"] = "1"  # not read up to 7.0.8; see its README.md
    for scotch, parmetis in _places(wide=edges > _MOST_NARROW):
        try:
            library = PTScotch(ctypes.CDLL(scotch), ctypes.CDLL(parmetis))
        except OSError:
            continue
        if edges > np.iinfo(library.number).max:
            raise PlannerError(
                f"{edges:,} ends of edges are too many for this PT-Scotch, which counts with "
                f"{8 * library.number.itemsize} bits: install a build with 64, as in Debian's "
                "libptscotch-7.0"
            )
        return library
    raise PlannerError(
        "PT-Scotch with its ParMETIS interface is not installed (apt-get install libptscotch-7.0)"
    )


def _places(*, wide: bool) -> Iterator[tuple[str, str]]:
    """Yield pairs of library names; only one may be loaded, as both widths share their symbols."""
    if wide:
        for folder in sorted(_LIBRARY_FOLDER.glob(_WIDE_FOLDERS)):
            for ending in _ENDINGS:
                places = (f"libptscotch{ending}", f"libptscotchparmetisv3{ending}")
                yield str(folder / places[0]), str(folder / places[1])
    for ending in _ENDINGS:
        yield f"libptscotch{ending}", f"libptscotchparmetisv3{ending}"


def _pointer(array: NDArray[np.generic]) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)
