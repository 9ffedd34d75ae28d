# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Cells that a panel or a claim is about."""

from collections.abc import Mapping, Sequence
from typing import Any

from switchgnn.byte_sizes import parse_bytes
from switchgnn.experiments.cells import Cell
from switchgnn.experiments.description import LEAST, MOST

# What a cell can be chosen by, and be drawn over.
WHERE = ("graph", "workers", "memory", "recirculation", "background")


def select(cells: Sequence[Cell], where: Mapping[str, str | int] | None) -> list[Cell]:
    """Those cells for which all holds; see Panel."""
    chosen = list(cells)
    for name, wanted in (where or {}).items():
        values = ascending(name, cells)
        if wanted in (LEAST, MOST) and values:
            value = values[0 if wanted == LEAST else -1]
        else:
            value = wanted
        chosen = [cell for cell in chosen if getattr(cell, name) == value]
    return chosen


def ascending(name: str, cells: Sequence[Cell]) -> list[Any]:
    """What the cells have there, without doubles; graphs in the order of the description."""
    values = list(dict.fromkeys(getattr(cell, name) for cell in cells))
    if name == "memory":
        return sorted(values, key=lambda it: parse_bytes("memory", it))
    if name in ("workers", "background"):
        return sorted(values)
    if name == "recirculation":
        # No limit is more than any.
        return sorted(values, key=lambda it: float("inf") if it is None else it)
    return values
