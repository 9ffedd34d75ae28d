# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Loops over vertices and edges, compiled where there are many."""

from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import Generic, ParamSpec, TypeVar, cast

import numpy as np

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
            return cast("Callable[_Parameters, _Result]", numba.njit(cache=True)(self.interpreted))
        except RuntimeError:  # neither the source's folder nor the user's cache can be written
            return cast("Callable[_Parameters, _Result]", numba.njit(self.interpreted))

    def __call__(self, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        """Call it, compiled if the arrays are large."""
        numbers = sum(arg.size for arg in args if isinstance(arg, np.ndarray))
        return (self.machine if numbers > _FEW else self.interpreted)(*args, **kwargs)
