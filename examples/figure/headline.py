"""The figure of docs/results/index.md: `switchgnn figures headline.py --scale medium`."""

from switchgnn.lab.experiments.figure import Claim, Figure, Panel, PlottedSeries, Scale, ScaledGraph

# The generator's graph, and numbers of a whole feature (the paper's table 1).
SHAPES = {
    "Ogbn-products": ("products-like", 128),
    "Yelp": ("yelp-like", 300),
    "Reddit": ("reddit-like", 602),
}
HOSTS, BINS = PlottedSeries("BNS-GCN", "bns-gcn"), PlottedSeries("G3", "g3")
STRAW = PlottedSeries("Straw", "strawman", whole_features=True)
# A Tofino 2 has 10 MB for slots, one bank, and a loop with a rate (docs/switches.md).
OURS = (
    PlottedSeries("SwitchGNN", "paper", whole_features=True),
    PlottedSeries("SwitchGNN, best plan", "best"),
    PlottedSeries("SwitchGNN, best plan, tofino2", "best", "10MB", switch="tofino2"),
    PlottedSeries("SwitchGNN, auto, tofino2", "auto", "10MB", switch="tofino2"),
)


def _graphs(share: float) -> dict[str, ScaledGraph]:
    return {
        name: ScaledGraph(f"{shape}:{share}:{{seed}}", share, feature)
        for name, (shape, feature) in SHAPES.items()
    }


def figure() -> Figure:
    """Return epochs of many workers: as published, without limits, and within a Tofino 2."""
    return Figure(
        "headline",
        title="Epoch time: as published, without limits, and within a Tofino 2",
        paper="the paper's figure 15 at its most workers, with plans within a switch of today.",
        series=(HOSTS, BINS, STRAW, *OURS),
        panels=(Panel("{workers} workers", "bars", "epoch", "graph"),),
        scales={
            "small": Scale((32,), graphs=_graphs(0.01)),
            "medium": Scale((128,), graphs=_graphs(0.2)),
            "full": Scale((128,), graphs=_graphs(1)),
        },
        claims=tuple(
            Claim("epoch", it.label, other.label, "-", {"graph": graph})
            for graph in SHAPES
            for it in OURS
            for other in (HOSTS, BINS, STRAW)
        ),
    )
