"""Writes numbers that commands print into the documents, between markers of Cog.

`<!-- [[[cog put("rows") ]]] -->` and `<!-- [[[end]]] -->` enclose what NUMBERS has by that name.
`make numbers` writes all of it again, and the tests compare what is the same on every machine.
"""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
_SWITCHGNN = Path(sys.executable).parent / "switchgnn"
# Set by `make numbers`: times are measured again, too.
_ALL = "SWITCHGNN_NUMBERS"
_PRODUCT = ("switchgnn", "p4src", "controller", "host", "topologies")
_BASE = "SwitchGNNError"
# Where to begin, what it is, and the entries of CORE in tests/test_structure.py.
_CORE = (
    ("p4src/ingress.p4", "the P4 program; its `apply` is a table of contents", ("p4src",)),
    (
        "controller/install.py",
        "a plan becomes tables; `controls/` has a class per P4 control",
        ("controller",),
    ),
    (
        "host/innetwork/exchange.py",
        "a worker's rounds: blocks, windows, barriers, sums",
        ("host/innetwork",),
    ),
    ("host/wire/header.py", "the packet format, links, the native receive path", ("host/wire",)),
    (
        "switchgnn/planner/build.py",
        "graph to plan: partition, blocks, order, slots",
        ("switchgnn/planner",),
    ),
)

Report = Mapping[str, Any]
Case = Sequence[Any]


def put(name: str) -> None:
    """Write the numbers of that name to the document that Cog reads, or leave what it has."""
    import cog  # noqa: PLC0415 - exists only while Cog runs

    text = NUMBERS[name]()
    cog.out(cog.previous if text is None else f"\n{text}\n\n")


def _run(command: str) -> str:
    done = subprocess.run(
        [_SWITCHGNN, *command.split()], stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def _plans(
    head: str, options: str, cases: Sequence[Case], row: Callable[[Case, Report], Iterable[object]]
) -> str:
    """Return a table with a row for each plan that `switchgnn plan … --json` reports.

    Args:
        head: the names of the columns, separated by bars.
        options: of the command, with a place in braces for each value of a case.
        cases: a plan each.
        row: returns the cells of a case and its report.
    """
    commands = [f"plan {options.format(*case)} --json" for case in cases]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        reports = [json.loads(text) for text in pool.map(_run, commands)]
    return _table(head, (row(*each) for each in zip(cases, reports, strict=True)))


def _table(head: str, rows: Iterable[Iterable[object]]) -> str:
    """Return a table of Markdown; whole numbers get separators."""
    names = [name.strip() for name in head.split("|")]
    cells = ([f"{it:,}" if isinstance(it, int) else str(it) for it in row] for row in rows)
    lines = [names, ["---"] * len(names), *cells]
    return "\n".join(f"| {' | '.join(line)} |".replace("  ", " ") for line in lines)


def _bytes(report: Report, way: str) -> int:
    """Return the bytes on all links both ways of one exchange, with acknowledgements."""
    return int(report["loads"][way]["up"] + report["loads"][way]["down"])


def _pays() -> str:
    def row(case: Case, report: Report) -> Iterable[object]:
        switch = _bytes(report, "switch")
        yield from (f"`{case[0]}`", case[1], f"{switch / 1e6:.2f}")
        for way in ("host", "host-partial"):
            yield f"{_bytes(report, way) / switch:.2f} times"

    return _plans(
        "graph | numbers of a row | MB of the switch | `host` | `host-partial`",
        "{} --workers 8 --slots 4096 --features {}",
        [("digits:80", 128), ("digits:80", 64), ("digits:80", 10), ("digits", 64), ("digits", 10)],
        row,
    )


def _rows() -> str:
    def row(case: Case, report: Report) -> Iterable[object]:
        yield from (f"`{case[0]}`", case[1], report["host_packets"] // 2, report["packets_up"])
        for way in ("host", "host-partial", "switch"):
            yield f"{_bytes(report, way) / 1000:,.1f}"

    return _plans(
        "graph | workers | rows of `host` | of `switch`, up and down each "
        "| kB of `host` | `host-partial` | `switch`",
        "{} --workers {} --slots 256 --features 32 --strategy paper",
        [("karate", 4), ("digits", 4), ("digits", 8), ("random:2000:20000:1", 8)],
        row,
    )


def _table_bytes() -> str:
    def row(case: Case, report: Report) -> Iterable[object]:
        graph, workers, slots, strategy = case
        yield f"`{graph}`, {workers}, {slots:,}" if strategy == "paper" else ""
        yield f"`{strategy}`"
        yield from (report[key] for key in ("contributions", "passes"))
        yield from (report["entries"]["fanout"], report["table_bytes"]["fanout"])
        yield report["table_bytes_sum"]
        yield f"{report['table_bytes_sum'] / report['contributions']:.1f}"

    graphs = (
        ("reddit-like:0.02:0", 32, 500),
        ("products-like:0.005:0", 32, 1000),
        ("digits", 8, 128),
    )
    return _plans(
        "graph, workers, slots | strategy | contributions | passes | fanout entries "
        "| bytes of `fanout` | bytes of all tables | of all, per contribution",
        "{} --workers {} --slots {} --strategy {} --pools 1",
        [(*graph, strategy) for graph in graphs for strategy in ("paper", "best")],
        row,
    )


def _leaf_spine() -> str:
    def row(case: Case, report: Report) -> Iterable[object]:
        graph, workers, _, leaves, cut = case
        yield from (f"`{graph}`", f"{workers} / {leaves}") if cut == "metis" else ("", "")
        yield f"`{cut}`"
        between = report["leaf_spine"]["directions"]["forward"]["ways"]["plan"]
        for links in (between, report):
            yield f"{links['packets_up']:,} + {links['packets_down']:,}"

    graphs = (
        ("digits", 8, 128, 2),
        ("digits", 8, 128, 4),
        ("reddit-like:0.02:0", 8, 500, 4),
        ("reddit-like:0.02:0", 16, 500, 4),
    )
    return _plans(
        "graph | workers / leaves | partition | between leaves and spines | of workers",
        "{} --workers {} --slots {} --leaves {} --partition {} --strategy best --features 32",
        [(*graph, cut) for graph in graphs for cut in ("metis", "metis-leaf-spine")],
        row,
    )


def _layers() -> str | None:
    """Return what travels for each layer, from the registry that refuses others."""
    if find_spec("torch_geometric") is None:
        return None
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


def _tofino2() -> str:
    """Return what the compiled Tofino program takes of a chip, in all and by control."""

    def row(pipeline: str, found: Report) -> Iterator[str]:
        yield f"`{pipeline}`"
        yield from (
            f"{found[it]['used']} of {found[it]['of']:,}" for it in ("stages", "sram", "tcam")
        )
        yield "; ".join(
            f"`{name}` {own['sram']} + {own['tcam']} in {str(own['stages'])[1:-1]}"
            for name, own in sorted(found["controls"].items(), key=lambda it: -it[1]["sram"])
        )

    report = json.loads((_ROOT / "p4src/tofino/compiled/tofino2.json").read_text())
    head = "pipeline | stages | SRAM | TCAM | of its controls: blocks of SRAM + TCAM, and stages"
    return _table(head, (row(*each) for each in report["pipelines"].items()))


def _make_run() -> str | None:
    """Return what `make run` prints, without the bytes of each worker, and where it ran."""
    if not os.environ.get(_ALL):
        return None
    text = _run(
        "train --data digits:80 --workers 8 --epochs 20 --layers 3 --hidden 64 --dropout 0 "
        "--lr 0.05 --target embedded --fabric loopback --bandwidth 50 --transport switch "
        "--transport switch-paper --transport host --transport host-partial --transport local"
    )
    text = re.sub(r", compiled in [\d.]+ s", "", text)
    text = re.sub(r" *kB of exchanges on each.*?\n(?=Sums)", "", text, flags=re.DOTALL)
    text = re.sub(r" +$", "", text, flags=re.MULTILINE).strip("\n")
    git = ["git", "rev-parse", "--short=8", "HEAD"]
    commit = subprocess.run(git, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    (name, *_) = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text()) or [
        "unknown"
    ]
    where = f"commit {commit.strip()}, {len(os.sched_getaffinity(0))} cores of {name}"
    return f"```\n{text}\n```\n\nMeasured on {date.today()}, {where}."


def _core() -> str:
    """Return the rows of the core path with its lines, to the nearest hundred."""
    from tests.test_structure import CORE, MOST_LINES_OF, NOT_CORE, size_of  # noqa: PLC0415

    def lines(entries: Iterable[str]) -> int:
        rooms = tuple(entries)
        parts = [part for part in CORE if part.startswith(rooms)]
        aside = [part for part in NOT_CORE if part.startswith(rooms)]
        return size_of(_ROOT, parts).lines - size_of(_ROOT, aside).lines

    rows = [
        f"| [{file}]({file}) | {what} | {round(lines(entries), -2):,} |"
        for file, what, entries in _CORE
    ]
    total = f"| | at most {MOST_LINES_OF['core']:,} (`tests/test_structure.py`) | |"
    return "\n".join(("| begin with | | lines |", "|---|---|---|", *rows, total))


def _errors() -> str:
    """Return all errors of the product: those below the base, and the names of their kinds."""
    bases, where, what = {}, {}, {}
    for name, node, file in _classes():
        bases[name] = [ast.unparse(base) for base in node.bases]
        where[name] = file.relative_to(_ROOT).as_posix()
        what[name] = (ast.get_docstring(node) or "").partition("\n")[0]

    def kinds(base: str) -> Iterator[str]:
        for name in sorted(name for name, of in bases.items() if base in of):
            yield name
            yield from kinds(name)

    def line(name: str) -> str:
        more = ", ".join(f"`{each}`" for each in kinds(name))
        said = f"- `{name}` ({where[name]}): {what[name]}"
        return f"{said} Its kinds: {more}." if more else said

    return "\n".join(line(name) for name in sorted(bases) if _BASE in bases[name])


def _classes() -> Iterator[tuple[str, ast.ClassDef, Path]]:
    for room in _PRODUCT:
        for file in sorted((_ROOT / room).rglob("*.py")):
            # The package links to the other rooms.
            if not any(each.is_symlink() for each in (file, *file.parents)):
                for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                    if isinstance(node, ast.ClassDef):
                        yield node.name, node, file


# None stands for numbers that cannot be made here.
NUMBERS: Mapping[str, Callable[[], str | None]] = {
    "core": _core,
    "errors": _errors,
    "layers": _layers,
    "pays": _pays,
    "rows": _rows,
    "table_bytes": _table_bytes,
    "leaf_spine": _leaf_spine,
    "make_run": _make_run,
    "tofino2": _tofino2,
}
