# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The paper's figures 1, 7, 9 and 18 for the graph of a plan."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.boundary import boundary_edges
from switchgnn.planner.presets import PRESETS
from switchgnn.planner.study import (
    MemoryPoint,
    PartitionPoint,
    neighbour_counts,
    share_of_most,
    study_memory,
    study_partitions,
)
from switchgnn.run.plan_job import MadePlan
from switchgnn.run.train_plots import PlotError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = (7.0, 4.0)
_FORMATS = ("png", "svg")
_SLOT_BYTES = 128
# The paper's measure of skew: what the first fifth has.
_FIRST = 0.2

Draw = Callable[["Axes"], None]


def draw_plan_plots(made: MadePlan, folder: Path, tell: Callable[[str], None]) -> list[Path]:
    """Draw all figures, as PNG and SVG.

    Args:
        made: the plan whose graph, workers and seed they are for.
        folder: made if it is not there.
        tell: called at each step; each number of partitions and each size of memory is one.

    Returns:
        The files.

    Raises:
        PlotError: matplotlib is missing, or the folder cannot be written.
    """
    try:
        import matplotlib  # noqa: F401, PLC0415 - before the work that it would be for

        folder.mkdir(parents=True, exist_ok=True)
        return [
            path
            for name, title, draw in _figures(made, tell)
            for path in _save(draw, f"{title}: {made.graph.name}", folder / name)
        ]
    except OSError as error:
        raise PlotError(f"Cannot write plots to {folder}: {error.strerror}.") from error
    except ImportError as error:
        raise PlotError(
            f"Plots need {error.name}: pip install 'switchgnn[plots]', or leave out --plots."
        ) from error


def _figures(made: MadePlan, tell: Callable[[str], None]) -> list[tuple[str, str, Draw]]:
    """(file name, title, how to draw it) of each figure; the work is done here."""
    graph, owner = made.graph, made.plan.assignment
    workers, seed = made.plan.manifest.workers, made.options.seed
    points = study_partitions(graph, workers, seed, tell)
    counts = neighbour_counts(boundary_edges(graph, owner))
    memory = study_memory(graph, owner, dict(PRESETS), seed, tell)
    place = f"{workers} workers"
    return [
        ("boundary-and-traffic", "Boundary and traffic (figure 1)", lambda a: _boundary(a, points)),
        ("neighbour-counts", f"Remote neighbours, {place} (figure 7)", lambda a: _skew(a, counts)),
        ("connected-boundary", "Connected boundary (figure 9)", lambda a: _connected(a, points)),
        ("traffic-and-memory", f"Traffic, {place} (figure 18)", lambda a: _memory(a, memory)),
    ]


def _save(draw: Draw, title: str, base: Path) -> list[Path]:
    from matplotlib.figure import Figure  # noqa: PLC0415  only who draws needs it

    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, fontsize=10)
    draw(axes)
    paths = [base.with_name(f"{base.name}.{ending}") for ending in _FORMATS]
    for path in paths:
        figure.savefig(path, dpi=150)
    return paths


def _boundary(axes: "Axes", points: list[PartitionPoint]) -> None:
    workers = [point.workers for point in points]
    copies = [point.copies for point in points]
    axes.plot(workers, copies, marker="o", label="copies, host-based")
    axes.plot(workers, [p.boundary_vertices for p in points], marker="s", label="boundary vertices")
    _partitions_axis(axes, workers)
    axes.set_ylabel("features")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_ylim(bottom=0)
    axes.legend()


def _connected(axes: "Axes", points: list[PartitionPoint]) -> None:
    at = np.arange(len(points))
    whole = [point.boundary_vertices for point in points]
    largest = [point.largest_component for point in points]
    axes.bar(at - 0.2, whole, 0.4, label="boundary vertices")
    bars = axes.bar(at + 0.2, largest, 0.4, label="largest connected part")
    shares = [f"{a / b:.1%}" if b else "-" for a, b in zip(largest, whole, strict=True)]
    axes.bar_label(bars, shares, fontsize=7)
    axes.set_xticks(at, [str(point.workers) for point in points])
    axes.set_xlabel("partitions")
    axes.set_ylabel("vertices")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.margins(y=0.25)
    axes.legend(loc="upper left")


def _skew(axes: "Axes", counts: NDArray[np.int64]) -> None:
    ascending = counts[::-1]
    axes.step(ascending, np.arange(1, len(counts) + 1) / max(1, len(counts)), where="post")
    if len(counts):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    share = share_of_most(counts, _FIRST)
    axes.text(
        0.97,
        0.05,
        f"the {_FIRST:.0%} of vertices with the most\nhave {share:.0%} of the remote neighbours",
        transform=axes.transAxes,
        ha="right",
    )
    axes.set_xlabel("remote neighbours of a vertex")
    axes.set_ylabel("share of the boundary vertices")
    axes.set_ylim(0, 1)


def _memory(axes: "Axes", points: list[MemoryPoint]) -> None:
    names = list(dict.fromkeys(name for point in points for name in point.fractions))
    for place, name in enumerate(names):
        with_it = [point for point in points if name in point.fractions]
        megabytes = [point.slots * _SLOT_BYTES / 1e6 for point in with_it]
        # A line that lies on an earlier one leaves the rim of that one to be seen.
        size = 3 * (len(names) - place)
        fractions = [point.fractions[name] for point in with_it]
        axes.plot(megabytes, fractions, marker="o", markersize=size, label=name)
    axes.axhline(1, color="grey", linewidth=0.8, linestyle="--", label="host-based")
    if points:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("memory of the switch in MB, one fragment at a time")
    axes.set_ylabel("traffic, as a share of host-based")
    axes.set_ylim(bottom=0)
    axes.legend()


def _partitions_axis(axes: "Axes", workers: list[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(workers, [str(number) for number in workers])
    axes.set_xlabel("partitions")
