"""Figures: what to simulate or measure, what to draw, and what to compare with the paper."""

import math
import runpy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.names import no_such
from switchgnn.base.options import parse_bytes, shared_fields
from switchgnn.host.base.pace import CongestionRule
from switchgnn.host.direct.framing import USUAL_MTU
from switchgnn.lab.experiments.point import Point, SimulationPoint
from switchgnn.lab.simulator.request import G3, HOSTS_ALONE, STAR, LeafSpineOptions
from switchgnn.lab.simulator.setup import BIN_SIZE
from switchgnn.profiles import find_profile

# In a `where`: the smallest and the largest value at the scale.
LEAST, MOST = "least", "most"
UNLIMITED = "unlimited"
# In a ratio's `other`: of all other series the one with the least number there.
FASTEST = "the fastest other"
Where = Mapping[str, str | float]
# Series can be compared between cells that agree on these.
AXES = ("graph", "workers", "memory", "recirculation", "background", "layers")


class ExperimentError(SwitchGNNError):
    """A figure that does not exist, or points that failed, in one sentence."""


@dataclass(frozen=True)
class PlottedSeries:
    """A system in the legend."""

    label: str  # its name in the legend
    # one of SYSTEMS in `simulator/request.py`; of a training, the name of a transport
    system: str
    memory: str | None = None  # of the switch instead of the scale's, as 10MB, or UNLIMITED
    order: str | None = None  # a key of ORDER_STRATEGIES instead of the system's
    congestion: CongestionRule = CongestionRule.DCTCP  # see NetworkOptions
    # a slot holds a whole feature of the graph, as the paper counts memory
    whole_features: bool = False
    # a name of `known_profiles`: banks, ports, tables, and the rate of the loop where the scale has
    # none. Memory is the scale's.
    switch: str = UNLIMITED


@dataclass(frozen=True)
class ScaledGraph:
    """A graph, and its size relative to the paper's."""

    graph: str  # as load_graph takes it; `{seed}` stands for the seed
    # the memory of the switch and of its tables, the delay of links and G3's bins are multiplied by
    # it, so that the numbers of blocks and bins, and the share of a barrier in the time, stay
    shrink: float = 1.0
    feature: int = 128  # numbers of its whole feature (the paper's table 1)


@dataclass(frozen=True)
class Scale:
    """The axes of a figure, each with all its values."""

    workers: tuple[int, ...]  # their numbers
    memory: tuple[str, ...] = ("100MB",)  # of the switch, before it shrinks with the graph
    graphs: Mapping[str, ScaledGraph] = field(default_factory=dict)  # by the paper's name for them
    seeds: int = 1  # their number; each draws another graph, partition and orders
    # passes per second; None: the switch's, or no limit
    recirculation_rates: tuple[float | None, ...] = (None,)
    background: tuple[float, ...] = (0.0,)  # loads, as shares of the links' rate
    leaf_spine: LeafSpineOptions | None = None  # instead of the star's switch; None: a star
    layers: tuple[int, ...] = (4,)
    epochs: int = 10  # of trainings
    # of each queue of the switch, as 500kB; None: no limit. It does not shrink.
    buffer: str | None = None


# `ratios` is a heat map; the last three draw figures 1, 9 and 7 of BoundaryPoints.
Kind = Literal["bars", "lines", "time", "ratios", "boundary", "connected", "neighbours"]


@dataclass(frozen=True)
class Panel:
    """One picture of a figure."""

    title: str  # above it; `{workers}` stands for their number
    draw: Kind
    y: str  # what is drawn, a key of MEASURES in `table.py`, or of OVER_TIME in `draw.py` over time
    x: str = ""  # one of AXES; over time none
    where: Where = field(default_factory=dict)  # chooses cells: values of AXES, or LEAST or MOST
    series: tuple[str, ...] = ()  # labels of those that are drawn; empty: all
    of: str = ""  # label of the series whose number a heat map divides by the least of the others


@dataclass(frozen=True)
class Claim:
    """A number of the paper; ours is a measure of one series, or that over another one's."""

    measure: str  # a key of MEASURES in `table.py`
    series: str  # the label of one
    other: str  # the label of the other one, or FASTEST; empty: the number itself
    paper: str  # the paper's number, in its words
    # as of a panel; the largest number of the points that it leaves is taken
    where: Where = field(default_factory=dict)
    # give the ratio, instead of the share by which `series` is below `other`; without `other`, give
    # the number instead of the per cent
    times: bool = False

    def __str__(self) -> str:
        """Return the words for our number in the table."""
        beside = f" {'over' if self.times else 'under'} {self.other}" if self.other else ""
        return f"{self.measure} of {self.series}{beside}"


@dataclass(frozen=True)
class Figure:
    """A figure."""

    name: str  # of its files
    title: str  # above the picture
    paper: str  # which of the paper's figures it redraws, and what differs
    series: tuple[PlottedSeries, ...]  # in the order of the legend
    panels: tuple[Panel, ...]  # from left to right, three in a row
    scales: Mapping[str, Scale]  # by name; `small` is the default
    claims: tuple[Claim, ...] = ()  # rows of the table
    point: type[Point] = SimulationPoint  # how the numbers of a cell are made
    # features, bandwidth, delay, window: see SimulationPoint
    features: int = 128
    bandwidth: float = 100_000.0
    delay: float = 2.0
    window: int = 512
    mtu: int | str = USUAL_MTU  # of the frames of hosts alone
    panel_height: float = 3.1  # inches


def read_figure(path: str) -> Figure:
    """Run a Python file, and return the figure that its function `figure` makes."""
    try:
        defined = runpy.run_path(path)
    except OSError as error:
        raise ExperimentError(f"Cannot read {path}: {error.strerror}.") from error
    make: Callable[[], Figure] | None = defined.get("figure")
    if make is None:
        raise ExperimentError(f"{path} must define a function figure() that returns a Figure.")
    return make()


def with_graphs(figures: Sequence[Figure], words: Sequence[str]) -> list[Figure]:
    """Return the figures with graphs of `NAME=GRAPH` words, which shrink nothing.

    Raises:
        ExperimentError: a word is no such pair, or no figure has a graph of that name.
    """
    known = {name for figure in figures for it in figure.scales.values() for name in it.graphs}
    graphs: dict[str, str] = {}
    for word in words:
        name, _, graph = word.partition("=")
        if not (name and graph) or name in graphs:
            raise ExperimentError(f"--graph {word} is not NAME=GRAPH, as Reddit=reddit.npz, once.")
        if name not in known:
            raise ExperimentError(no_such("graph", name, sorted(known), where=" in these figures"))
        graphs[name] = graph
    return [
        replace(
            figure,
            scales={
                name: replace(scale, graphs={**scale.graphs, **_given(scale, graphs)})
                for name, scale in figure.scales.items()
            },
        )
        for figure in figures
    ]


def _given(scale: Scale, graphs: Mapping[str, str]) -> dict[str, ScaledGraph]:
    known = {name: scale.graphs[name] for name in graphs if name in scale.graphs}
    return {name: replace(it, graph=graphs[name], shrink=1.0) for name, it in known.items()}


@dataclass(frozen=True)
class Cell:
    """A point as a figure shows it."""

    graph: str  # the paper's name for it
    workers: int
    memory: str  # of the switch at the paper's size, as the figure's axis has it
    recirculation: float | None  # passes per second, as the figure's axis has it; None: no limit
    background: float  # load, as the figure's axis has it
    layers: int
    series: str  # the label
    point: Point  # what is simulated or measured. Cells may share one.


def cells_of(figure: Figure, scale: str, seeds: int | None = None) -> list[Cell]:
    """Return all cells of a figure at a scale, graph by graph; `seeds` replaces the scale's number.

    Raises:
        ExperimentError: it has no such scale.
    """
    if scale not in figure.scales:
        raise ExperimentError(f"{figure.name}: {no_such('scale', scale, figure.scales)}")
    chosen = figure.scales[scale]
    return [
        Cell(name, workers, memory, rate, load, layers, series.label, point)
        for name, graph in chosen.graphs.items()
        for workers in chosen.workers
        for memory in chosen.memory
        for rate in chosen.recirculation_rates
        for load in chosen.background
        for layers in chosen.layers
        for series in figure.series
        for seed in range(seeds or chosen.seeds)
        for point in [
            _point(
                figure.point,
                graph=graph.graph.replace("{seed}", str(seed)),
                workers=workers,
                seed=seed,
                background=float(load),
                layers=layers,
                epochs=chosen.epochs,
                buffer=None if chosen.buffer is None else parse_bytes("buffer", chosen.buffer),
                **shared_fields(figure, SimulationPoint)
                | asdict(chosen.leaf_spine or STAR)
                | _system(figure, series, graph, series.memory or memory, rate),
            )
        ]
    ]


def _point(kind: type[Point], **parameters: Any) -> Point:  # noqa: ANN401
    """Return a point with those of the parameters that its kind has."""
    return kind(**{it.name: parameters[it.name] for it in fields(kind) if it.name in parameters})


def _system(
    figure: Figure, series: PlottedSeries, graph: ScaledGraph, memory: str, rate: float | None
) -> dict[str, Any]:
    # Hosts alone need no switch that adds: one point serves all its sizes and rates. Trainings
    # run beside others, over a switch with slots.
    alone = series.system in HOSTS_ALONE and not figure.point.measured
    switch = find_profile(UNLIMITED if alone else series.switch)
    tables = switch.table_bytes
    unlimited = alone or memory == UNLIMITED
    return {
        "system": series.system,
        "memory": None if unlimited else round(parse_bytes("memory", memory) * graph.shrink),
        "order": series.order,
        "delay": figure.delay * graph.shrink,
        "congestion": series.congestion.value,
        "recirculation_rate": None if alone else switch.passes_per_second if rate is None else rate,
        "mtu": figure.mtu if alone else None,
        "slot_features": graph.feature if series.whole_features and not alone else None,
        "bin_size": max(1, round(BIN_SIZE * graph.shrink)) if series.system == G3 else None,
        "switch": switch.name,
        "table_memory": None if tables is None else round(tables * graph.shrink),
    }


def select(cells: Sequence[Cell], where: Where) -> list[Cell]:
    """Return those cells for which all of `where` holds; see Panel."""
    chosen = list(cells)
    for name, wanted in where.items():
        values = ascending(name, cells)
        if wanted in (LEAST, MOST) and values:
            value = values[0 if wanted == LEAST else -1]
        else:
            value = wanted
        chosen = [cell for cell in chosen if getattr(cell, name) == value]
    return chosen


def ascending(name: str, cells: Sequence[Cell]) -> list[Any]:
    """Return the different values of a field of the cells; graphs in the order of the figure."""
    values = list(dict.fromkeys(getattr(cell, name) for cell in cells))
    if name == "memory":
        # No limit sorts last.
        return sorted(
            values, key=lambda it: math.inf if it == UNLIMITED else parse_bytes("memory", it)
        )
    if name in ("workers", "background", "layers"):
        return sorted(values)
    if name == "recirculation":
        return sorted(values, key=lambda it: math.inf if it is None else it)
    return values
