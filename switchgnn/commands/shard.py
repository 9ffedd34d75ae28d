"""`switchgnn shard`: a graph in pieces, for machines that partition it together."""

from pathlib import Path
from typing import Annotated

import typer

from switchgnn.commands.shared.console import Steps
from switchgnn.commands.shared.outputs import check_outputs
from switchgnn.planner.graphs.load import load_graph
from switchgnn.planner.partition.ptscotch import partition_shards, shard_file, write_shards

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog="Example: switchgnn shard karate --ranks 2 --out karate-shards")
def shard(
    graph: Annotated[
        str,
        typer.Argument(
            metavar="GRAPH",
            show_default=False,
            help="A graph as for `switchgnn plan`; with --assign, the folder of the shards.",
        ),
    ],
    ranks: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            show_default=False,
            help="Make N shards, one for each process that partitions.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", show_default=False, help="Write the shards to this folder."),
    ] = None,
    ignore_weights: Annotated[
        bool,
        typer.Option("--ignore-weights", help="Drop weights of edges, as `switchgnn plan` does."),
    ] = False,
    assign: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Partition the shards in `mpirun`, and write each vertex's worker (.npy).",
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            show_default=False,
            help="Assign vertices to N workers, with --assign.",
        ),
    ] = 1,
    seed: Annotated[int, typer.Option(metavar="N", help="Draw the partition from this seed.")] = 0,
) -> None:
    """Write a graph as shards, or partition them as a rank of `mpirun`.

    Each has the rows of some vertices. `switchgnn plan --partition ptscotch:N`
    does both itself when one machine is enough.
    """
    if assign is not None:
        partition_shards(Path(graph), assign, workers, seed)
        return
    if ranks is None or out is None:
        raise typer.BadParameter("give --ranks and --out, or --assign and --workers")
    check_outputs(replaced={"--out": out})
    steps = Steps()
    with steps:
        steps.tell(f"load {graph}")
        loaded = load_graph(graph, edge_weights=False if ignore_weights else None)
        steps.tell(f"write {out}")
        with steps.finishing():
            write_shards(loaded, ranks, out)
    files = shard_file(0) if ranks == 1 else f"{shard_file(0)} to {shard_file(ranks - 1)}"
    typer.echo(f"{loaded.name}: {loaded.vertices:,} vertices, {ranks} shards: {out}, {files}")
    typer.echo(
        f"Partition: mpirun -n {ranks} switchgnn shard {out} --assign assignment.npy --workers N"
    )
