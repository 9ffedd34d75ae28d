"""Whether `auto` is ever slower: `switchgnn figures never_slower.py --scale medium`."""

from dataclasses import replace

from switchgnn.lab.experiments.figure import (
    FASTEST,
    LEAST,
    MOST,
    Claim,
    Figure,
    Panel,
    PlottedSeries,
    Scale,
    ScaledGraph,
)

# Passes per second of one pipeline of a switch, and of a quarter of one and of four.
QUARTER, PIPELINE, FOUR = 0.3e9, 1.2e9, 4.8e9
RATES = {
    "0.3e9": {"recirculation": LEAST},
    "1.2e9": {"recirculation": PIPELINE},
    "4.8e9": {"recirculation": MOST},
}
PARTIAL = "copies or partial sums"
OTHERS = (
    PlottedSeries("BNS-GCN", "bns-gcn"),
    PlottedSeries(PARTIAL, "host-partial"),
    PlottedSeries("Straw", "strawman"),
    PlottedSeries("SwitchGNN", "paper"),
)
# Only `auto` is made for the loop's rate, with as many table entries as the P4 program has.
OURS = PlottedSeries("SwitchGNN, auto", "auto", switch="embedded")
# Graphs without the paper's shapes have shares as if they had them.
MEDIUM = Scale(
    (8, 32, 128),
    ("3MB", "10MB", "30MB", "100MB"),
    {
        "digits": ScaledGraph("digits", 0.01),
        "digits:80": ScaledGraph("digits:80", 0.01),
        "random": ScaledGraph("random:2000:20000:{seed}", 0.01),
        "products": ScaledGraph("products-like:0.002:{seed}", 0.002),
        "Yelp": ScaledGraph("yelp-like:0.01:{seed}", 0.01),
        "Reddit": ScaledGraph("reddit-like:0.02:{seed}", 0.02),
    },
    recirculation_rates=(QUARTER, PIPELINE, FOUR),
)
FEW = {name: MEDIUM.graphs[name] for name in ("digits:80", "Reddit")}
LARGER = {
    "random": ScaledGraph("random:20000:400000:{seed}", 0.1),
    "products": ScaledGraph("products-like:0.02:{seed}", 0.02),
    "Yelp": ScaledGraph("yelp-like:0.05:{seed}", 0.05),
    "Reddit": ScaledGraph("reddit-like:0.1:{seed}", 0.1),
}


def figure() -> Figure:
    """Return heat maps of the communication of `auto` over that of the fastest other system."""
    return Figure(
        "never-slower",
        title="Communication of auto (switch, hosts or both, as predicted) over the fastest other "
        "system (blue: below 1; red: above)",
        paper="none of the paper's: auto, which is the switch, hosts or both, beside hosts alone, "
        "with copies and with copies or partial sums, the strawman and the paper's plan.",
        panel_height=6.0,
        series=(*OTHERS, OURS),
        panels=tuple(
            Panel(
                f"({letter}) {rate} passes/s",
                "ratios",
                "communication",
                "memory",
                where,
                of=OURS.label,
            )
            for letter, (rate, where) in zip("abc", RATES.items(), strict=True)
        ),
        scales={
            "small": replace(MEDIUM, workers=(32,), memory=("10MB", "100MB"), graphs=FEW),
            "medium": MEDIUM,
            "full": replace(MEDIUM, graphs={**MEDIUM.graphs, **LARGER}),
        },
        claims=tuple(
            Claim("communication", OURS.label, other, "-", where, times=True)
            for other in (FASTEST, PARTIAL)
            for where in RATES.values()
        ),
    )
