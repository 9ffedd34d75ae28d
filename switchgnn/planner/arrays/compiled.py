# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Loops over vertices and edges, compiled where there are many."""

from collections.abc import Callable
from functools import cached_property, update_wrapper
from pathlib import Path
from typing import Generic, ParamSpec, TypeVar, cast

import numpy as np

from switchgnn.base.files import reason_to_distrust

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

# Of fewer numbers, Python has added up everything before numba is imported.
_FEW = 1 << 15


class Compiled(Generic[_Parameters, _Result]):
    """A function of arrays and numbers that numba can compile.

    Compiling takes seconds, once; numba keeps the machine code beside the source or in the
    user's cache. Loading it takes most of a second, so small arrays are left to Python: the
    results are the same.
    """

    def __init__(self, function: Callable[_Parameters, _Result]) -> None:
        self.interpreted = function
        update_wrapper(self, function)

    @cached_property
    def machine(self) -> Callable[_Parameters, _Result]:
        """The compiled function."""
        import numba  # noqa: PLC0415 - slow to import, and small graphs do without

        try:
            kept = numba.njit(cache=True)(self.interpreted)
        except RuntimeError:  # neither the source's folder nor the user's cache can be written
            kept = None
        if kept is None or self._is_foreign(Path(str(kept.stats.cache_path))):
            return cast("Callable[_Parameters, _Result]", numba.njit(self.interpreted))
        return cast("Callable[_Parameters, _Result]", kept)

    def _is_foreign(self, cache: Path) -> bool:
        """Return whether others could have put code there, which numba would load and run.

        Who can write beside the source can as well change the source.
        """
        if cache.parent == Path(self.interpreted.__code__.co_filename).parent:
            return False
        try:
            return reason_to_distrust(cache) is not None
        except OSError:
            return True

    def __call__(self, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        """Call it, compiled if the arrays are large."""
        numbers = sum(arg.size for arg in args if isinstance(arg, np.ndarray))
        return (self.machine if numbers > _FEW else self.interpreted)(*args, **kwargs)
