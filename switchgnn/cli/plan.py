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
from switchgnn.planner.direction import Direction
from switchgnn.planner.files import write_plan
from switchgnn.planner.load import load_graph
from switchgnn.planner.manifest import Manifest


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
    partition: Annotated[
        str, typer.Option(help="How vertices come to workers: metis, g3 or g3-literal.")
    ] = "metis",
    send: Annotated[
        str,
        typer.Option(help="multicast, or cover: partial sums where workers then send less."),
    ] = "multicast",
    directions: Annotated[
        str, typer.Option(help="forward, or both: training sums gradients backward.")
    ] = "forward",
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
            partition=partition,
            send=send,
            directions=directions,
            progress=lambda step: status.update(f"planning: {step}"),
        )
        write_plan(made, out)
    manifest = made.manifest
    if as_json:
        typer.echo(json.dumps(asdict(manifest)))
        return
    boundary = manifest.direction(Direction.FORWARD).prediction.boundary_vertices
    packets = "; ".join(_packets(manifest, name) for name in manifest.directions)
    Console().print(
        f"{out}: {manifest.workers} workers, {manifest.blocks} blocks, {boundary:,} boundary "
        f"vertices, {len(made.switch.entry_block):,} table entries; {packets}",
        soft_wrap=True,
    )


def _packets(manifest: Manifest, direction: str) -> str:
    """What an exchange of the direction sends; the direction is named if there are two."""
    prediction = manifest.directions[direction].prediction
    ours = sum(prediction.packets_up) + sum(prediction.packets_down)
    theirs = sum(prediction.host_packets_up) + sum(prediction.host_packets_down)
    name = f"{direction}: " if len(manifest.directions) > 1 else ""
    return f"{name}{ours:,} packets per fragment, {theirs:,} if hosts did it alone"
