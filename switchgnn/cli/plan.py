# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn plan`: write a plan folder."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from switchgnn.p4src import load_program
from switchgnn.planner.build import build_plan
from switchgnn.planner.files import write_plan
from switchgnn.planner.load import load_graph


def plan(
    graph: Annotated[
        str, typer.Argument(help="digits, karate, random:VERTICES:EDGES:SEED, or a file.")
    ],
    workers: Annotated[int, typer.Option(min=1, max=128, help="Number of workers.")],
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    slots: Annotated[
        int | None,
        typer.Option(min=2, help="Aggregators that a block may use; default: all of the switch."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="For partition, blocks and order.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the manifest.")] = False,
) -> None:
    """Partition GRAPH over workers, form blocks, order them, and write the plan.

    The switch's tables are installed from the folder with `switchgnn controller
    install`; each worker reads its own part of it.
    """
    console = Console(stderr=True)
    program = load_program()
    with console.status("planning") as status:
        made = build_plan(
            load_graph(graph),
            workers=workers,
            slots=slots or program.slots,
            program=program.digest,
            seed=seed,
            progress=lambda step: status.update(f"planning: {step}"),
        )
        write_plan(made, out)
    manifest = made.manifest
    if as_json:
        typer.echo(json.dumps(asdict(manifest)))
        return
    prediction = manifest.prediction
    ours = sum(prediction.packets_up) + sum(prediction.packets_down)
    theirs = sum(prediction.host_packets_up) + sum(prediction.host_packets_down)
    Console().print(
        f"{out}: {manifest.workers} workers, {manifest.blocks} blocks, "
        f"{prediction.boundary_vertices:,} boundary vertices, {prediction.entries:,} table "
        f"entries; {ours:,} packets per fragment, {theirs:,} if hosts did it alone",
        soft_wrap=True,
    )
