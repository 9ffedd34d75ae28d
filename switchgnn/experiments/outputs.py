# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What people look at: CSV and pictures per figure, and one table."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from switchgnn.base.files import whole_file
from switchgnn.base.full_disk import why_not_written
from switchgnn.base.machine import how_to_install
from switchgnn.experiments.cells import Cell
from switchgnn.experiments.description import Figure
from switchgnn.experiments.draw import draw_figure
from switchgnn.experiments.errors import ExperimentError
from switchgnn.experiments.measures import Result
from switchgnn.experiments.point import Point
from switchgnn.experiments.rows import csv_text
from switchgnn.experiments.table import as_markdown, rows_of

_FORMATS = ("png", "svg")
TABLE = "table.md"
# A figure, and its cells.
Drawn = tuple[Figure, Sequence[Cell]]


def write_figures(
    figures: Sequence[Drawn],
    results: Mapping[Point, Result],
    scale: str,
    folder: Path,
) -> list[list[str]]:
    """Write CSV, pictures and table into the folder, and return the rows of the table.

    Args:
        figures: in the order of the table.
        results: of the points that have one.
        scale: what they were made at.
        folder: there is one.

    Returns:
        The rows of the table, as HEADINGS.

    Raises:
        ExperimentError: matplotlib is missing, or the folder cannot be written.
    """
    try:
        for figure, cells in figures:
            _write(folder / f"{figure.name}.csv", csv_text(cells, results))
            _draw(figure, cells, results, scale, folder)
        rows = [row for figure, cells in figures for row in rows_of(figure, cells, results)]
        _write(folder / TABLE, _page(figures, rows, scale))
    except OSError as error:
        why = why_not_written(error, folder)
        raise ExperimentError(f"Cannot write figures to {folder}: {why}.") from error
    return rows


def _write(path: Path, text: str) -> None:
    with whole_file(path) as file:
        file.write(text.encode())


def check_matplotlib() -> None:
    """Raise ExperimentError if nothing can be drawn: before hours of work."""
    try:
        import matplotlib  # noqa: F401, PLC0415
    except ImportError:
        raise ExperimentError(f"Figures need matplotlib: {how_to_install('plots')}.") from None


def _draw(
    figure: Figure,
    cells: Sequence[Cell],
    results: Mapping[Point, Result],
    scale: str,
    folder: Path,
) -> None:

    seeds = len({cell.point.seed for cell in cells})
    remark = f"scale {scale}, {seeds} seed{'s' if seeds > 1 else ''}"
    picture = draw_figure(figure, cells, results, remark)
    for ending in _FORMATS:
        with whole_file(folder / f"{figure.name}.{ending}") as file:
            picture.savefig(file, format=ending, dpi=130)


def _page(figures: Sequence[Drawn], rows: list[list[str]], scale: str) -> str:
    lines = [f"# Figures, scale {scale}\n"]
    if scale != "full":
        lines.append(
            "Smaller graphs, fewer workers; the switch's memory and the delay of links shrink with "
            "the graph. The order of the systems can be compared with the paper's, the numbers "
            "cannot.\n"
        )
    lines += [f"- **{figure.name}**: {figure.paper}" for figure, _ in figures]
    lines += [
        "",
        "An epoch is communication, which is simulated, and computing, which is a model: the two "
        "columns say what a card of twice or half the speed would make of our number.\n",
        as_markdown(rows),
    ]
    return "\n".join(lines)
