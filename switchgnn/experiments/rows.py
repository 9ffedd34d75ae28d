# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The CSV of a figure: a row per cell, straight from the result files."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from switchgnn.experiments.cells import Cell
from switchgnn.experiments.measures import Result
from switchgnn.experiments.point import Point

RESULT_COLUMNS = (
    "epoch_seconds",
    "communication_seconds",
    "compute_seconds",
    "overlapped_seconds",
    "exchange_seconds",
    "busiest_link_seconds",
    "bytes",
    "max_queue_bytes",
    "max_port_queue_bytes",
    "marked",
    "window_cuts",
    "lost",
    "recalled",
    "sent_again",
    "aggregation_bits_per_second",
    "total_bits_per_second",
    "max_slots",
    "sums",
    "overflowed",
    "passes",
    "blocks",
    "bins",
    "events",
    "wall_seconds",
    "peak_memory_bytes",
)


# Of a leaf-spine only.
_LEAF_SPINE_COLUMNS = ("host_link_bytes", "leaf_spine_bytes", "partial_sums")


def csv_text(cells: Sequence[Cell], results: Mapping[Point, Result]) -> str:
    """Return a row for each cell that has a result."""
    text = io.StringIO()
    rows = [_row(cell, results[cell.point]) for cell in cells if cell.point in results]
    if rows:
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue()


def _row(cell: Cell, result: Result) -> dict[str, object]:
    point = asdict(cell.point)
    return {
        "figure_graph": cell.graph,
        "figure_memory": cell.memory,
        "series": cell.series,
        **{("memory_bytes" if name == "memory" else name): it for name, it in point.items()},
        **{name: result[name] for name in RESULT_COLUMNS},
        **{name: result[name] for name in _LEAF_SPINE_COLUMNS if name in result},
    }
