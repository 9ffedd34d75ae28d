"""`switchgnn plan`: plan, report, and check plans."""

import json
from dataclasses import asdict
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import typer

from switchgnn.base.files import reason_to_distrust
from switchgnn.base.machine import Amount
from switchgnn.base.options import with_groups
from switchgnn.commands.plan import display
from switchgnn.commands.plan.job import PlanOptions, PlanReport, make_plan, report_plan
from switchgnn.commands.shared.console import Steps, plain_console
from switchgnn.commands.shared.outputs import check_outputs
from switchgnn.jobs.plots import draw_plan_plots
from switchgnn.jobs.workers import import_training
from switchgnn.planner import PlannerError, PlanRequest, load_graph, read_manifest, write_plan
from switchgnn.planner.check.plan import check_plan
from switchgnn.planner.graphs.load import is_bundled
from switchgnn.planner.plan.files import check_target
from switchgnn.profiles import UNLIMITED, find_profile
from switchgnn.training.data.partition import machines_of

if TYPE_CHECKING:
    from switchgnn.training.job import Job


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog="Example: switchgnn plan karate --workers 3 --slots 64 --out karate-plan")
@with_groups
def plan(asked: PlanOptions) -> None:
    """Partition a graph, form blocks, and report the costs.

    `switchgnn controller install` installs the switch's tables from the folder
    of --out, and each worker reads its own part there. --check compares a plan
    on disk with GRAPH, edge by edge.
    """
    graph = asked.graph
    if asked.check is not None:
        _check(asked.check, graph, asked)
        return
    if graph is None and not asked.parts:
        raise typer.BadParameter("give a GRAPH and --workers, or a folder to --check")
    if asked.workers is None:
        raise typer.BadParameter("give --workers")
    check_outputs({"--plots": asked.plots}, replaced={"--out": asked.out})
    if graph is None:
        _write_job(asked, asked.workers)
        return
    if asked.out is not None and not asked.parts:
        check_target(asked.out)
    if asked.parts or asked.data or asked.transport or asked.workers_per_machine > 1:
        raise typer.BadParameter("--parts, --data, --transport, --per-machine: leave out GRAPH")
    if asked.weights.edge_weights:
        raise typer.BadParameter("--edge-weights needs --parts: a plan alone has no weights")
    with Steps() as steps:
        made = make_plan(asked, graph, asked.workers, steps.tell)
        if asked.out is not None:
            if made.memory.refusals:
                raise PlannerError(f"{' '.join(made.memory.refusals)} Nothing was written.")
            steps.tell(f"write {asked.out}")
            with steps.finishing():
                write_plan(made.plan, asked.out)
        report = report_plan(made, steps.tell)
        drawn = []
        if asked.plots:
            drawn = draw_plan_plots(made.plan, made.graph, asked.plots, steps.tell)
    if asked.as_json:
        typer.echo(json.dumps(display.as_json(report)))
    else:
        _show(report, asked.out, drawn)


def _write_job(asked: PlanOptions, workers: int) -> None:
    job = import_training("job", "A job")
    each = asked.workers_per_machine
    leaf_spine = asked.topology.leaf_spine(machines_of(workers, each))
    strategies = asked.strategies.request(leaf_spine)
    profile, data, out = asked.memory.profile, asked.data, asked.out
    if data is None or out is None:
        raise typer.BadParameter("--parts needs --data and --out")
    if profile is not None and (profile.program != UNLIMITED.program or not profile.program_sizes):
        raise typer.BadParameter(
            "--parts is for switches that run the P4 program: --switch embedded or bmv2"
        )
    with Steps() as steps:
        steps.tell(f"load {data}")
        written: Job = job.write_job(
            job.load_dataset(data, edge_weights=asked.weights.asked),
            workers,
            out,
            workers_per_machine=each,
            request=strategies,
            slots=asked.slots_of(),
            leaves=leaf_spine.leaves if leaf_spine else 0,
            spines=leaf_spine.spines if leaf_spine else 1,
            seed=asked.seed,
            transports=asked.transport or (),
            network=asked.links.network(profile or find_profile("embedded"), None),
            **({} if asked.features is None else {"width": asked.features}),
            progress=steps.tell,
            writing=steps.finishing,
        )
    if asked.as_json:
        typer.echo(json.dumps(asdict(written)))
        return
    typer.echo(
        f"Job: {out}: {written.data} with {Amount(written.vertices):vertex}, "
        f"{Amount(written.edges):directed edge}, {Amount(written.features):feature} and "
        f"{Amount(written.classes):class}, for {Amount(written.workers):worker}. Copy it to each "
        f"machine; a worker reads the plan and its own part.{written.why and f' {written.why}'}"
    )


def _show(report: PlanReport, out: Path | None, drawn: list[Path]) -> None:
    console, tables = plain_console(highlight=False, soft_wrap=True), plain_console(highlight=False)
    console.print(display.facts(report))
    order = report.made.plan.manifest.strategy.order
    for names, each in display.alike_together(report.directions):
        console.print()
        if len(report.directions) > 1:
            console.print(f"{names}:")
        console.print(display.sizes(each))
        tables.print(display.ways_table(each))
        console.print()
        tables.print(display.orders_table(each, order))
        if missing := display.left_out(each, order):
            console.print(missing)
    for names, direction in display.alike_together(report.leaf_spine):
        console.print()
        if len(report.leaf_spine or {}) > 1:
            console.print(f"{names}:")
        tables.print(display.leaf_spine_table(direction))
        console.print(display.switches(direction))
    console.print()
    tables.print(display.outlook_table(report.outlook, len(report.directions)))
    for line in wrap(report.outlook.why, display.COLUMNS):
        console.print(line)
    console.print()
    if (limits := display.within_switch(report)) is not None:
        console.print(limits)
        console.print()
    memory = report.made.memory
    tables.print(display.memory_table(memory))
    for sentence in memory.refusals:
        console.print(f"It does not fit: {sentence}")
    console.print()
    console.print(display.costs(report))
    if out is not None:
        console.print(f"Plan: {out}")
    if drawn:
        console.print(f"Plots: {Amount(len(drawn)):file} in {drawn[0].parent}")


def _graph_of(folder: Path) -> str:
    """Return the graph that a plan names.

    A name from other users is accepted for bundled graphs only: it could lead to any file, or to a
    graph that fills the memory.
    """
    name = read_manifest(folder).graph.name
    if not is_bundled(name) and (reason := reason_to_distrust(folder)) is not None:
        raise PlannerError(
            f"{folder} is for graph {name!r}, which is not loaded because others may have chosen "
            f"that name ({reason}): switchgnn plan GRAPH --check {folder}."
        )
    return name


def _check(folder: Path, graph: str | None, asked: PlanOptions) -> None:
    name = graph if graph is not None else _graph_of(folder)
    with Steps() as steps:
        steps.tell(f"load {name}")
        try:
            loaded = load_graph(name, edge_weights=asked.weights.asked)
        except PlannerError as error:
            if graph is not None:
                raise
            raise PlannerError(
                f"{error} Name the graph of the plan: switchgnn plan GRAPH --check {folder}."
            ) from error
        steps.tell(f"check {folder}")
        made = read_manifest(folder)
        if made.replicated:
            cut = PlanRequest(partition=made.partition.method)
            loaded = cut.cut(loaded, made.workers, made.partition.seed)
        found = check_plan(folder, loaded)
    if asked.as_json:
        typer.echo(json.dumps({"right": True, **vars(found)}))
        return
    plain_console(highlight=False, soft_wrap=True).print(
        f"{folder} is right: {Amount(found.edges):boundary edge}, each served once, in "
        f"{Amount(found.blocks):block} by {Amount(found.packets):packet} and "
        f"{Amount(found.sums):sum} of {Amount(found.workers):worker}."
    )
