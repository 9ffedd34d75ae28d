"""Writes numbers that commands print into the documents, between markers of Cog.

`<!-- [[[cog put("rows") ]]] -->` and `<!-- [[[end]]] -->` enclose what NUMBERS has by that name.
`make numbers` makes all of it again; the tests make what is exact again, and compare.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any

from inventory import core_table, error_tree

_ROOT = Path(__file__).parents[2]
_SWITCHGNN = Path(sys.executable).parent / "switchgnn"
# A folder with the public graphs that some tables need; without it these tables stay as they are.
_GRAPHS = "SWITCHGNN_GRAPHS"
# Set by `make numbers`: times are measured again, too.
_ALL = "SWITCHGNN_NUMBERS"
_FACEBOOK, _PHOTO, _CORA = "facebook_edges.csv", "amazon_photo.npz", "ind.cora.x"

Report = Mapping[str, Any]
Row = Iterable[object]


@dataclass(frozen=True)
class Numbers:
    """What one pair of markers encloses.

    Attributes:
        make: returns the lines.
        files: of the folder of graphs, without which it cannot be made.
        exact: whether it is the same on every machine, and made within a minute or two.
    """

    make: Callable[[], str]
    files: tuple[str, ...] = ()
    exact: bool = True

    def can_be_made(self) -> bool:
        """Return whether this machine has what it takes, and is asked for it."""
        there = all((_graphs() / name).exists() for name in self.files)
        return there and (self.exact or bool(os.environ.get(_ALL)))


def put(name: str) -> None:
    """Write the numbers of that name to the document that Cog reads, or leave what it has."""
    import cog  # noqa: PLC0415 - exists only while Cog runs

    numbers = NUMBERS[name]
    cog.out(f"\n{numbers.make()}\n\n" if numbers.can_be_made() else cog.previous)


def _graphs() -> Path:
    return Path(os.environ.get(_GRAPHS, _ROOT / "data")).absolute()


def _run(command: str) -> str:
    words = [
        str(_graphs() / word) if word in (_FACEBOOK, _PHOTO) else word for word in command.split()
    ]
    done = subprocess.run([_SWITCHGNN, *words], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def _plans(commands: Iterable[str]) -> list[Report]:
    """Return what `switchgnn plan … --json` prints, in the order of the commands."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [json.loads(text) for text in pool.map(lambda c: _run(f"plan {c} --json"), commands)]


def _table(head: str, rows: Iterable[Row]) -> str:
    """Return a table of Markdown; whole numbers get separators, others three digits."""
    names = [name.strip() for name in head.split("|")]
    lines = [names, ["---"] * len(names), *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |".replace("  ", " ") for line in lines)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _forward(report: Report) -> Report:
    found: Report = report["directions"]["forward"]
    return found


def _bytes(report: Report, way: str) -> int:
    """Return the bytes on all links both ways of one exchange, with acknowledgements."""
    return int(report["loads"][way]["up"] + report["loads"][way]["down"])


def _pays() -> str:
    graphs = (
        ("digits:80", 128),
        ("digits:80", 64),
        ("digits:80", 10),
        ("digits", 64),
        ("digits", 10),
    )
    made = _plans(f"{graph} --workers 8 --slots 4096 --features {width}" for graph, width in graphs)
    return _table(
        "graph | numbers of a row | MB of the switch | `host` | `host-partial`",
        (
            (
                f"`{graph}`",
                width,
                f"{_bytes(report, 'switch') / 1e6:.2f}",
                *(
                    f"{_bytes(report, way) / _bytes(report, 'switch'):.2f} times"
                    for way in ("host", "host-partial")
                ),
            )
            for (graph, width), report in zip(graphs, made, strict=True)
        ),
    )


def _rows() -> str:
    graphs = (("karate", 4), ("digits", 4), ("digits", 8), ("random:2000:20000:1", 8))
    made = _plans(
        f"{graph} --workers {n} --slots 256 --features 32 --strategy paper" for graph, n in graphs
    )
    return _table(
        "graph | workers | rows of `host` | of `switch`, up and down each "
        "| kB of `host` | `host-partial` | `switch`",
        (
            (
                f"`{graph}`",
                n,
                report["host_packets"] // 2,
                report["packets_up"],
                *(
                    f"{_bytes(report, way) / 1000:,.1f}"
                    for way in ("host", "host-partial", "switch")
                ),
            )
            for (graph, n), report in zip(graphs, made, strict=True)
        ),
    )


def _table_bytes() -> str:
    graphs = (
        ("reddit-like:0.02:0", 32, 500),
        ("products-like:0.005:0", 32, 1000),
        ("digits", 8, 128),
    )
    cases = [(*graph, strategy) for graph in graphs for strategy in ("paper", "best")]
    made = _plans(
        f"{graph} --workers {n} --slots {size} --strategy {strategy} --pools 1"
        for graph, n, size, strategy in cases
    )
    return _table(
        "graph, workers, slots | strategy | contributions | passes | fanout entries "
        "| bytes of `fanout` | bytes of all tables | of all, per contribution",
        (
            (
                f"`{graph}`, {n}, {size:,}" if strategy == "paper" else "",
                f"`{strategy}`",
                *(report[key] for key in ("contributions", "passes")),
                report["entries"]["fanout"],
                report["table_bytes"]["fanout"],
                report["table_bytes_sum"],
                f"{report['table_bytes_sum'] / report['contributions']:.1f}",
            )
            for (graph, n, size, strategy), report in zip(cases, made, strict=True)
        ),
    )


# Boundary vertices of Facebook pages by workers, and the shares of them that get a slot (S/B).
_BOUNDARY = {4: 6297, 32: 10891}
_SHARES = ("0.50", "0.10", "0.02")


def _places(workers: int, share: str) -> int:
    return int(float(share) * _BOUNDARY[workers])


def _facebook(workers: int, share: str, options: str = "") -> str:
    size = _places(workers, share)
    paper = f"--slots {size} --features 32 --strategy paper"
    return f"{_FACEBOOK} --workers {workers} {paper} {options}"


def _slots() -> str:
    cases = [(workers, share) for workers in _BOUNDARY for share in _SHARES]
    made = _plans(_facebook(*case) for case in cases)
    return _table(
        "workers | S/B | slots | blocks | traffic | passes",
        (
            (n, share, _places(n, share), *(report[key] for key in _BLOCKS))
            for (n, share), report in zip(cases, made, strict=True)
        ),
    )


_BLOCKS = ("blocks", "traffic_fraction", "passes")


def _covers() -> str:
    cases = [(workers, share) for workers in _BOUNDARY for share in _SHARES]
    plain, cover = (
        _plans(_facebook(*case, f"--send {send}") for case in cases)
        for send in ("multicast", "cover")
    )
    keys = ("packets_up", "traffic_fraction", "contributions", "passes")
    return _table(
        "workers | S/B | down | "
        + " | ".join(f"{key}: `multicast` | `cover`" for key in ("up", "traffic", *keys[2:])),
        (
            (
                n,
                share,
                one["packets_down"],
                *(report[key] for key in keys for report in (one, other)),
            )
            for (n, share), one, other in zip(cases, plain, cover, strict=True)
        ),
    )


def _block_strategies() -> str:
    names = ("mlgp", "destination", "destination-cover", "hypergraph", "hypergraph-cover")
    cases = [(share, blocks) for share in _SHARES for blocks in names]
    plain, cover = (
        _plans(_facebook(32, share, f"--blocks {blocks} --send {send}") for share, blocks in cases)
        for send in ("multicast", "cover")
    )
    return _table(
        "S/B | blocks by | blocks | traffic | with `cover` | passes per boundary edge",
        (
            (
                share if blocks == "mlgp" else "",
                f"`{blocks}`",
                one["blocks"],
                one["traffic_fraction"],
                other["traffic_fraction"],
                other["passes"] / other["boundary_edges"],
            )
            for (share, blocks), one, other in zip(cases, plain, cover, strict=True)
        ),
    )


def _partitions() -> str:
    names = ("metis", "metis-volume", "metis-boundary", "g3", "random")
    best = "--strategy best --pools 1 --rows 1"
    made = _plans(_facebook(32, "0.50", f"--partition {name} {best}") for name in names)
    return _table(
        "partition | most packets of a worker | mean | rows of `host`",
        (
            (
                f"`{name}`",
                *(
                    int(sum(plan[way][key] for way in ("up", "down")))
                    for key in ("packets_max", "packets_mean")
                ),
                report["host_packets"] // 2,
            )
            for name, report in zip(names, made, strict=True)
            for plan in [_forward(report)["ways"]["plan"]]
        ),
    )


def _leaf_spine() -> str:
    graphs = (
        *(("digits", 128, n, leaves) for n, leaves in ((8, 2), (8, 4), (16, 4))),
        *(("reddit-like:0.02:0", 500, n, leaves) for n, leaves in ((8, 2), (8, 4), (16, 4))),
    )
    cases = [(*graph, cut) for graph in graphs for cut in ("metis", "metis-leaf-spine", "cdfgnn")]
    made = _plans(
        f"{graph} --workers {n} --slots {size} --leaves {leaves} --partition {cut} "
        "--strategy best --features 32"
        for graph, size, n, leaves, cut in cases
    )
    return _table(
        "graph | workers / leaves | partition | between leaves and spines | of workers",
        (
            (
                f"`{graph}`" if cut == "metis" else "",
                f"{n} / {leaves}" if cut == "metis" else "",
                f"`{cut}`",
                f"{between['packets_up']:,} + {between['packets_down']:,}",
                f"{report['packets_up']:,} + {report['packets_down']:,}",
            )
            for (graph, _, n, leaves, cut), report in zip(cases, made, strict=True)
            for between in [report["leaf_spine"]["directions"]["forward"]["ways"]["plan"]]
        ),
    )


def _loops() -> str:
    """Return the communication of the best plan by the passes per second of a switch's loop."""
    network = "simulate --graph reddit-like:0.02:0 --workers 32 --memory 200kB --delay 0.04 --json"
    best = f"{network} --system best --blocks destination-cover --switch"
    cases = [
        ("0.27·10⁹ (`tofino1`)", "tofino1"),
        ("1.06·10⁹ (`tofino2`)", "tofino2"),
        *((f"{n}·10⁹", f"tofino2 --recirculation-rate {n}e9") for n in ("1.4", "2", "4", "6", "8")),
        *((f"{n}·10⁹", f"tofino2-64 --recirculation-rate {n}e9") for n in ("1.06", "2", "4")),
    ]
    hosts = json.loads(_run(f"{network} --system bns-gcn"))["communication_seconds"]
    made = [json.loads(_run(f"{best} {switch}")) for _, switch in cases]
    return _table(
        "passes per second | slots per pass | ms of communication | of BNS-GCN | loop passes "
        "| MB of tables",
        (
            (
                title,
                report["banks"],
                report["communication_seconds"] * 1000,
                f"{report['communication_seconds'] / hosts:.0%}",
                report["loop_passes"],
                f"{report['table_bytes_sum'] / 1e6:.2f}",
            )
            for (title, _), report in zip(cases, made, strict=True)
        ),
    )


def _make_run() -> str:
    """Return what `make run` prints, without the bytes of each worker."""
    text = _run(
        "train --data digits:80 --workers 8 --epochs 20 --layers 3 --hidden 64 --dropout 0 "
        "--lr 0.05 --target embedded --fabric loopback --bandwidth 50 --transport switch "
        "--transport switch-paper --transport host --transport host-partial --transport local"
    )
    text = re.sub(r", compiled in [\d.]+ s", "", text)
    text = re.sub(r" *kB of exchanges on each.*?\n(?=Sums)", "", text, flags=re.DOTALL)
    return f"```\n{_right_stripped(text)}\n```\n\n{_when()}"


def _right_stripped(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def _when() -> str:
    """Return a sentence about the day, the commit and the machine of a measurement."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.strip()
    names = (
        line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    )
    processor = next(names, ": a processor without a name").partition(": ")[2]
    cores = len(os.sched_getaffinity(0))
    return f"Measured on {date.today()}, commit {commit}, {cores} cores of {processor}."


def _finished(options: str) -> dict[str, Report]:
    """Train over the switch and between hosts; return the last event of each transport."""
    text = _run(
        f"train {options} --workers 8 --dropout 0 --reduce gloo --json "
        "--target embedded --fabric loopback "
        "--transport switch --transport host --transport host-partial"
    )
    events = map(json.loads, text.splitlines())
    return {event["transport"]: event for event in events if event["event"] == "finished"}


def _trainings() -> str:
    cases = (
        ("`random:1600:25600:1`", 2, "random:1600:25600:1 --hidden 32 --epochs 8"),
        ("`digits:80`, 3 layers", 20, "digits:80 --layers 3 --hidden 64 --epochs 20"),
        ("Cora", 2, f"cora --root {_graphs()} --epochs 8"),
        ("Amazon Photo", 20, f"{_PHOTO} --hidden 32 --epochs 8"),
        ("Amazon Photo, 3 layers", 20, f"{_PHOTO} --layers 3 --hidden 128 --epochs 8"),
    )
    return (
        _table(
            "graph, 8 workers, GCN | Mbit/s | | `switch` | `host` | `host-partial`",
            (
                (
                    title if unit == "s per epoch" else "",
                    rate if unit == "s per epoch" else "",
                    unit,
                    *found,
                )
                for title, rate, options in cases
                for events in [_finished(f"--data {options} --bandwidth {rate}")]
                for unit, found in (
                    ("s per epoch", [f"{_seconds(event):.2f}" for event in events.values()]),
                    ("MB in all", [f"{_megabytes(event):.2f}" for event in events.values()]),
                )
            ),
        )
        + f"\n\n{_when()}"
    )


def _seconds(event: Report) -> float:
    return float(event["epoch_seconds"])


def _megabytes(event: Report) -> float:
    return float(sum(link["up"] + link["down"] for link in event["bytes_per_link"]) / 1e6)


def _cora() -> str:
    """Return accuracies of the seeds 0 to 4, and how far losses are from those of one process."""
    rows = []
    for seed in range(5):
        text = _run(
            f"train --data cora --root {_graphs()} --workers 4 --seed {seed} --fabric loopback "
            "--target embedded --transport switch --transport local --json"
        )
        events = [
            event for event in map(json.loads, text.splitlines()) if event["event"] == "finished"
        ]
        losses = zip(*(event["losses"] for event in events), strict=True)
        off = max(abs(one - other) for one, other in losses)
        rows.append((seed, *(f"{event['test_accuracy']:.1%}" for event in events), f"{off:.1e}"))
    head = "seed | test accuracy with `switch` | `local` | losses differ by up to"
    return f"{_table(head, rows)}\n\n{_when()}"


def _layers() -> str:
    """Return what travels for each layer, from the registry that refuses others."""
    from switchgnn.training.layers.pyg_layers import KINDS  # noqa: PLC0415

    rows = [
        (
            f"`{kind.__name__}`",
            ", ".join(dict.fromkeys(aggregations)),
            "sums",
            "yes" if "edge_weight" in signature(kind.forward).parameters else "",
            "all",
        )
        for kind, aggregations, _ in KINDS
    ]
    rows += [
        ("the same", "others, or several", "copies of rows", "", "`host`, `local`"),
        ("others, such as `GATConv`", "any", "copies of rows", "", "`host`, `local`"),
    ]
    return _table("layer | aggregation | what travels | edge weights | transports", rows)


NUMBERS: Mapping[str, Numbers] = {
    "core": Numbers(core_table),
    "errors": Numbers(error_tree),
    "layers": Numbers(_layers, exact=find_spec("torch_geometric") is not None),
    "pays": Numbers(_pays),
    "rows": Numbers(_rows),
    "table_bytes": Numbers(_table_bytes),
    "slots": Numbers(_slots, (_FACEBOOK,)),
    "covers": Numbers(_covers, (_FACEBOOK,)),
    "block_strategies": Numbers(_block_strategies, (_FACEBOOK,), exact=False),
    "partitions": Numbers(_partitions, (_FACEBOOK,)),
    "leaf_spine": Numbers(_leaf_spine),
    "loops": Numbers(_loops, exact=False),
    "make_run": Numbers(_make_run, exact=False),
    "trainings": Numbers(_trainings, (_PHOTO, _CORA), exact=False),
    "cora": Numbers(_cora, (_CORA,), exact=False),
}
