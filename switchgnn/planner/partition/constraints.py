"""METIS with several constraints, which pymetis does not pass.

pymetis is a library with METIS inside, whose functions its wheels export. So METIS itself is called
there, by the interface of its manual (version 5.1.0, section 5.7).
"""

import ctypes
from collections.abc import Mapping

import numpy as np

from switchgnn.base.array_types import Int32s, Int64s, Integers
from switchgnn.planner.base.errors import PlannerError

# METIS_NOPTIONS and METIS_OK.
_OPTIONS, _OK = 40, 1


def balance_all(
    indptr: Int64s, indices: Int32s, parts: int, weights: Integers, settings: Mapping[str, int]
) -> Int32s:
    """Cut a symmetric graph into parts that are balanced in each of several sums.

    Args:
        indptr: int64[V + 1], where the neighbours of each vertex begin.
        indices: int32[E], the neighbours.
        parts: their number, from 2.
        weights: integers[V, C]; no part has more than 1.03 of the mean of any of the C sums,
            unless METIS finds no such parts.
        settings: METIS's options by the names of pymetis's `OptionKey`.

    Returns:
        int32[V], the part of each vertex.

    Raises:
        PlannerError: pymetis was built in another way, without METIS's functions.
        RuntimeError: METIS failed; the error has its code.
    """
    from pymetis import OptionKey, _internal  # noqa: PLC0415 - needed by the planner only

    # Python does not run during a call, as with pymetis.
    library = ctypes.PyDLL(_internal.__file__)
    if not hasattr(library, "METIS_PartGraphKway"):
        raise PlannerError(
            "This build of pymetis hides METIS, which has to balance several sums: install a wheel "
            "of pymetis from PyPI, or choose the partition metis."
        )
    options = np.zeros(_OPTIONS, dtype=np.int64)
    library.METIS_SetDefaultOptions(options.ctypes)
    # METIS is built with integers of 32 bits, which leave half of the array as it was, or of 64.
    integer = np.int64 if options[-1] else np.int32
    for name, value in settings.items():
        options.view(integer)[int(getattr(OptionKey, name))] = value
    numbers = np.array([len(indptr) - 1, weights.shape[1], parts, 0], dtype=integer)
    vertices, constraints, wanted, objective = (numbers[at:] for at in range(4))
    rows = [np.ascontiguousarray(each, dtype=integer) for each in (indptr, indices, weights)]
    part = np.zeros(len(indptr) - 1, dtype=integer)
    given = [vertices, constraints, *rows, None, None, wanted, None, None, options, objective, part]
    code = library.METIS_PartGraphKway(*(each if each is None else each.ctypes for each in given))
    if code != _OK:
        raise RuntimeError(f"code {code}")
    return part.astype(np.int32)
