# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The points of a figure, and what the figure calls them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from switchgnn.base.options import parse_bytes
from switchgnn.experiments.description import LEAST, MOST, UNLIMITED, Figure, ScaledGraph, Series
from switchgnn.experiments.errors import ExperimentError
from switchgnn.experiments.point import Point
from switchgnn.profiles import find_profile
from switchgnn.simulator import BIN_SIZE, SPINE, LeafSpineOptions
from switchgnn.simulator.request import G3, HOSTS_ALONE


@dataclass(frozen=True)
class Cell:
    """A point as a figure shows it.

    Attributes:
        graph: the paper's name for it.
        workers: their number.
        memory: of the switch at the paper's size, as the figure's axis has it.
        recirculation: passes per second, as the figure's axis has it; None: no limit.
        background: load, as the figure's axis has it.
        series: the label.
        point: what is simulated. Cells may share one.
    """

    graph: str
    workers: int
    memory: str
    recirculation: float | None
    background: float
    series: str
    point: Point


def cells_of(figure: Figure, scale: str, seeds: int | None = None) -> list[Cell]:
    """Return all cells of a figure at a scale.

    Args:
        figure: the description.
        scale: the name of one that it has.
        seeds: how many, in place of the scale's.

    Returns:
        The cells, graph by graph.

    Raises:
        ExperimentError: it has no such scale.
    """
    if scale not in figure.scales:
        known = ", ".join(figure.scales)
        raise ExperimentError(f"{figure.name} has no scale {scale!r}; known: {known}.")
    chosen = figure.scales[scale]
    return [
        Cell(name, workers, memory, rate, load, series.label, point)
        for name, graph in chosen.graphs.items()
        for workers in chosen.workers
        for memory in chosen.memory
        for rate in chosen.recirculation_rates
        for load in chosen.background
        for series in figure.series
        for seed in range(seeds or chosen.seeds)
        for point in [
            replace(
                _point(
                    figure,
                    series,
                    graph,
                    workers=workers,
                    memory=memory,
                    rate=rate,
                    leaf_spine=chosen.leaf_spine,
                    seed=seed,
                ),
                background=float(load),
                buffer=None if chosen.buffer is None else parse_bytes("buffer", chosen.buffer),
            )
        ]
    ]


def _point(
    figure: Figure,
    series: Series,
    graph: ScaledGraph,
    *,
    workers: int,
    memory: str,
    rate: float | None,
    leaf_spine: LeafSpineOptions | None,
    seed: int,
) -> Point:
    # Hosts alone need no switch that adds: one point serves all its sizes and rates.
    alone = series.system in HOSTS_ALONE
    size = series.memory or memory
    unlimited = alone or size == UNLIMITED
    switch = find_profile(UNLIMITED if alone else series.switch)
    tables = switch.table_bytes
    return Point(
        graph=graph.graph.replace("{seed}", str(seed)),
        workers=workers,
        system=series.system,
        memory=None if unlimited else round(parse_bytes("memory", size) * graph.shrink),
        order=series.order,
        seed=seed,
        layers=figure.layers,
        features=figure.features,
        bandwidth=figure.bandwidth,
        delay=figure.delay * graph.shrink,
        congestion_control=series.congestion_control,
        recirculation_rate=None if alone else switch.passes_per_second if rate is None else rate,
        window=figure.window,
        mtu=figure.mtu if alone else None,
        leaves=leaf_spine.leaves if leaf_spine else 0,
        spines=leaf_spine.spines if leaf_spine else 0,
        completion=leaf_spine.completion if leaf_spine else SPINE,
        slot_features=graph.feature if series.whole_features and not alone else None,
        bin_size=max(1, round(BIN_SIZE * graph.shrink)) if series.system == G3 else None,
        switch=switch.name,
        table_memory=None if tables is None else round(tables * graph.shrink),
    )


# What a cell can be chosen by, and be drawn over.
WHERE = ("graph", "workers", "memory", "recirculation", "background")


def select(cells: Sequence[Cell], where: Mapping[str, str | int] | None) -> list[Cell]:
    """Return those cells for which all of `where` holds; see Panel."""
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
    """Return what the cells have there, each once; graphs in the order of the description."""
    values = list(dict.fromkeys(getattr(cell, name) for cell in cells))
    if name == "memory":
        return sorted(values, key=lambda it: parse_bytes("memory", it))
    if name in ("workers", "background"):
        return sorted(values)
    if name == "recirculation":
        # No limit is more than any.
        return sorted(values, key=lambda it: float("inf") if it is None else it)
    return values
