"""Plots of trainings: the loss over time, bytes per worker, and the parts of an epoch's time."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from switchgnn.base.machine import size_unit
from switchgnn.host.registry import transport_kind
from switchgnn.jobs.plots import Draw, plots_in, save_plot
from switchgnn.jobs.train_report import TrainReport

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


def _loss_over_time(axes: "Axes", reports: Sequence[TrainReport]) -> None:
    for report in reports:
        kind = transport_kind(report.transport)
        axes.plot(np.cumsum(report.seconds), report.losses, kind.colour, label=kind.label)
    axes.set_xlabel("seconds of training, evaluation left out")
    axes.set_ylabel("training loss")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.legend()


def _bytes_per_worker(axes: "Axes", reports: Sequence[TrainReport]) -> None:
    networked = [report for report in reports if report.total_bytes]
    width = 0.8 / max(1, len(networked))
    links = [link for report in networked for link in report.bytes_per_link]
    unit, size = size_unit(max((max(link.values()) for link in links), default=0))
    for index, report in enumerate(networked):
        kind = transport_kind(report.transport)
        at = np.arange(len(report.bytes_per_link)) + (index - (len(networked) - 1) / 2) * width
        up = np.array([link["up"] for link in report.bytes_per_link]) / size
        down = np.array([link["down"] for link in report.bytes_per_link]) / size
        axes.bar(at, up, width, color=kind.colour, label=f"{kind.label}, up")
        label = f"{kind.label}, down"
        axes.bar(at, down, width, bottom=up, color=kind.colour, alpha=0.5, label=label)
    axes.set_xlabel(
        "worker" if all(each.workers_per_machine == 1 for each in reports) else "machine"
    )
    axes.set_ylabel(f"{unit} of exchanges on its link")
    axes.set_xticks(range(max((len(report.bytes_per_link) for report in networked), default=1)))
    if networked:
        axes.legend(fontsize=8)


def _time_split(axes: "Axes", reports: Sequence[TrainReport]) -> None:
    names = [transport_kind(report.transport).label for report in reports]
    left = np.zeros(len(reports))
    for phase, label in _PHASES.items():
        parts = np.array([report.split[phase] for report in reports]) * 1000
        axes.barh(names, parts, left=left, label=label)
        left += parts
    axes.invert_yaxis()
    axes.set_xlabel("ms per epoch, mean over the workers")
    axes.legend()
