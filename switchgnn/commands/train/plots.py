# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Plots of trainings: the loss over time, bytes per worker, and the parts of an epoch's time."""

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from switchgnn.base.files import whole_file
from switchgnn.base.full_disk import why_not_written
from switchgnn.base.machine import how_to_install
from switchgnn.commands.errors import PlotError
from switchgnn.commands.train.report import TrainReport
from switchgnn.host.registry import transport_kind

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = (7.0, 4.0)
_FORMATS = ("png", "svg")
_PHASES = {"compute": "compute", "waiting": "waiting for sums", "all_reduce": "all-reduce"}


def require_matplotlib() -> None:
    """Look for matplotlib before the work that plots are for.

    Raises:
        PlotError: it is missing.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise _missing("matplotlib")


def _missing(package: str | None) -> PlotError:
    return PlotError(f"Plots need {package}: {how_to_install('plots')}, or leave out --plots.")


def draw_plots(reports: Sequence[TrainReport], folder: Path) -> list[Path]:
    """Draw all plots that compare trainings, as PNG and SVG.

    Args:
        reports: one for each transport.
        folder: made if it does not exist.

    Returns:
        The files.

    Raises:
        PlotError: matplotlib is missing, or the folder cannot be written.
    """
    plots = {
        "loss-over-time": _loss_over_time,
        "bytes-per-worker": _bytes_per_worker,
        "time-split": _time_split,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [path for name, draw in plots.items() for path in _save(draw, reports, folder, name)]
    except OSError as error:
        why = why_not_written(error, folder)
        raise PlotError(f"Cannot write plots to {folder}: {why}.") from error
    except ImportError as error:
        raise _missing(error.name) from error


def _save(
    draw: "Callable[[Axes, Sequence[TrainReport]], None]",
    reports: Sequence[TrainReport],
    folder: Path,
    name: str,
) -> list[Path]:
    from matplotlib.figure import Figure  # noqa: PLC0415  only drawing needs it

    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.subplots()
    first = reports[0]
    axes.set_title(f"{first.model} on {first.dataset}, {first.workers} workers", fontsize=10)
    draw(axes, reports)
    paths = [folder / f"{name}.{ending}" for ending in _FORMATS]
    for path, kind in zip(paths, _FORMATS, strict=True):
        with whole_file(path) as file:
            figure.savefig(file, format=kind, dpi=150)
    return paths


def _label(report: TrainReport) -> str:
    return transport_kind(report.transport).label


def _loss_over_time(axes: "Axes", reports: Sequence[TrainReport]) -> None:
    for report in reports:
        axes.plot(np.cumsum(report.seconds), report.losses, label=_label(report), linewidth=1.5)
    axes.set_xlabel("seconds of training, evaluation left out")
    axes.set_ylabel("training loss")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.legend()


def _bytes_per_worker(axes: "Axes", reports: Sequence[TrainReport]) -> None:
    networked = [report for report in reports if report.total_bytes]
    width = 0.8 / max(1, len(networked))
    for place, report in enumerate(networked):
        colour = f"C{reports.index(report)}"
        at = np.arange(report.workers) + (place - (len(networked) - 1) / 2) * width
        up = np.array([link["up"] for link in report.bytes_per_link]) / 1e6
        down = np.array([link["down"] for link in report.bytes_per_link]) / 1e6
        axes.bar(at, up, width, color=colour, label=f"{_label(report)}, up")
        axes.bar(
            at, down, width, bottom=up, color=colour, alpha=0.5, label=f"{_label(report)}, down"
        )
    axes.set_xlabel("worker")
    axes.set_ylabel("MB of exchanges on its link")
    axes.set_xticks(range(max((report.workers for report in networked), default=1)))
    if networked:
        axes.legend(fontsize=8)


def _time_split(axes: "Axes", reports: Sequence[TrainReport]) -> None:
    names = [_label(report) for report in reports]
    left = np.zeros(len(reports))
    for phase, label in _PHASES.items():
        parts = np.array([report.split[phase] for report in reports]) * 1000
        axes.barh(names, parts, left=left, label=label)
        left += parts
    axes.invert_yaxis()
    axes.set_xlabel("ms per epoch, mean over the workers")
    axes.legend()
