"""The paper's figures.

Graphs of full scale have the paper's sizes, those of small and medium about a hundredth of them.
Memory and the delay of links shrink with the graph. As published, a slot holds a whole feature of
the data set; the slots of the best plan hold a fragment of 128 bytes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from switchgnn.base.names import no_such
from switchgnn.host.base.pace import CongestionRule
from switchgnn.host.registry import HOST, SWITCH, TRANSPORTS
from switchgnn.lab.experiments.figure import (
    LEAST,
    MOST,
    UNLIMITED,
    Claim,
    ExperimentError,
    Figure,
    Kind,
    Panel,
    PlottedSeries,
    Scale,
    ScaledGraph,
    read_figure,
)
from switchgnn.lab.experiments.point import BoundaryPoint, TrainingPoint
from switchgnn.lab.simulator.request import BNS_GCN, G3, LeafSpineOptions
from switchgnn.planner.plan.manifest import STRAWMAN
from switchgnn.planner.presets import BEST, PAPER

_HOSTS = PlottedSeries("BNS-GCN", BNS_GCN)
_BINS = PlottedSeries("G3", G3)
_STRAW = PlottedSeries("Straw", STRAWMAN, whole_features=True)
_STRAW_10MB = replace(_STRAW, label="Straw, 10 MB", memory="10MB")
_STRAW_NO_LIMIT = replace(_STRAW, label="Straw, no limit", memory=UNLIMITED)
_PAPER = PlottedSeries("SwitchGNN", PAPER, whole_features=True)
_PAPER_10MB = replace(_PAPER, label="SwitchGNN, 10 MB", memory="10MB")
_BEST = PlottedSeries("SwitchGNN, best plan", BEST)
_METIS = PlottedSeries("METIS", "metis", memory=UNLIMITED)

_PRODUCTS, _YELP, _REDDIT = "Ogbn-products", "Yelp", "Reddit"
_GRAPHS = (_PRODUCTS, _YELP, _REDDIT)
# The generator's graph, its share of the paper's size at small and medium, numbers of a feature.
_SHAPES = {
    _PRODUCTS: ("products-like", 0.002, 128),
    _YELP: ("yelp-like", 0.01, 300),
    _REDDIT: ("reddit-like", 0.02, 602),
}
_ON_REDDIT = {"graph": _REDDIT}
_ALL_SYSTEMS = (_HOSTS, _BINS, _STRAW, _STRAW_10MB, _PAPER, _PAPER_10MB, _BEST)


def _by_graph(
    letters: str, draw: Kind, y: str, x: str = "", graphs: Sequence[str] = _GRAPHS
) -> tuple[Panel, ...]:
    return tuple(
        Panel(f"({letter}) {name}", draw, y, x, {"graph": name})
        for letter, name in zip(letters, graphs, strict=True)
    )


def _scales(graphs: Sequence[str], small: Scale, medium: Scale, full: Scale) -> dict[str, Scale]:
    def of(share: float | None = None) -> dict[str, ScaledGraph]:
        return {
            name: ScaledGraph(f"{shape}:{share or little}:{{seed}}", share or little, feature)
            for name in graphs
            for shape, little, feature in [_SHAPES[name]]
        }

    few = replace(full, workers=full.workers[-1:], memory=full.memory[::2])
    return {
        "small": replace(small, graphs=of()),
        "medium": replace(medium, graphs=of()),
        "quarter": replace(few, graphs=of(0.25)),
        "full": replace(full, graphs=of(1), seeds=5),
    }


def _of_partitions(number: int, title: str, draw: Kind, measure: str, paper: str) -> Figure:
    """Return a figure of METIS's partitions, drawn as `switchgnn plan --plots` does."""
    many = (32,) if draw == "neighbours" else (2, 4, 8, 16, 32, 64, 128)
    small = Scale(tuple(each for each in many if each <= 32), (UNLIMITED,))
    return Figure(
        f"figure{number}",
        title=f"{title} of METIS's partitions (figure {number})",
        paper=f"the paper's figure {number}.",
        series=(_METIS,),
        panels=_by_graph("abc", draw, "", "workers"),
        scales=_scales(_GRAPHS, small, small, replace(small, workers=many)),
        claims=(Claim(measure, _METIS.label, "", paper, _ON_REDDIT, times=measure == "copies"),),
        point=BoundaryPoint,
    )


def figure2() -> Figure:
    """Return the strawman over time, and the traffic of one layer."""
    over_time = tuple(
        Panel(title, "time", y, "", _ON_REDDIT, ("Straw", "Straw, no limit", "SwitchGNN"))
        for title, y in (
            ("(a) Throughput, Reddit", "throughput"),
            ("(b) Occupied aggregators, Reddit", "slots"),
            ("(c) Queue length, Reddit", "queue"),
        )
    )
    return Figure(
        "figure2",
        title="Performance of the strawman (figure 2)",
        paper="the paper's figure 2, with SwitchGNN's best plan.",
        series=(_HOSTS, _STRAW, _STRAW_NO_LIMIT, _PAPER, _BEST),
        panels=(*over_time, Panel("(d) Traffic of one layer", "bars", "traffic", "graph")),
        scales=_scales(_GRAPHS, Scale((32,)), Scale((32,)), Scale((128,))),
        claims=(
            Claim("traffic", "Straw, no limit", "BNS-GCN", "94%", _ON_REDDIT),
            Claim("traffic", "Straw, no limit", "Straw", "92%", _ON_REDDIT),
            Claim("queue", "SwitchGNN", "Straw, no limit", "drawn", _ON_REDDIT),
        ),
    )


# The testbed's memory shrinks with Reddit's vertices.
_TRAINED = {
    "Digits": ScaledGraph("digits", 0.008),
    "Random, Cora's degree": ScaledGraph("random:1354:2639:{seed}", 0.006),
}


def _of_trainings(number: int, title: str, x: str) -> Figure:
    """Return a figure of measured trainings, by workers or layers, or, without `x`, over time."""
    by_workers, by_layers = x == "workers", x == "layers"
    few = Scale((2, 4) if by_workers else (4,), ("10MB",), _TRAINED)
    many = Scale((5, 6, 7, 8) if by_workers else (8,), ("10MB",), _TRAINED, epochs=20)
    if by_layers:
        few, many = replace(few, layers=(2, 4)), replace(many, layers=(2, 3, 4, 5))
    drawn: tuple[Kind, str] = ("lines", "training throughput") if x else ("time", "loss")
    ours = Claim(drawn[1], SWITCH.label, HOST.label, "1.54", times=True)
    return Figure(
        f"figure{number}",
        title=f"{title}, measured on one machine (figure {number})",
        paper=f"the paper's figure {number}, with real packets of the embedded switch, and all "
        "workers on one machine. Loopback has no limit of bandwidth.",
        series=tuple(PlottedSeries(it.label, it.name) for it in TRANSPORTS if it.networked),
        panels=_by_graph("ab", *drawn, x, tuple(_TRAINED)),
        scales={"small": few, "medium": many, "full": replace(many, epochs=100)},
        claims=(ours, replace(ours, other=_BINS.label, paper="1.24")) if x else (),
        point=TrainingPoint,
    )


def figure14() -> Figure:
    """Return the utilization of links and switch over an epoch."""
    return Figure(
        "figure14",
        title="Utilization of links and switch over an epoch (figure 14)",
        paper="of links and switch, simulated, where the paper's figure 14 has a worker's GPU. "
        "Computing is a model, and G3's bins are not drawn.",
        series=(_HOSTS, _BINS, _PAPER, _BEST),
        panels=(*_by_graph("abc", "time", "links"), *_by_graph("def", "time", "switch")),
        scales=_scales(_GRAPHS, Scale((32,)), Scale((32,)), Scale((128,))),
    )


def figure15() -> Figure:
    """Return epochs by workers, around one switch."""
    return Figure(
        "figure15",
        title="Epoch time under varying number of workers, star (figure 15)",
        paper="the paper's figure 15, with the strawman at 10 MB and our best plan. G3's bins are "
        "a model, as computing is.",
        series=_ALL_SYSTEMS,
        panels=_by_graph("abc", "bars", "epoch", "workers"),
        scales=_scales(_GRAPHS, Scale((8, 32)), Scale((8, 16, 32)), Scale((32, 64, 96, 128))),
        claims=(
            Claim("epoch", "SwitchGNN", "BNS-GCN", "74%", _ON_REDDIT),
            Claim("epoch", "SwitchGNN", "G3", "65%", _ON_REDDIT),
            Claim("epoch", "G3", "BNS-GCN", "drawn", _ON_REDDIT),
            Claim("epoch", "SwitchGNN", "Straw", "83%", _ON_REDDIT),
            Claim("epoch", "SwitchGNN, 10 MB", "Straw, 10 MB", "-", _ON_REDDIT),
            Claim("epoch", "SwitchGNN, best plan", "BNS-GCN", "-", _ON_REDDIT),
        ),
    )


def figure16() -> Figure:
    """Return epochs by workers on a leaf-spine, where each switch has the memory of the star's.

    A round trip between two leaves takes twice as long as in a star, so the window is twice as
    wide, in all systems.
    """
    four = LeafSpineOptions(4, 4)
    return Figure(
        "figure16",
        title="Epoch time under varying number of workers, leaf-spine (figure 16)",
        paper="the paper's figure 16, with both at 10 MB, our best plan, and what crosses from "
        "leaf to leaf (below, not in the paper).",
        window=1024,
        series=_ALL_SYSTEMS,
        panels=(
            *_by_graph("abc", "bars", "epoch", "workers"),
            *_by_graph("def", "lines", "crossings", "workers"),
        ),
        scales=_scales(
            _GRAPHS,
            Scale((8, 32), leaf_spine=four),
            Scale((8, 16, 32), leaf_spine=four),
            Scale((32, 64, 96, 128), leaf_spine=LeafSpineOptions(8, 8)),
        ),
        claims=(
            Claim("epoch", "SwitchGNN", "BNS-GCN", "drawn", _ON_REDDIT),
            Claim("epoch", "SwitchGNN", "Straw", "drawn", _ON_REDDIT),
            Claim("epoch", "SwitchGNN, 10 MB", "Straw, 10 MB", "-", _ON_REDDIT),
            Claim("epoch", "SwitchGNN, best plan", "BNS-GCN", "-", _ON_REDDIT),
            Claim("crossings", "SwitchGNN", "BNS-GCN", "-", _ON_REDDIT),
            Claim("crossings", "SwitchGNN", "BNS-GCN", "-", {"graph": _PRODUCTS}),
        ),
    )


def figure17() -> Figure:
    """Return queues and throughput by memory, with and without an order of sending."""
    without, graphs = "SwitchGNN w/o GAMR", (_PRODUCTS, _REDDIT)
    panels = [(y, graph) for y in ("queue", "throughput") for graph in graphs]
    most_memory, most_products = (
        {"graph": graph, "memory": MOST} for graph in (_REDDIT, _PRODUCTS)
    )
    return Figure(
        "figure17",
        title="With and without GAMR (figure 17)",
        paper="the paper's figure 17.",
        series=(replace(_PAPER, label=without, order="random"), _PAPER),
        panels=tuple(
            Panel(f"({letter}) {graph}", "lines", y, "memory", {"graph": graph})
            for letter, (y, graph) in zip("abcd", panels, strict=True)
        ),
        scales=_scales(
            graphs,
            Scale((32,), ("10MB", "100MB")),
            Scale((32,), ("10MB", "25MB", "50MB", "100MB")),
            Scale((128,), ("10MB", "25MB", "50MB", "75MB", "100MB")),
        ),
        claims=(
            Claim("queue", "SwitchGNN", without, "drawn", most_memory),
            Claim("throughput", "SwitchGNN", without, "drawn", most_memory, times=True),
            Claim("throughput", "SwitchGNN", without, "drawn", most_products, times=True),
        ),
    )


def figure18() -> Figure:
    """Return the traffic of one layer by memory."""
    points = [{"graph": name, "workers": number} for number in (LEAST, MOST) for name in _GRAPHS]
    least_memory = {**_ON_REDDIT, "workers": MOST, "memory": "10MB"}
    most_memory = {**least_memory, "memory": "100MB"}
    return Figure(
        "figure18",
        title="Traffic of one layer under varying switch memory (figure 18)",
        paper="the paper's figure 18, with our best plan, and G3, of which its text does not say "
        "whether it is drawn. The upper row has the scale's fewest workers, the lower its most.",
        series=(_HOSTS, _BINS, _STRAW, _PAPER, _BEST),
        panels=tuple(
            Panel(
                f"({letter}) {at['graph']}, {{workers}} workers", "lines", "traffic", "memory", at
            )
            for letter, at in zip("acebdf", points, strict=True)
        ),
        scales=_scales(
            _GRAPHS,
            Scale((8, 32), ("10MB", "100MB")),
            Scale((16, 32), ("10MB", "25MB", "50MB", "100MB")),
            Scale((64, 128), ("10MB", "25MB", "50MB", "75MB", "100MB")),
        ),
        claims=(
            Claim("traffic", "SwitchGNN", "BNS-GCN", "23%", least_memory),
            Claim("traffic", "SwitchGNN", "BNS-GCN", "81%", most_memory),
            Claim("traffic", "G3", "BNS-GCN", "not said", most_memory),
            Claim("traffic", "SwitchGNN, best plan", "SwitchGNN", "-", least_memory),
        ),
    )


def figure19() -> Figure:
    """Return epochs beside background traffic, with and without congestion control.

    Per worker there are about as many features as 128 workers have of the whole graph, so nothing
    shrinks. 500 kB: a switch of 128 ports of 100 Gbit/s with 64 MB, as of 2019, divided evenly.
    """
    paper = replace(_PAPER, whole_features=False)
    without, rule = "SwitchGNN w/o CC", "SwitchGNN, the paper's rule"
    loads = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
    tenth, quarter, whole = (
        {_REDDIT: ScaledGraph(f"reddit-like:{share}:{{seed}}")} for share in ("0.1", "0.25", "1")
    )
    medium = Scale((16, 32), graphs=tenth, seeds=3, background=loads, buffer="500kB")
    few = replace(medium, seeds=1, background=(0.0, 0.5))
    heaviest, idle = ({"workers": MOST, "background": load} for load in (MOST, LEAST))
    return Figure(
        "figure19",
        title="Epoch time beside background traffic, with and without congestion control "
        "(figure 19)",
        paper="the paper's figure 19, with BNS-GCN and its control. Flows of Hadoop's sizes, "
        "Poisson arrivals, any two workers; flows heed marks.",
        series=(
            replace(paper, label=without, congestion=CongestionRule.NONE),
            paper,
            replace(paper, label=rule, congestion=CongestionRule.PAPER),
            _HOSTS,
        ),
        panels=tuple(
            Panel(f"({letter}) Reddit, {{workers}} workers", "lines", "epoch", "background", at)
            for letter, at in (("a", {"workers": LEAST}), ("b", {"workers": MOST}))
        ),
        scales={
            "small": few,
            "medium": medium,
            "quarter": replace(few, graphs=quarter),
            "full": replace(medium, workers=(64, 128), graphs=whole, seeds=5),
        },
        claims=(
            Claim("epoch", "SwitchGNN", without, "drawn: far below 1", heaviest, times=True),
            Claim("epoch", "SwitchGNN", without, "drawn: about 1", idle, times=True),
            Claim("epoch", rule, without, "drawn: far below 1", heaviest, times=True),
            Claim("epoch", without, "BNS-GCN", "-", heaviest, times=True),
        ),
    )


def example() -> Figure:
    """Return a figure that takes seconds, to see that everything is installed."""
    karate = {"karate": ScaledGraph("karate")}
    return Figure(
        "example",
        title="Example: epoch time of a small graph",
        paper="none of the paper's; to see what a figure takes and gives.",
        features=32,
        series=(_HOSTS, replace(_PAPER, whole_features=False)),
        panels=(
            Panel("(a) karate", "bars", "epoch", "workers"),
            Panel("(b) queue, 4 workers", "time", "queue", where={"workers": 4}),
        ),
        scales={
            "small": Scale((2, 4), ("2kB",), karate),
            "full": Scale((2, 4, 8), ("2kB",), karate, seeds=5),
        },
        claims=(Claim("traffic", "SwitchGNN", "BNS-GCN", "-"),),
    )


FIGURES: Mapping[str, Callable[[], Figure]] = {
    "figure1": partial(_of_partitions, 1, "Boundary and copies", "boundary", "copies", "16"),
    "figure2": figure2,
    "figure7": partial(_of_partitions, 7, "Remote neighbours", "neighbours", "first fifth", "80%"),
    "figure9": partial(_of_partitions, 9, "Connected boundary", "connected", "connected", "99%"),
    "figure11": partial(_of_trainings, 11, "Training throughput by workers", "workers"),
    "figure12": partial(_of_trainings, 12, "Training throughput by layers", "layers"),
    "figure13": partial(_of_trainings, 13, "Training loss over time", ""),
    **{make.__name__: make for make in (figure14, figure15, figure16)},
    **{make.__name__: make for make in (figure17, figure18, figure19)},
    "example": example,
}


def find_figures(names: Sequence[str]) -> list[Figure]:
    """Return figures by their names, or from Python files; without names, all but `example`."""
    chosen = dict.fromkeys(names) or [name for name in FIGURES if name != "example"]
    return [_find(name) for name in chosen]


def _find(name: str) -> Figure:
    if name.endswith(".py"):
        return read_figure(name)
    if name not in FIGURES:
        raise ExperimentError(no_such("figure", name, FIGURES))
    return FIGURES[name]()
