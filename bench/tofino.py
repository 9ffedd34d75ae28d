"""Report what the Tofino program takes of a Tofino 2. ``make tofino`` compiles it and runs this.

What p4c's back end writes is large and not kept; the report is committed beside the sources.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from switchgnn.p4src.build import CompileError
from switchgnn.p4src.program import SOURCE_FOLDER, TOFINO

CHIP = replace(TOFINO, main=SOURCE_FOLDER / "tofino" / "switchgnn.p4")
REPORT = CHIP.compiled / "tofino2.json"
# What plans fill. A block of SRAM has 1,024 words of 128 bits.
PLAN_TABLES = ("fanout", "source", "destination", "partial", "result")
BLOCK_BYTES = 1024 * 128 // 8
# Names in the report and in the compiler's log: of a memory, its units, and the units of a row.
_MEMORIES = (
    ("sram", "rams", "srams", "nColumns"),
    ("tcam", "tcams", "tcams", "nColumns"),
    ("map_rams", "map_rams", "maprams", "nUnits"),
)
_REGISTERS = ("stateful_ram", "statistics_ram")
_PATH = re.compile(r"Critical path length through the table dependency graph: (\d+)")
_Item = tuple[int, str, str, str]


def read_compilation(folder: Path) -> dict[str, Any]:
    """Return the report of a compilation that p4c's Tofino back end wrote into a folder."""
    try:
        manifest = _load(folder / "manifest.json")
        names = [pipe["pipe_name"] for pipe in manifest["programs"][0]["pipes"]]
        pipelines = {name: _pipeline(folder / name / "logs") for name in names}
        tables = tables_of(_load(folder / "p4info.json"))
    except (OSError, ValueError, LookupError) as error:
        raise CompileError(f"{folder} has no compilation of `make tofino`: {error}.") from error
    blocks = sum(sum(each["plan_tables"].values()) for each in pipelines.values())
    return {
        "compiler": manifest["compiler_version"],
        "sources": CHIP.digest(),
        "table_bytes": blocks * BLOCK_BYTES,
        "pipelines": pipelines,
        "tables": tables,
    }


def tables_of(p4info: Mapping[str, Any]) -> dict[str, str]:
    """Return what a controller writes into each table of a P4Info in JSON: names and bits."""

    def bits(fields: Iterable[Mapping[str, Any]]) -> str:
        return " ".join(f"{each['name']}:{each['bitwidth']}" for each in fields)

    def name_of(each: Mapping[str, Any]) -> str:
        return str(each["preamble"]["name"].rpartition(".")[2])

    actions = {
        each["preamble"]["id"]: f"{name_of(each)}({bits(each.get('params', ()))})"
        for each in p4info["actions"]
    }
    return {
        name_of(table): "; ".join(
            (
                table["size"],
                bits(table["matchFields"]),
                *(actions[each["id"]] for each in table["actionRefs"]),
            )
        )
        for table in p4info["tables"]
        if not table.get("isConstTable")
    }


def _load(path: Path) -> Any:  # noqa: ANN401 - JSON may hold anything
    return json.loads(path.read_text(encoding="utf-8"))


def _pipeline(logs: Path) -> dict[str, Any]:
    resources = _load(logs / "resources.json")["resources"]
    stages, of = resources["mau"]["mau_stages"], resources["mau"]["nStages"]
    containers = [each["units"] for kind in resources["phv_containers"].values() for each in kind]
    path = _PATH.findall((logs / "table_summary.log").read_text(encoding="utf-8"))[-1]
    items = [item for stage in stages for item in _items(stage)]
    used = Counter(kind for _, kind, *_ in items)
    report: dict[str, Any] = {
        "stages": {"used": len(stages), "of": of},
        "critical_path": int(path),
        "phv": {"used": len(_load(logs / "phv.json")["containers"]), "of": sum(containers)},
    }
    for kind, memory, _, width in _MEMORIES:
        units = stages[0][memory]["nRows"] * stages[0][memory][width]
        report[kind] = {"used": used[kind], "of": of * units}
    tables = (name.rpartition(".")[2] for _, kind, name, use in items if _of_table(kind, use))
    report["plan_tables"] = Counter(table for table in tables if table in PLAN_TABLES)
    return {**report, "controls": _controls(items)}


def _of_table(kind: str, use: str) -> bool:
    return kind == "sram" and use not in _REGISTERS


def _items(stage: Mapping[str, Any]) -> Iterator[_Item]:
    """Yield each table and each used block: its stage, its kind, whose it is and what for."""
    number = stage["stage_number"]
    for table in stage["logical_tables"]["ids"]:
        yield number, "tables", table["table_name"], ""
    for kind, memory, units, _ in _MEMORIES:
        for unit in stage[memory][units]:
            usage = unit["usages"][0]
            yield number, kind, usage["used_by"].partition("$")[0], usage["used_for"]


def _controls(items: Iterable[_Item]) -> dict[str, dict[str, Any]]:
    """Return what each P4 control uses: its stages, and its number of tables and blocks."""
    found: dict[str, dict[str, Any]] = {}
    for stage, kind, name, _ in items:
        empty = {"stages": [], "tables": 0, **{memory: 0 for memory, *_ in _MEMORIES}}
        own = found.setdefault(_control(name), empty)
        own[kind] += 1
        own["stages"] = sorted({*own["stages"], stage})
    return dict(sorted(found.items()))


def _control(name: str) -> str:
    """Return the control of a table or register; the compiler makes tables of statements, too."""
    _, *path = name.split(".")
    inside = path[path[:1] in (["part"], ["egress"]) :]
    return ".".join(inside[: 2 if inside[:1] == ["arrival"] else 1]) or "statements"


def main(folder: Path) -> None:
    """Write the report of the compilation in FOLDER beside the sources, a line per control."""
    try:
        text = json.dumps(read_compilation(folder), indent=1)
    except CompileError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from error
    lines = re.sub(r"\{[^{}()]*\}", lambda found: " ".join(found[0].split()), text)
    REPORT.write_text(f"{lines}\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
