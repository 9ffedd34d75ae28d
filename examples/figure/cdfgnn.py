"""CDFGNN's figures 5 to 8 in small: `python examples/figure/cdfgnn.py FOLDER`, in five minutes.

Hosts gather and scatter the sums of replicas; with the switch they meet in a slot. Figure 5 is
simulated, and the others train on the digits with four workers on this machine.
"""

import csv
import json
import subprocess
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

CUT = ("--partition", "vertex-cut")
# Of each system: its options of `simulate`.
SYSTEMS = {
    "BNS-GCN": ("--system", "bns-gcn"),
    "G3": ("--system", "g3"),
    "CDFGNN, hosts": ("--system", "cdfgnn"),
    "the same cut, switch": ("--system", "best", *CUT, "--memory", "1MB", "--switch", "tofino2"),
}
GRAPH, WORKERS = "reddit-like:0.02:0", (4, 8, 16, 32, 64)
NETWORK = ("--graph", GRAPH, "--delay", "0.04")
# Of each saving: its options of `train`.
SAVINGS = {
    "none": (),
    "cache": ("--cache", "auto"),
    "16 bits": ("--bits", "16"),
    "8 bits": ("--bits", "8"),
    "cache, 8 bits": ("--cache", "auto", "--bits", "8"),
}
BOTH = "cache, 8 bits"
TRANSPORTS = {"hosts": "host", "switch": "switch"}
EPOCHS = 60
Table = list[dict[str, Any]]


def switchgnn(*words: object) -> dict[str, Any]:
    """Return the report of a command."""
    command = [sys.executable, "-m", "switchgnn", *map(str, words), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def train(*words: object) -> dict[str, Any]:
    """Return the report of a training that evaluates often."""
    every = ("--epochs", EPOCHS, "--evaluate-every", 2, "--reduce", "gloo")
    return switchgnn("train", "--data", "digits", *every, *words)


def simulated_epochs() -> Table:
    """Simulate an epoch of each system, by workers."""
    found = []
    for name, words in SYSTEMS.items():
        for workers in WORKERS:
            told = switchgnn("simulate", *NETWORK, "--workers", workers, *words)
            times = {it: 1e3 * told[f"{it}_seconds"] for it in ("epoch", "communication")}
            found.append({"system": name, "workers": workers, **times, "bytes": told["bytes"]})
    return found


def savings(runs: Mapping[tuple[str, str], dict[str, Any]]) -> Table:
    """Return bytes and seconds of the exchanges of an epoch."""
    return [
        {
            "transport": transport,
            "saving": saving,
            "kilobytes": 1e-3 * sum(link["up"] for link in told["bytes_per_link"]) / EPOCHS,
            "ms": 1e3 * told["exchange_seconds"],
        }
        for (transport, saving), told in runs.items()
    ]


def messages(runs: Mapping[tuple[str, str], dict[str, Any]]) -> Table:
    """Return the share of the rows that worker 0 sends in each epoch, and the threshold."""
    found = []
    for transport in TRANSPORTS:
        epochs = [{"rows": 0, "skipped_rows": 0}, *runs[transport, BOTH]["epochs"]]
        for before, after in pairwise(epochs):
            rows, skipped = (after[name] - before[name] for name in ("rows", "skipped_rows"))
            told = {name: after[name] for name in ("epoch", "epsilon")}
            found.append({"transport": transport, "sent": 1 - skipped / rows, **told})
    return found


def accuracies(runs: Mapping[str, dict[str, Any]]) -> Table:
    """Return the accuracy on the validation set, by epoch."""
    found = [(name, epoch) for name, told in runs.items() for epoch in told["epochs"]]
    return [
        {"run": name, "epoch": epoch["epoch"], "accuracy": epoch["accuracy"]["validation"]}
        for name, epoch in found
        if epoch["accuracy"]
    ]


def lines(axes: Axes, table: Table, group: str, x: str, y: str) -> None:
    """Draw a line for each value of `group`."""
    for name in dict.fromkeys(row[group] for row in table):
        points = [(row[x], row[y]) for row in table if row[group] == name]
        axes.plot(*zip(*points, strict=True), marker="o", markersize=3, label=name)
    axes.set(xlabel=x, ylim=(0, None))
    axes.legend(fontsize="small")


def bars(axes: Axes, table: Table, y: str) -> None:
    """Draw a group of bars for each saving."""
    for at, transport in enumerate(TRANSPORTS):
        heights = [row[y] for row in table if row["transport"] == transport]
        places = [index + 0.4 * at - 0.2 for index in range(len(heights))]
        axes.bar(places, heights, 0.38, label=transport)
    axes.set_xticks(range(len(SAVINGS)), list(SAVINGS), rotation=20)
    axes.legend(fontsize="small")


DRAWN: Mapping[str, tuple[Any, ...]] = {
    f"5: ms of an epoch, {GRAPH}, simulated": (lines, "figure5", "system", "workers", "epoch"),
    "6: kB that workers send in an epoch": (bars, "figure6", "kilobytes"),
    "6: ms of an epoch's exchanges, on this machine": (bars, "figure6", "ms"),
    "7: share of the rows that are sent": (lines, "figure7", "transport", "epoch", "sent"),
    "7: threshold of the cache": (lines, "figure7", "transport", "epoch", "epsilon"),
    "8: accuracy on the validation set": (lines, "figure8", "run", "epoch", "accuracy"),
}


def main(folder: Path) -> None:
    """Write a CSV and an SVG of each figure."""
    folder.mkdir(parents=True, exist_ok=True)
    runs = {
        (label, saving): train("--workers", 4, "--transport", name, *CUT, *words)
        for label, name in TRANSPORTS.items()
        for saving, words in SAVINGS.items()
    }
    curves = {"one process": train("--workers", 1, "--transport", "local")}
    curves |= {f"{label}, {BOTH}": runs[label, BOTH] for label in TRANSPORTS}
    tables = {
        "figure5": simulated_epochs(),
        "figure6": savings(runs),
        "figure7": messages(runs),
        "figure8": accuracies(curves),
    }
    figure, panels = plt.subplots(2, 3, figsize=(15, 8), layout="constrained")
    for axes, (title, (draw, name, *columns)) in zip(panels.flat, DRAWN.items(), strict=True):
        draw(axes, tables[name], *columns)
        axes.set_title(title)
    figure.savefig(folder / "cdfgnn.svg")
    for name, table in tables.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(table[0]))
            writer.writeheader()
            writer.writerows(table)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
