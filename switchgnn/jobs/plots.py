"""Plots of trainings, and the paper's figures 1, 7, 9 and 18 for a plan, as PNG and SVG."""

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from switchgnn.base.array_types import Int64s
from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.files import whole_file, writing
from switchgnn.base.machine import how_to_install, size_unit
from switchgnn.host.registry import HOST, STRAWMAN, SWITCH, TransportKind, transport_kind
from switchgnn.jobs.train_report import TrainReport
from switchgnn.planner import PRESETS, Direction, Graph, Plan, boundary_edges
from switchgnn.planner.costs import study
from switchgnn.planner.costs.flow import OWN, Flow, plan_flows
from switchgnn.planner.plan.manifest import STRAWMAN as STRAWMAN_BLOCKS
from switchgnn.planner.presets import AUTO

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE = (7.0, 4.0)
_FORMATS = ("png", "svg")
Draw = Callable[["Figure"], None]
_PHASES = {"compute": "compute", "waiting": "waiting for sums", "all_reduce": "all-reduce"}
_SLOT_BYTES = 128
_POINTS = 600
# What `study_memory` compares besides strategies.
_NOT_IN_BLOCKS = {STRAWMAN_BLOCKS: STRAWMAN}
# The most lines between blocks that can be told apart.
_MOST_LINES = 12


class PlotError(SwitchGNNError):
    """A plot could not be made."""


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


def _new_figure() -> "Figure":
    from matplotlib.figure import Figure  # noqa: PLC0415  only drawing needs it

    return Figure(figsize=_SIZE, layout="constrained")


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


def draw_plots(reports: Sequence[TrainReport], folder: Path) -> list[Path]:
    """Draw all plots that compare trainings; return their files."""
    plots = {
        "loss-over-time": _loss_over_time,
        "bytes-per-worker": _bytes_per_worker,
        "time-split": _time_split,
    }
    first, paths = reports[0], []
    title = f"{first.model} on {first.dataset}, {first.workers} workers"
    with plots_in(folder):
        for name, draw in plots.items():
            figure = _new_figure()
            axes = figure.subplots()
            axes.set_title(title, fontsize=10)
            draw(axes, reports)
            paths += save_figure(figure, folder / name)
    return paths


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


def draw_plan_plots(
    plan: Plan, graph: Graph, folder: Path, tell: Callable[[str], None]
) -> list[Path]:
    """Draw all figures; return their files."""
    require_matplotlib()
    if plan.manifest.replicated:
        raise PlotError("The figures compare edge cuts: leave out --plots, or cut edges.")
    paths = []
    with plots_in(folder):
        for name, title, draw in _figures(plan, graph, tell):
            figure = _new_figure()
            figure.suptitle(f"{title}: {graph.name}", fontsize=10)
            draw(figure)
            paths += save_figure(figure, folder / name)
    return paths


def _figures(plan: Plan, graph: Graph, tell: Callable[[str], None]) -> list[tuple[str, str, Draw]]:
    owner, manifest = plan.assignment, plan.manifest
    workers, seed = manifest.workers, manifest.partition.seed
    points = study.study_partitions(graph, workers, seed, tell)
    counts = study.neighbour_counts(boundary_edges(graph, owner))
    presets = {name: preset for name, preset in PRESETS.items() if name != AUTO}
    memory = study.study_memory(graph, owner, presets, seed, tell)
    where = f"{workers} workers"
    titles = {
        "boundary-and-traffic": "Boundary and traffic (figure 1)",
        "neighbour-counts": f"Remote neighbours, {where} (figure 7)",
        "connected-boundary": "Connected boundary (figure 9)",
        "traffic-and-memory": f"Traffic, {where} (figure 18)",
    }
    drawings: tuple[Draw, ...] = (
        lambda f: draw_boundary(f.subplots(), points),
        lambda f: draw_skew(f.subplots(), counts),
        lambda f: draw_connected(f.subplots(), points),
        lambda f: _memory(f.subplots(), memory),
    )
    figures = [(*each, draw) for each, draw in zip(titles.items(), drawings, strict=True)]
    tell("follow the packets through the switch")
    flows = _flows(plan)
    if flows:
        title = f"Slots and queue, {where}, forward sums"
        slots = manifest.slots
        figures.append(("slots-and-queue", title, lambda f: _over_time(f, flows, slots)))
    return figures


def _flows(plan: Plan) -> dict[str, Flow]:
    found = plan_flows(plan, Direction.FORWARD)
    order = plan.manifest.strategy.order
    return {
        f"this plan ({order})" if name == OWN else name: flow
        for name, flow in found.items()
        # The plan's own order need not be drawn twice.
        if flow is not None and flow.steps and name != order
    }


def draw_boundary(axes: "Axes", points: list[study.PartitionPoint]) -> None:
    """Draw copies and boundary vertices by partitions (figure 1)."""
    workers = [point.workers for point in points]
    copies = [point.copies for point in points]
    vertices = [point.boundary_vertices for point in points]
    axes.plot(workers, copies, HOST.colour, marker="o", label=f"copies, {HOST.label}")
    label = f"boundary vertices, {SWITCH.label}"
    axes.plot(workers, vertices, SWITCH.colour, marker="s", label=label)
    axes.set_xscale("log", base=2)
    axes.set_xticks(workers, [str(number) for number in workers])
    axes.set_xlabel("partitions")
    axes.set_ylabel("features")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left", fontsize=8)


def draw_connected(axes: "Axes", points: list[study.PartitionPoint]) -> None:
    """Draw the boundary and its largest connected part (figure 9)."""
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
    axes.margins(y=0.35)
    axes.legend(loc="upper left", fontsize=8)


def draw_skew(axes: "Axes", counts: Int64s) -> None:
    """Draw how many remote neighbours vertices have (figure 7), descending."""
    ascending = counts[::-1]
    axes.step(ascending, np.arange(1, len(counts) + 1) / max(1, len(counts)), where="post")
    if len(counts):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    first, share = f"{study.FIRST:.0%}", study.share_of_most(counts)
    axes.text(
        0.97,
        0.05,
        f"the {first} of vertices with the most\nhave {share:.0%} of the remote neighbours",
        transform=axes.transAxes,
        ha="right",
        fontsize=8,
    )
    axes.set_xlabel("remote neighbours of a vertex")
    axes.set_ylabel("share of the boundary vertices")
    axes.set_ylim(0, 1)


def _memory(axes: "Axes", points: list[study.MemoryPoint]) -> None:
    names = list(dict.fromkeys(name for point in points for name in point.fractions))
    kinds = [_NOT_IN_BLOCKS.get(name, SWITCH) for name in names]
    lines = zip(names, kinds, colours_of(kinds), strict=True)
    for index, (name, kind, colour) in enumerate(lines):
        with_it = [point for point in points if name in point.fractions]
        megabytes = [point.slots * _SLOT_BYTES / 1e6 for point in with_it]
        # Smaller markers leave those of an identical earlier line visible.
        size = 3 * (len(names) - index)
        fractions = [point.fractions[name] for point in with_it]
        label = kind.label if name in _NOT_IN_BLOCKS else f"{kind.label}, {name}"
        axes.plot(megabytes, fractions, color=colour, marker="o", markersize=size, label=label)
    axes.axhline(1, color=HOST.colour, linewidth=0.8, linestyle="--", label=HOST.label)
    if points:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("memory of the switch in MB, one fragment at a time")
    axes.set_ylabel(f"traffic, as a share of {HOST.label}")
    axes.set_ylim(bottom=0)
    axes.legend()


def _over_time(figure: "Figure", flows: dict[str, Flow], slots: int) -> None:
    above, below = figure.subplots(2, sharex=True)
    for index, (name, flow) in enumerate(flows.items()):
        # The plan itself is in front of the others.
        style = {"label": name, "linewidth": 1.0, "color": f"C{index}", "zorder": 3 - index}
        above.plot(*_thinned(flow.occupancy), **style)
        below.plot(*_thinned(flow.queue), **style)
    blocks = next(iter(flows.values())).block_indptr[1:-1]
    if 0 < len(blocks) <= _MOST_LINES:
        for axes in (above, below):
            across = axes.get_xaxis_transform()
            axes.vlines(
                blocks, 0, 1, "grey", ":", label="next block of this plan", transform=across
            )
    above.set_ylabel(f"slots in use of {slots:,}")
    below.set_ylabel("sums that wait")
    below.set_xlabel("steps, in each as many packets as workers")
    for axes in (above, below):
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        axes.yaxis.set_major_formatter("{x:,.0f}")
    below.xaxis.set_major_formatter("{x:,.0f}")
    figure.legend(*above.get_legend_handles_labels(), loc="outside lower center", ncols=4)


def _thinned(values: Int64s) -> tuple[Int64s, Int64s]:
    """Return steps and values to draw: the highest of steps that would overlap."""
    width = -(-len(values) // _POINTS)
    starts = np.arange(0, len(values), width)
    highest: Int64s = np.maximum.reduceat(values, starts)
    return starts, highest
