"""A figure of your own: `switchgnn figures workers.py`. It takes seconds."""

from switchgnn.lab.experiments.figure import Claim, Figure, Panel, PlottedSeries, Scale, ScaledGraph


def figure() -> Figure:
    """Return the traffic of one layer of the karate club, by workers."""
    karate = {"karate": ScaledGraph("karate")}
    return Figure(
        "workers",
        title="Traffic of one layer of the karate club, by workers",
        paper="none of the paper's; the example of CONTRIBUTING.md.",
        features=32,
        series=(
            PlottedSeries("BNS-GCN", "bns-gcn"),
            PlottedSeries("SwitchGNN", "paper"),
            PlottedSeries("SwitchGNN, best plan", "best"),
        ),
        panels=(Panel("(a) karate", "lines", "traffic", "workers"),),
        scales={
            "small": Scale((2, 4), ("2kB",), karate),
            "full": Scale((2, 4, 8), ("2kB",), karate, seeds=5),
        },
        claims=(Claim("traffic", "SwitchGNN", "BNS-GCN", "-", {"workers": 4}),),
    )
