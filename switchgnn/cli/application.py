# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""All subcommands of `switchgnn`."""

import typer

from switchgnn.cli.doctor import doctor
from switchgnn.cli.figures import figures
from switchgnn.cli.plan import plan
from switchgnn.cli.run import run
from switchgnn.cli.shard import shard
from switchgnn.cli.simulate import simulate
from switchgnn.cli.soak import soak
from switchgnn.cli.train import train
from switchgnn.cli.worker import worker
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
