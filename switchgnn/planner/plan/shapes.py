# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Do the arrays of one file of a plan fit each other? No reader looks beyond an array then."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from switchgnn.planner.arrays.rows import are_offsets
from switchgnn.planner.errors import PlannerError

Arrays = Mapping[str, NDArray[Any]]

# Of each indptr: what it cuts into rows.
_CUT = {
    "send_indptr": "send_source",
    "send_row_indptr": "send_row",
    "receive_indptr": "receive_vertex",
    "neighbour_indptr": "neighbour_vertex",
}
# Arrays of a worker that are as long as another one, or one longer.
_AS_LONG = {
    "send_destination": "send_source",
    "receive_row": "receive_vertex",
    "receive_count": "receive_vertex",
    "neighbour_worker": "neighbour_vertex",
}
_ONE_LONGER = {"send_row_indptr": "send_source", "neighbour_indptr": "receive_vertex"}


def check_switch_shapes(arrays: Arrays, where: str) -> None:
    """Check that sources, entries and results each have all their fields.

    Args:
        arrays: of the switch's part.
        where: what error messages call its file.

    Raises:
        PlannerError: two arrays differ in length.
    """
    for prefix in ("source", "entry", "result"):
        lengths = {len(array) for name, array in arrays.items() if name.startswith(prefix)}
        if len(lengths) > 1:
            raise _damaged(where, f"arrays {prefix}_* differ in length")
    if arrays["entry_slot"].shape != arrays["entry_expected"].shape:
        raise _damaged(where, "entry_slot and entry_expected differ in shape")


def check_worker_shapes(arrays: Arrays, blocks: int, where: str) -> None:
    """Check that every row of a worker's part is inside the arrays that it names.

    Args:
        arrays: of the worker's part.
        blocks: of the plan.
        where: what error messages call its file.

    Raises:
        PlannerError: it is not.
    """
    for name, other in _AS_LONG.items():
        if len(arrays[name]) != len(arrays[other]):
            raise _damaged(where, f"{name} and {other} differ in length")
    for name, other in _ONE_LONGER.items():
        if len(arrays[name]) != len(arrays[other]) + 1:
            raise _damaged(where, f"{name} is not one longer than {other}")
    for name in ("send_indptr", "receive_indptr"):
        if len(arrays[name]) != blocks + 1:
            raise _damaged(where, f"{name} is not for {blocks} blocks")
    for name, other in _CUT.items():
        if not are_offsets(arrays[name], len(arrays[other])):
            raise _damaged(where, f"{name} does not rise from 0 to the length of {other}")
    if ("left_forward" in arrays) != ("left_backward" in arrays):
        raise _damaged(where, "only one direction is left to the hosts")
    for name in ("send_row", "receive_row", "left_forward", "left_backward"):
        rows = arrays.get(name, arrays["receive_row"])
        if rows.min(initial=0) < 0 or rows.max(initial=-1) >= len(arrays["vertices"]):
            raise _damaged(where, f"{name} names a row that the worker does not have")


def _damaged(where: str, problem: str) -> PlannerError:
    return PlannerError(f"{where} is damaged: {problem}; plan again")
