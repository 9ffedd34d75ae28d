# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn plan`: plan, report, and check plans."""

import importlib
import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.files import reason_to_distrust
from switchgnn.base.machine import how_to_install
from switchgnn.base.options import DATA, NETWORK, OUTPUT, PLAN, parse_bytes, with_groups
from switchgnn.commands.plan.display import (
    COLUMNS,
    by_blocks,
    costs,
    facts,
    leaf_spine_directions,
    leaf_spine_table,
    left_out,
    orders_table,
    outlook_table,
    sizes,
    switches,
    ways_table,
    within_switch,
)
from switchgnn.commands.plan.display import as_json as report_as_json
from switchgnn.commands.plan.job import LinkOptions, PlanOptions, PlanReport, make_plan, report_plan
from switchgnn.commands.plan.plots import draw_plan_plots
from switchgnn.commands.shared.console import Steps, plain_console
from switchgnn.commands.shared.options import (
    PlanLeavesOption,
    SlotsOption,
    SpinesOption,
    StrategyOption,
    StrategyOptions,
    SwitchOption,
    TableMemoryOption,
    find_plan_leaf_spine,
)
from switchgnn.commands.shared.outputs import check_outputs
from switchgnn.controller.memory import Use
from switchgnn.host.wire.header import WIDEST
from switchgnn.planner.check.plan import check_plan, name_of_graph
from switchgnn.planner.chosen import Asked
from switchgnn.planner.costs.seconds import Network
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.bundled import is_bundled
from switchgnn.planner.graphs.load import load_graph
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.planner.plan.files import check_place, write_plan
from switchgnn.planner.presets import PAPER, slots_of_memory
from switchgnn.profiles import PlanMemory, find_profile

if TYPE_CHECKING:
    from switchgnn.training.job import Job


@dataclass(frozen=True)
class WrittenJob:
    """What was written, to be told."""

    job: "Job"

    def as_json(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self.job))

    def sentence(self, folder: Path) -> str:
        """Return it in words."""
        job = self.job
        return (
            f"Job: {folder}: {job.data} with {job.vertices:,} vertices, {job.edges:,} directed "
            f"edges, {job.features} features and {job.classes} classes, for {job.workers} workers. "
            "Copy it to each machine; a worker reads the plan and its own part."
            f"{job.why and f' {job.why}'}"
        )


def write_job_of(
    data: str,
    workers: int,
    out: Path,
    *,
    asked: Asked,
    slots: int | None,
    leaf_spine: LeafSpine | None,
    seed: int,
    network: Network,
    width: int | None,
) -> WrittenJob:
    """Plan and write a job.

    Args:
        data: the name of a data set, or its file.
        workers: their number.
        out: the folder of the job.
        asked: the strategies.
        slots: the aggregators that a block may use; None: all of the program's.
        leaf_spine: the leaves that the workers are attached to; None: a star.
        seed: of the partition, the blocks and the order.
        network: what exchanges are predicted on, for the strategy `auto`.
        width: numbers of a row in them; None: as many as a frame usually has.

    Returns:
        What was written.

    Raises:
        SwitchGNNError: PyTorch is missing, or whatever stops planning or writing.
    """
    try:
        job = importlib.import_module("switchgnn.training.job")
    except ImportError as error:
        raise SwitchGNNError(
            f"A job needs PyTorch and PyTorch Geometric, but {error.name} is missing: "
            f"{how_to_install('training')}."
        ) from error
    steps = Steps()
    with steps:
        steps.tell(f"load {data}")
        return WrittenJob(
            job.write_job(
                data,
                workers,
                out,
                asked=asked,
                slots=slots,
                leaves=leaf_spine.leaves if leaf_spine else 0,
                spines=leaf_spine.spines if leaf_spine else 1,
                seed=seed,
                network=network,
                **({} if width is None else {"width": width}),
                progress=steps.tell,
                writing=steps.finishing,
            )
        )


_KILO, _MEGA = 1e3, 1e6
# A plan has little to do with what is smaller: ports, addresses, barriers.
_SHOWN_BYTES = 1_000


def memory_table(memory: PlanMemory) -> Table:
    """Return the large tables and registers, and the sums of all."""
    title = f"memory of the {'fullest ' if memory.switches > 1 else ''}switch"
    table = Table(title=title, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("", no_wrap=True)
    for name in ("number", "room", "bits each", "size"):
        table.add_column(name, justify="right")
    for kind, uses, total in (
        ("table", memory.tables, memory.table_bytes),
        ("register", _banks_together(memory.registers), memory.register_bytes),
    ):
        for use in uses:
            if use.bytes >= _SHOWN_BYTES or not use.fits:
                table.add_row(
                    f"{kind} {use.name}",
                    f"{use.number:,}",
                    "-" if use.room is None else f"{use.room:,}",
                    f"{use.bits:,}",
                    _size(use.bytes),
                )
        table.add_row(f"all {kind}s", "", "", "", _size(total))
    return table


def _banks_together(registers: Iterable[Use]) -> list[Use]:
    """Return the registers of all banks that hold the same as one."""
    found: dict[str, Use] = {}
    for use in registers:
        name = re.sub(r"^bank\d+\.", "banks.", use.name)
        known = found.get(name, replace(use, name=name, number=0, room=0))
        room = None if known.room is None or use.room is None else known.room + use.room
        found[name] = replace(known, number=known.number + use.number, room=room)
    return list(found.values())


def _size(number: float) -> str:
    return f"{number / _MEGA:,.2f} MB" if number >= _MEGA else f"{number / _KILO:,.2f} kB"


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog="Example: switchgnn plan karate --workers 3 --slots 64 --out karate-plan")
@with_groups
def plan(
    graph: Annotated[
        str | None,
        typer.Argument(
            metavar="GRAPH",
            show_default=False,
            help="digits, karate, random:VERTICES:EDGES:SEED, reddit-like:SCALE:SEED, "
            "yelp-like:SCALE:SEED, products-like:SCALE:SEED, or a file.",
        ),
    ] = None,
    *,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=128,
            metavar="N",
            rich_help_panel=DATA,
            show_default=False,
            help="Number of workers.",
        ),
    ] = None,
    features: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=WIDEST,
            metavar="N",
            rich_help_panel=DATA,
            show_default="the graph's",
            help="Numbers per feature, for the bytes.",
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", rich_help_panel=DATA, help="For partition, blocks and order."
        ),
    ] = 0,
    directions: Annotated[
        str,
        typer.Option(
            metavar="WHICH",
            rich_help_panel=DATA,
            help="forward, or both: training sums gradients backward.",
        ),
    ] = "forward",
    strategy: StrategyOption = PAPER,
    strategies: StrategyOptions,
    slots: SlotsOption = None,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            rich_help_panel=PLAN,
            show_default=False,
            help="Instead of --slots, as 10MB: 128 bytes are a slot.",
        ),
    ] = None,
    switch: SwitchOption = None,
    table_memory: TableMemoryOption = None,
    leaves: PlanLeavesOption = None,
    spines: SpinesOption = None,
    link_rate: Annotated[
        float | None,
        typer.Option(
            metavar="RATE",
            rich_help_panel=NETWORK,
            show_default=False,
            help="Packets per second on a worker's link, for --strategy best to weigh.",
        ),
    ] = None,
    recirculation_rate: Annotated[
        float | None,
        typer.Option(
            metavar="RATE",
            rich_help_panel=NETWORK,
            show_default=False,
            help="Passes per second of the switch, for --strategy best to weigh.",
        ),
    ] = None,
    links: LinkOptions,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            rich_help_panel=OUTPUT,
            show_default=False,
            help="To write the plan to.",
        ),
    ] = None,
    plots: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            rich_help_panel=OUTPUT,
            show_default=False,
            help="For the paper's figures 1, 7, 9 and 18 of this graph, and for slots and queue "
            "over time.",
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            rich_help_panel=DATA,
            show_default=False,
            help="In place of GRAPH, with --parts: what `switchgnn train --data` takes, or a file "
            "of such a data set.",
        ),
    ] = None,
    parts: Annotated[
        bool,
        typer.Option(
            "--parts",
            rich_help_panel=OUTPUT,
            help="Write a job to --out: the plan, and each worker's part of --data.",
        ),
    ] = False,
    check: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            rich_help_panel=OUTPUT,
            show_default=False,
            help="Check the plan in it, and make none.",
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", rich_help_panel=OUTPUT, help="Print the report as JSON."),
    ] = False,
) -> None:
    """Partition a graph, form blocks, and say what that costs.

    The switch's tables are installed from the folder of --out with
    `switchgnn controller install`; each worker reads its own part of it. With
    --check, a plan on disk is compared with GRAPH, edge by edge.
    """
    if check is not None:
        _check(check, graph, as_json=as_json)
        return
    if graph is None and not parts:
        raise typer.BadParameter("give a GRAPH and --workers, or a folder to --check")
    if workers is None:
        raise typer.BadParameter("give --workers")
    check_outputs({"--plots": plots}, replaced={"--out": out})
    if out is not None and not parts:
        check_place(out)
    leaf_spine = find_plan_leaf_spine(workers, leaves, spines)
    asked = strategies.asked(strategy, leaf_spine)
    profile = None if switch is None else find_profile(switch)
    if graph is None:
        if data is None or out is None:
            raise typer.BadParameter("--parts needs --data and --out")
        if profile is not None and not profile.program_sizes:
            raise typer.BadParameter(
                "--parts is for switches that run the P4 program: --switch embedded or bmv2"
            )
        told = write_job_of(
            data,
            workers,
            out,
            asked=asked,
            slots=_slots(slots, memory),
            leaf_spine=leaf_spine,
            seed=seed,
            network=links.network(profile or find_profile("embedded"), None),
            width=features,
        )
        typer.echo(told.as_json() if as_json else told.sentence(out))
        return
    if parts or data is not None:
        raise typer.BadParameter("--parts and --data take the place of GRAPH")
    options = PlanOptions(
        graph=graph,
        workers=workers,
        slots=_slots(slots, memory),
        features=features,
        asked=asked,
        directions=directions,
        seed=seed,
        link_rate=link_rate,
        recirculation_rate=recirculation_rate,
        leaf_spine=leaf_spine,
        table_memory=None if table_memory is None else parse_bytes("--table-memory", table_memory),
        switch=profile,
        links=links,
    )
    steps = Steps()
    with steps:
        made = make_plan(options, steps.tell)
        if out is not None:
            _refuse_too_large(made.memory)
            steps.tell(f"write {out}")
            with steps.finishing():
                write_plan(made.plan, out)
        report = report_plan(made, steps.tell)
        drawn = draw_plan_plots(made, plots, steps.tell) if plots else []
    if as_json:
        typer.echo(json.dumps(report_as_json(report)))
        return
    _show(report, out, drawn)


def _refuse_too_large(memory: PlanMemory) -> None:
    if memory.refusals:
        raise PlannerError(f"{' '.join(memory.refusals)} Nothing was written.")


def _slots(slots: int | None, memory: str | None) -> int | None:
    if memory is None:
        return slots
    if slots is not None:
        raise PlannerError("give --slots or --memory, not both: a slot has 128 bytes")
    return slots_of_memory(parse_bytes("--memory", memory))


def _show(report: PlanReport, out: Path | None, drawn: list[Path]) -> None:
    console = plain_console(highlight=False, soft_wrap=True)
    console.print(facts(report))
    for names, each in by_blocks(report):
        console.print()
        if len(report.directions) > 1:
            console.print(f"{names}:")
        console.print(sizes(each))
        plain_console(highlight=False).print(ways_table(each))
        console.print()
        order = report.made.plan.manifest.strategy.order
        plain_console(highlight=False).print(orders_table(each, order))
        if missing := left_out(each, order):
            console.print(missing)
    for names, direction in leaf_spine_directions(report):
        console.print()
        if len(report.leaf_spine or {}) > 1:
            console.print(f"{names}:")
        plain_console(highlight=False).print(leaf_spine_table(direction))
        console.print(switches(direction))
    console.print()
    plain_console(highlight=False).print(outlook_table(report.outlook, len(report.directions)))
    for line in wrap(report.outlook.why, COLUMNS):
        console.print(line)
    console.print()
    memory = report.made.memory
    if (told := within_switch(report)) is not None:
        console.print(told)
        console.print()
    plain_console(highlight=False).print(memory_table(memory))
    for sentence in memory.refusals:
        console.print(f"It does not fit: {sentence}")
    console.print()
    console.print(costs(report))
    if out is not None:
        console.print(f"Plan: {out}")
    if drawn:
        console.print(f"Plots: {len(drawn)} files in {drawn[0].parent}")


def _graph_of(folder: Path) -> str:
    """Return the graph that a plan names.

    Raises:
        PlannerError: others may have chosen the name, and it is not one of those that come along:
            it could lead to any file, or to a graph that fills the memory.
    """
    name = name_of_graph(folder)
    if not is_bundled(name) and (reason := reason_to_distrust(folder)) is not None:
        raise PlannerError(
            f"{folder} is for graph {name!r}, which is not loaded because others may have chosen "
            f"that name ({reason}): switchgnn plan GRAPH --check {folder}"
        )
    return name


def _check(folder: Path, graph: str | None, *, as_json: bool) -> None:
    """Check a plan; the graph is the one that its manifest names, unless it is given."""
    name = graph if graph is not None else _graph_of(folder)
    steps = Steps()
    with steps:
        steps.tell(f"load {name}")
        try:
            loaded = load_graph(name)
        except PlannerError as error:
            if graph is not None:
                raise
            raise PlannerError(
                f"{error}; name the graph of the plan: switchgnn plan GRAPH --check {folder}"
            ) from error
        steps.tell(f"check {folder}")
        found = check_plan(folder, loaded)
    if as_json:
        typer.echo(json.dumps({"right": True, **vars(found)}))
        return
    plain_console(highlight=False, soft_wrap=True).print(
        f"{folder} is right: {found.edges:,} boundary edges, each served once, in {found.blocks:,} "
        f"blocks by {found.packets:,} packets and {found.sums:,} sums of {found.workers} workers."
    )
