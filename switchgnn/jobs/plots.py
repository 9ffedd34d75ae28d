"""Writes plots as PNG and SVG, and draws those of trainings."""

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.files import whole_file, writing
from switchgnn.base.machine import how_to_install, size_unit
from switchgnn.host.registry import TransportKind, transport_kind
from switchgnn.jobs.train_report import TrainReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE = (7.0, 4.0)
_FORMATS = ("png", "svg")


class PlotError(SwitchGNNError):
    """A plot could not be made."""


Draw = Callable[["Figure"], None]


def require_matplotlib() -> None:
    """Raise PlotError if matplotlib is missing, before the work that plots are for."""
    if importlib.util.find_spec("matplotlib") is None:
        raise _missing("matplotlib")


@contextmanager
def plots_in(folder: Path) -> Iterator[None]:
    """Make the folder; turn errors of the block into PlotError."""
    try:
        with writing(folder, "plots to ", PlotError):
            folder.mkdir(parents=True, exist_ok=True)
            yield
    except ImportError as error:
        raise _missing(error.name) from error


def save_plot(draw: Draw, base: Path) -> list[Path]:
    """Draw a figure to `base` with the ending of each format."""
    from matplotlib.figure import Figure  # noqa: PLC0415  only drawing needs it

    figure = Figure(figsize=_SIZE, layout="constrained")
    draw(figure)
    return save_figure(figure, base)


def save_figure(figure: "Figure", base: Path) -> list[Path]:
    """Write a figure to `base` with the ending of each format."""
    paths = [base.with_name(f"{base.name}.{ending}") for ending in _FORMATS]
    for path, kind in zip(paths, _FORMATS, strict=True):
        with whole_file(path) as file:
            figure.savefig(file, format=kind, dpi=150)
    return paths


def colours_of(kinds: Sequence[TransportKind]) -> list[tuple[float, ...]]:
    """Return the colour of each series' transport, lighter with each series of the same one."""
    from matplotlib.colors import to_rgb  # noqa: PLC0415  only drawing needs it

    white = [0.8 * kinds[:at].count(kind) / kinds.count(kind) for at, kind in enumerate(kinds)]
    return [
        tuple(part + (1 - part) * share for part in to_rgb(kind.colour))
        for kind, share in zip(kinds, white, strict=True)
    ]


def _missing(package: str | None) -> PlotError:
    return PlotError(f"Plots need {package}: {how_to_install('plots')}.")


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
