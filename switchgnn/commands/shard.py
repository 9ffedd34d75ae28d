"""`switchgnn shard`: a graph in pieces, for machines that partition it together."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from switchgnn.base.options import flag, option, with_groups
from switchgnn.commands.shared.console import Steps
from switchgnn.commands.shared.outputs import check_outputs
from switchgnn.planner.graphs.load import load_graph
from switchgnn.planner.partition.ptscotch import partition_shards, shard_file, write_shards

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class ShardOptions:
    """The options of `switchgnn shard`."""

    ranks: int | None = option(
        None, "N", "Make N shards, one for each process that partitions.", min=1
    )
    out: Path | None = option(None, "FOLDER", "Write the shards to this folder.")
    ignore_weights: bool = flag(
        None, "Drop weights of edges, as `switchgnn plan` does.", "--ignore-weights"
    )
    assign: Path | None = option(
        None, "FILE", "Partition the shards in `mpirun`, and write each vertex's worker (.npy)."
    )
    workers: int = option(
        None, "N", "Assign vertices to N workers, with --assign.", default=1, min=1, shown=False
    )
    seed: int = option(None, "N", "Draw the partition from this seed.", default=0)


@app.command(epilog="Example: switchgnn shard karate --ranks 2 --out karate-shards")
@with_groups
def shard(
    graph: Annotated[
        str,
        typer.Argument(
            metavar="GRAPH",
            show_default=False,
            help="A graph as for `switchgnn plan`; with --assign, the folder of the shards.",
        ),
    ],
    asked: ShardOptions,
) -> None:
    """Write a graph as shards, or partition them as a rank of `mpirun`.

    Each has the rows of some vertices. `switchgnn plan --partition ptscotch:N`
    does both itself when one machine is enough.
    """
    ranks, out = asked.ranks, asked.out
    if asked.assign is not None:
        partition_shards(Path(graph), asked.assign, asked.workers, asked.seed)
        return
    if ranks is None or out is None:
        raise typer.BadParameter("give --ranks and --out, or --assign and --workers")
    check_outputs(replaced={"--out": out})
    steps = Steps()
    with steps:
        steps.tell(f"load {graph}")
        loaded = load_graph(graph, edge_weights=False if asked.ignore_weights else None)
        steps.tell(f"write {out}")
        with steps.finishing():
            write_shards(loaded, ranks, out)
    files = shard_file(0) if ranks == 1 else f"{shard_file(0)} to {shard_file(ranks - 1)}"
    typer.echo(f"{loaded.name}: {loaded.vertices:,} vertices, {ranks} shards: {out}, {files}")
    typer.echo(
        f"Partition: mpirun -n {ranks} switchgnn shard {out} --assign assignment.npy --workers N"
    )
