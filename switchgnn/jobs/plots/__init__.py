"""Writes plots of commands as PNG and SVG."""

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.files import whole_file
from switchgnn.base.full_disk import writing
from switchgnn.base.machine import how_to_install
from switchgnn.host.registry import TransportKind

if TYPE_CHECKING:
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
