# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn shard`: a graph in pieces, for machines that partition it together."""

from pathlib import Path
from typing import Annotated

import typer

from switchgnn.commands.shared.console import Steps
from switchgnn.commands.shared.outputs import check_outputs
from switchgnn.planner.graphs.load import load_graph
from switchgnn.planner.partition.ptscotch import RANK_PROGRAM
from switchgnn.planner.partition.shards import shard_file, write_shards

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog="Example: switchgnn shard karate --ranks 2 --out karate-shards")
def shard(
    graph: Annotated[
        str,
        typer.Argument(metavar="GRAPH", show_default=False, help="As `switchgnn plan` takes it."),
    ],
    ranks: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", show_default=False, help="Processes that partition: a shard each."
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", show_default=False, help="To write the shards to.")
    ],
    ignore_weights: Annotated[
        bool, typer.Option("--ignore-weights", help="As `switchgnn plan` does.")
    ] = False,
) -> None:
    """Write a graph as shards, for `mpirun` elsewhere.

    Each has the rows of some vertices. `switchgnn plan --partition ptscotch:N`
    does this itself when one machine is enough.
    """
    check_outputs(replaced={"--out": out})
    steps = Steps()
    with steps:
        steps.tell(f"load {graph}")
        loaded = load_graph(graph, ignore_weights=ignore_weights)
        steps.tell(f"write {out}")
        with steps.finishing():
            write_shards(loaded, ranks, out)
    files = shard_file(0) if ranks == 1 else f"{shard_file(0)} to {shard_file(ranks - 1)}"
    typer.echo(f"{loaded.name}: {loaded.vertices:,} vertices, {ranks} shards: {out}, {files}")
    typer.echo(
        f"Partition: mpirun -n {ranks} python -m {RANK_PROGRAM} {out} assignment.npy --workers N"
    )
