"""Draws figures the way the paper does."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from switchgnn.base.array_types import Float64s
from switchgnn.base.files import whole_file
from switchgnn.host.registry import HOST, SWITCH, TRANSPORTS
from switchgnn.host.wire.header import FEATURE_FRAME_BYTES
from switchgnn.jobs import plots
from switchgnn.jobs.plots import colours_of, plots_in, save_figure
from switchgnn.lab.experiments import table
from switchgnn.lab.experiments.figure import (
    AXES,
    FASTEST,
    Cell,
    Figure,
    Panel,
    PlottedSeries,
    ascending,
    select,
)
from switchgnn.lab.simulator.request import BNS_GCN
from switchgnn.planner.costs import study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

_ACROSS = 3
_PANEL_WIDTH = 4.0
_REST = 0.9
_AXIS_LABELS = {
    "workers": "number of workers",
    "memory": "switch memory at the paper's scale",
    "background": "background load",
    "recirculation": "passes per second of the loop",
    "layers": "number of layers",
    "graph": "",
}
_MARKERS = "os^Dv"
# Ratios are coloured up to this many times more or less than 1.
_MOST_TIMES = 4.0
# From this share of the colour scale on, text on it is white.
_DARK = 0.7
_UNITS = {"workers": " workers", "recirculation": " passes/s", "background": " background"}
# The time of an exchange is cut into at most this many pieces, each with its own throughput.
_PIECES = 64
_EPOCH_PIECES = 16  # of each exchange of an epoch
Curve = tuple[Float64s, Float64s]


@dataclass(frozen=True)
class _Shown:
    panel: Panel
    # those that it has, and their colours
    series: Sequence[tuple[PlottedSeries, tuple[float, ...]]]
    cells: Sequence[Cell]  # those it is about
    results: table.Results

    def of(self, label: str, **where: object) -> list[table.Result]:
        cells = [
            it for it in self.cells if it.series == label and where.items() <= vars(it).items()
        ]
        return [self.results[cell.point] for cell in cells if cell.point in self.results]

    def along(self, label: str) -> dict[int, list[table.Result]]:
        found = {at: self.of(label, **{self.panel.x: x}) for at, x in enumerate(self.values)}
        return {at: each for at, each in found.items() if each}

    @property
    def values(self) -> list[Any]:
        return ascending(self.panel.x, self.cells)


def draw_figure(
    figure: Figure, cells: Sequence[Cell], results: table.Results, remark: str
) -> "Picture":
    """Draw all panels, side by side."""
    from matplotlib.figure import Figure as Picture  # noqa: PLC0415  only who draws needs it

    count = len(figure.panels)
    columns = 2 if count == 4 else min(_ACROSS, count)
    lines = math.ceil(count / columns)
    size = max(_PANEL_WIDTH * columns, 6.0), figure.panel_height * lines + _REST
    picture = Picture(figsize=size, layout="constrained")
    picture.suptitle(f"{figure.title}\n{remark}", fontsize=10)
    grid = picture.subplots(lines, columns, squeeze=False)
    colours = _colours(figure.series)
    handles: dict[str, Any] = {}
    for index, axes in enumerate(grid.flat):
        if index >= count:
            axes.set_axis_off()
            continue
        panel = figure.panels[index]
        shown = [each for each in colours if not panel.series or each[0].label in panel.series]
        KINDS[panel.draw](axes, _Shown(panel, shown, select(cells, panel.where), results))
        numbers = map(str, ascending("workers", select(cells, panel.where)))
        axes.set_title(panel.title.replace("{workers}", " or ".join(numbers)), fontsize=10)
        found, names = axes.get_legend_handles_labels()
        handles |= dict(zip(names, found, strict=True))
    labels = [series.label for series in figure.series if series.label in handles]
    if labels:
        # Lines of about the same length.
        picture.legend(
            [handles[label] for label in labels],
            labels,
            loc="outside lower center",
            ncols=math.ceil(len(labels) / math.ceil(len(labels) / (columns * 2))),
            fontsize=9,
        )
    return picture


def _colours(series: Sequence[PlottedSeries]) -> list[tuple[PlottedSeries, tuple[float, ...]]]:
    """Give each series a shade of its transport's colour, which all plots share."""
    kinds = {each.name: each for each in TRANSPORTS} | {BNS_GCN: HOST}
    of = [kinds.get(each.system, SWITCH) for each in series]
    return list(zip(series, colours_of(of), strict=True))


def _bars(axes: "Axes", shown: _Shown) -> None:
    width = 0.8 / max(1, len(shown.series))
    for number, (series, colour) in enumerate(shown.series):
        found = shown.along(series.label)
        at = np.array(list(found)) + (number - (len(shown.series) - 1) / 2) * width
        mean, least, most = _spreads(shown.panel.y, found)
        lower = mean
        if shown.panel.y == table.EPOCH:
            lower, _, _ = _spreads("communication", found)
            above = {"bottom": lower, "alpha": 0.35, "hatch": "////"}
            axes.bar(at, mean - lower, width, color=colour, **above)
            busiest = [
                np.mean([(2 * it["layers"] - 1) * it["busiest_link_seconds"] * 1e3 for it in each])
                for each in found.values()
            ]
            axes.hlines(busiest, at - width / 2, at + width / 2, color="black", linewidth=1)
        axes.bar(at, lower, width, color=colour, label=series.label)
        several = least < most
        ends = np.array([mean - least, most - mean])[:, several]
        axes.errorbar(at[several], mean[several], ends, fmt="none", color="black", capsize=2)
    if shown.panel.y == table.EPOCH:
        _explain_epochs(axes)
    _name_axes(axes, shown)


def _explain_epochs(axes: "Axes") -> None:
    from matplotlib.lines import Line2D  # noqa: PLC0415  only who draws needs it
    from matplotlib.patches import Patch  # noqa: PLC0415

    hatched = Patch(facecolor="lightgrey", hatch="////", label="computing (model)")
    line = Line2D([], [], color="black", linewidth=1, label="busiest link alone")
    axes.add_artist(axes.legend(handles=[hatched, line], fontsize=7, loc="upper left"))


def _lines(axes: "Axes", shown: _Shown) -> None:
    for number, (series, colour) in enumerate(shown.series):
        found = shown.along(series.label)
        if not found:
            continue
        mean, least, most = _spreads(shown.panel.y, found)
        axes.plot(
            list(found),
            mean,
            color=colour,
            marker=_MARKERS[number % len(_MARKERS)],
            # Smaller than earlier markers, so that those stay visible below.
            markersize=3 + 1.5 * (len(shown.series) - number),
            label=series.label,
        )
        axes.fill_between(list(found), least, most, color=colour, alpha=0.2, linewidth=0)
    _name_axes(axes, shown)


def _spreads(measure: str, found: Mapping[int, Sequence[table.Result]]) -> Float64s:
    values = [[table.value_of(measure, it) for it in each] for each in found.values()]
    each = [(spread.mean, spread.least, spread.most) for spread in map(table.spread_of, values)]
    rows: Float64s = np.array(each, dtype=np.float64).reshape(-1, 3).T
    return rows


def _over_time(result: table.Result, name: str, unit: float = 1.0) -> Curve:
    series = result["series"]
    times, values = (np.array(series[each], dtype=np.float64) for each in ("seconds", name))
    return times * 1e3, values / unit


def _rate(times: Float64s, count: Float64s, pieces: int = _PIECES) -> Curve:
    """Return middles of pieces in ms, and how much the count grows there per second."""
    if len(times) < 2:
        return times, np.zeros_like(times)
    ends = np.linspace(times[0], times[-1], min(pieces, len(times) - 1) + 1)
    return (ends[1:] + ends[:-1]) / 2, np.diff(np.interp(ends, times, count)) / np.diff(ends) * 1e3


def _gigabits(result: table.Result, *names: str) -> Curve:
    count = np.sum([_over_time(result, name)[1] for name in names], axis=0)
    times, rate = _rate(_over_time(result, "seconds")[0], count)
    return times, rate * FEATURE_FRAME_BYTES * 8 / 1e9


def _utilization(result: table.Result, name: str, most: float) -> Curve:
    """Return per cents over an epoch, in which computing, with zero, follows each exchange."""
    times, values = _over_time(result, name, most / 100)
    if name == "slots":
        # As a count that grows by them, so that pieces have means.
        values = np.cumsum(values * np.diff(times, prepend=0)) / 1e3
    times, values = _rate(times, values, _EPOCH_PIECES)
    # As many forward exchanges as layers, and one backward exchange less.
    exchanges = 2 * result["layers"] - 1
    each = result["epoch_seconds"] / exchanges * 1e3
    times = np.append(times, [result["exchange_seconds"] * 1e3, each])
    starts = np.repeat(np.arange(exchanges) * each, len(times))
    return starts + np.tile(times, exchanges), np.tile([*values, 0, 0], exchanges)


def _busy_links(result: table.Result) -> Curve:
    both_ways = 2 * result["workers"] * result["network"]["bandwidth"] * 1e6 / 8
    return _utilization(result, "link_bytes", both_ways)


def _slots(result: table.Result) -> Curve:
    times, slots = _over_time(result, "slots", 1e6)
    return times, slots * result["memory_bytes"] / max(1, result["slots"])


# By name: (label of the axis, milliseconds and values).
OVER_TIME: Mapping[str, tuple[str, Callable[[table.Result], Curve]]] = {
    "throughput": ("sums (solid), all (dotted), Gbit/s", lambda it: _gigabits(it, "sums")),
    "slots": ("occupied aggregators (MB)", _slots),
    "links": ("used rate of links (%)", _busy_links),
    "switch": ("used slots (%)", lambda it: _utilization(it, "slots", max(1, it["slots"]))),
    "loss": ("training loss", lambda it: (np.cumsum(it["seconds"]) * 1e3, np.array(it["losses"]))),
    "queue": ("queue length (MB)", lambda it: _over_time(it, "queue_bytes", 1e6)),
}


def _time(axes: "Axes", shown: _Shown) -> None:
    """Draw one seed over time; the mean of several seeds would not be a run."""
    name, curve = OVER_TIME[shown.panel.y]
    for series, colour in shown.series:
        found = shown.of(series.label)
        if not found:
            continue
        axes.plot(*curve(found[0]), color=colour, label=series.label, linewidth=1.2)
        if shown.panel.y == "throughput":
            both = _gigabits(found[0], "sums", "overflowed")
            axes.plot(*both, color=colour, linestyle=":", linewidth=1.2)
    axes.set_xlabel("time (ms)")
    axes.set_ylabel(name)
    axes.set_xlim(left=0)
    if shown.panel.y != "loss":
        axes.set_ylim(bottom=0)


def _partitions(shown: _Shown) -> list[study.PartitionPoint]:
    """Return one seed's partitions, by workers."""
    names = [it.name for it in fields(study.PartitionPoint)]
    found = shown.along(shown.series[0][0].label).values()
    return [study.PartitionPoint(**{name: it[0][name] for name in names}) for it in found]


def _neighbours(axes: "Axes", shown: _Shown) -> None:
    for result in shown.of(shown.series[0][0].label)[:1]:
        counts = np.repeat(result["neighbours"], result["vertices_with_them"])
        plots.draw_skew(axes, counts[::-1])


def _ratios(axes: "Axes", shown: _Shown) -> None:
    from matplotlib.colors import LogNorm  # noqa: PLC0415  only who draws needs it

    columns = ascending(shown.panel.x, shown.cells)
    numbers = _numbers_of_points(shown)
    rows = list(dict.fromkeys(row for row, _ in numbers))
    ratios = {
        point: table.ratios_of(each, shown.panel.of, FASTEST) for point, each in numbers.items()
    }
    mean = {point: table.spread_of(each).mean for point, each in ratios.items() if each}
    image = [[mean.get((row, x), math.nan) for x in columns] for row in rows]
    norm = LogNorm(1 / _MOST_TIMES, _MOST_TIMES, clip=True)
    axes.imshow(image, "RdBu_r", norm, aspect="auto")
    for (row, x), ratio in mean.items():
        colour = "white" if abs(2 * norm(ratio) - 1) > _DARK else "black"
        at = columns.index(x), rows.index(row)
        axes.text(*at, f"{ratio:.2f}", ha="center", va="center", color=colour, fontsize=7)
    axes.set_xticks(range(len(columns)), [_word(value) for value in columns], fontsize=8)
    axes.set_yticks(range(len(rows)), rows, fontsize=7)
    above = sum(ratio > 1 for ratio in mean.values())
    axes.set_xlabel(f"{_AXIS_LABELS[shown.panel.x]}\nabove 1 in {above} of {len(mean)}", fontsize=8)


def _numbers_of_points(shown: _Shown) -> dict[tuple[str, object], dict[Cell, float]]:
    """Return what is measured at each point of the grid: (row of a heat map, value of `x`)."""
    panel, labels = shown.panel, {series.label for series, _ in shown.series}
    others = [name for name in AXES if name != panel.x and len(ascending(name, shown.cells)) > 1]
    numbers: dict[tuple[str, object], dict[Cell, float]] = defaultdict(dict)
    for cell in shown.cells:
        row = ", ".join(_word(getattr(cell, name)) + _UNITS.get(name, "") for name in others)
        here = numbers[row, getattr(cell, panel.x)]
        if cell.series in labels and cell.point in shown.results:
            here[cell] = table.value_of(panel.y, shown.results[cell.point])
    return numbers


def _name_axes(axes: "Axes", shown: _Shown) -> None:
    axes.set_xticks(range(len(shown.values)), list(map(_word, shown.values)))
    axes.set_xlabel(_AXIS_LABELS[shown.panel.x])
    axes.set_ylabel(table.MEASURES[shown.panel.y].axis)
    # Room for the legend of what is hatched.
    room = 1.35 if shown.panel.y == table.EPOCH else 1.08
    highest = max(0.0, float(axes.dataLim.y1))
    axes.set_ylim(0, room * highest if highest else 1)
    axes.grid(axis="y", linewidth=0.4)
    axes.set_axisbelow(True)


def _word(value: object) -> str:
    if value is None:
        return "no limit"
    return f"{value:.2g}" if isinstance(value, float) else str(value)


# By Panel.draw.
KINDS: Mapping[str, Callable[["Axes", _Shown], None]] = {
    "bars": _bars,
    "lines": _lines,
    "time": _time,
    "ratios": _ratios,
    "boundary": lambda axes, shown: plots.draw_boundary(axes, _partitions(shown)),
    "connected": lambda axes, shown: plots.draw_connected(axes, _partitions(shown)),
    "neighbours": _neighbours,
}

TABLE = "table.md"
Drawn = tuple[Figure, Sequence[Cell]]


def write_figures(
    figures: Sequence[Drawn], results: table.Results, scale: str, folder: Path
) -> list[list[str]]:
    """Write CSV, pictures and table into the folder; return the table's rows, as HEADINGS.

    Raises:
        PlotError: matplotlib is missing, or the folder cannot be written.
    """
    with plots_in(folder):
        for figure, cells in figures:
            _write(folder / f"{figure.name}.csv", table.csv_text(cells, results))
            seeds = len({cell.point.seed for cell in cells})
            remark = f"scale {scale}, {seeds} seed{'s' if seeds > 1 else ''}"
            save_figure(draw_figure(figure, cells, results, remark), folder / figure.name)
        rows = [row for figure, cells in figures for row in table.rows_of(figure, cells, results)]
        _write(folder / TABLE, _page(figures, rows, scale))
    return rows


def _write(path: Path, text: str) -> None:
    with whole_file(path) as file:
        file.write(text.encode())


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
        "columns show our number with a card of twice and half the speed. docs/evidence/figures.md "
        "explains how the numbers differ from the paper's.\n",
        table.as_markdown(rows),
    ]
    return "\n".join(lines)
