# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Plots of trainings: the loss over time, bytes per worker, and the parts of an epoch's time."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from switchgnn.commands.shared.plots import Draw, plots_in, save_plot
from switchgnn.commands.train.report import TrainReport
from switchgnn.host.registry import transport_kind

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PHASES = {"compute": "compute", "waiting": "waiting for sums", "all_reduce": "all-reduce"}


def draw_plots(reports: Sequence[TrainReport], folder: Path) -> list[Path]:
    """Draw all plots that compare trainings; return their files."""
    plots = {
        "loss-over-time": _loss_over_time,
        "bytes-per-worker": _bytes_per_worker,
        "time-split": _time_split,
    }
    with plots_in(folder):
        return [
            path
            for name, draw in plots.items()
            for path in save_plot(_titled(draw, reports), folder / name)
        ]


def _titled(
    draw: "Callable[[Axes, Sequence[TrainReport]], None]", reports: Sequence[TrainReport]
) -> Draw:
    first = reports[0]

    def fill(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.set_title(f"{first.model} on {first.dataset}, {first.workers} workers", fontsize=10)
        draw(axes, reports)

    return fill


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
    for index, report in enumerate(networked):
        colour = f"C{reports.index(report)}"
        at = np.arange(report.workers) + (index - (len(networked) - 1) / 2) * width
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
