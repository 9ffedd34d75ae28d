# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""All subcommands of `switchgnn`."""

from typing import Annotated

import typer

from switchgnn import __version__
from switchgnn.commands.doctor.command import doctor
from switchgnn.commands.figures.command import figures
from switchgnn.commands.plan.command import plan
from switchgnn.commands.run.command import run
from switchgnn.commands.shard.command import shard
from switchgnn.commands.simulate.command import simulate
from switchgnn.commands.soak.command import soak
from switchgnn.commands.train.command import train
from switchgnn.commands.worker.command import worker
from switchgnn.controller.cli import app as controller

app = typer.Typer(
    name="switchgnn",
    help="Full-graph GNN neighbour sums, multicast and aggregated in a P4 switch.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(run)
app.command()(soak)
app.command()(train)
app.command()(plan)
app.command()(simulate)
app.command()(figures)
app.add_typer(controller, name="controller", help="Install, show, clear and watch tables.")
app.command()(shard)
app.command()(doctor)
app.command(hidden=True)(worker)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"switchgnn {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Take the options that stand before a subcommand."""
