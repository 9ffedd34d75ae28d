"""`switchgnn figures`: figures of the paper from simulations and measured trainings."""

import os
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import typer
from rich.table import Table

from switchgnn.base.interruptible import INTERRUPTED, Interruption
from switchgnn.base.options import OUTPUT, PLAIN, argument, with_groups
from switchgnn.commands.shared.console import plain_console
from switchgnn.commands.shared.outputs import check_outputs
from switchgnn.jobs.plots import require_matplotlib
from switchgnn.lab.experiments.draw import TABLE, write_figures
from switchgnn.lab.experiments.figure import ExperimentError, cells_of, with_graphs
from switchgnn.lab.experiments.paper import find_figures
from switchgnn.lab.experiments.point import current_versions
from switchgnn.lab.experiments.runner import Store, run_points
from switchgnn.lab.experiments.table import HEADINGS

_RESULTS = Path("results/figures")
_tell = partial(typer.echo, err=True)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class FiguresOptions:
    """The options of `switchgnn figures`."""

    names: list[str] | None = argument(
        "NAME",
        "Names such as figure15, or example, which is quick; or your own FILE.py.",
        shown="all but example",
    )
    scale: str = PLAIN.option(
        "NAME",
        "Make small figures in minutes, medium ones with more points, or full ones with the "
        "paper's sizes.",
        default="small",
    )
    seeds: int | None = PLAIN.option(
        "N", "Draw graph and orders N times.", min=1, shown="the scale's"
    )
    graph: list[str] | None = PLAIN.option(
        "NAME=GRAPH",
        ("Take your own graph instead of a generated one, such as Reddit=reddit.npz; repeatable."),
    )
    jobs: int | None = PLAIN.option(
        "N", "Run N simulations at a time.", min=1, shown="one per core"
    )
    out: Path | None = OUTPUT.option(
        "FOLDER", "Write all files to this folder.", shown=f"{_RESULTS}/SCALE"
    )


@app.command(epilog="Example: switchgnn figures figure15 --scale small --out figures")
@with_groups
def figures(asked: FiguresOptions) -> None:
    """Redraw all figures of the paper with results, and draw one more.

    Simulates each point, or, for figures 11 to 13, measures a training, which
    needs PyTorch; and writes CSV, pictures and a table. A point that has a
    result of the same parameters and versions is not made again: after Ctrl-C,
    or with more figures, the same command goes on.
    """
    check_outputs({"--out": asked.out})
    require_matplotlib()
    described = with_graphs(find_figures(asked.names or []), asked.graph or [])
    chosen = [(figure, cells_of(figure, asked.scale, asked.seeds)) for figure in described]
    folder = asked.out or _RESULTS / asked.scale
    store = Store(folder, current_versions())
    points = [cell.point for _, cells in chosen for cell in cells]
    start = time.monotonic()
    try:
        with Interruption() as interruption, store.opened():
            interruption.at_once()
            outcome = run_points(points, store, asked.jobs or os.cpu_count() or 1, _tell)
    except KeyboardInterrupt:
        _tell(f"Stopped. What is done is in {folder}; the same command goes on.")
        raise typer.Exit(INTERRUPTED) from None
    found = {point: store.find(point) for point in dict.fromkeys(points)}
    results = {point: result for point, result in found.items() if result is not None}
    rows = write_figures(chosen, results, asked.scale, folder)
    table = Table(*HEADINGS)
    for row in rows:
        table.add_row(*row)
    if rows:
        plain_console(highlight=False).print(table)
    word = "figure" if len(chosen) == 1 else "figures"
    plain_console(highlight=False, soft_wrap=True).print(
        f"{len(chosen)} {word} of {len(found):,} points, {outcome.run - len(outcome.failed):,} of "
        f"them made in {time.monotonic() - start:,.0f} s. CSV, pictures and {TABLE}: {folder}"
    )
    if outcome.failed:
        point, said = next(iter(outcome.failed.items()))
        raise ExperimentError(
            f"{len(outcome.failed):,} of {outcome.run + outcome.kept:,} points failed, and are "
            f"missing from the figures; the first, {point}: {said} The same command tries them "
            "again."
        )
