# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""All subcommands of `switchgnn`."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from switchgnn import __version__


@dataclass(frozen=True)
class Late:
    """A subcommand that is known by its line in the list of commands.

    Attributes:
        name: how it is called.
        panel: the panel of the list that it stands in.
        help: its line there, which is also the first of its own help.
        elsewhere: its module, where that is not in the folder of its name. The module has a
            ``typer.Typer`` named ``app``.
    """

    name: str
    panel: str
    help: str
    elsewhere: str | None = None

    @property
    def module(self) -> str:
        """Where the command is."""
        return self.elsewhere or f"switchgnn.commands.{self.name}"

    def load(self) -> typer.Typer:
        """Import the command."""
        found = importlib.import_module(self.module).app
        if not isinstance(found, typer.Typer):
            raise TypeError(f"{self.module}.app is no typer.Typer")
        return found

    def add_to(self, app: typer.Typer) -> None:
        """Let an application list the command, and run it when it is chosen."""
        made = app.command(self.name, cls=_Standing, help=self.help, rich_help_panel=self.panel)
        load: Callable[[], typer.Typer] = self.load
        made(load)


class _Standing(TyperCommand):
    """Stands in the list of commands; its callback returns the application that it stands for."""

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> Any:  # noqa: ANN401
        """Begin the command itself in place of this one."""
        if self.callback is None:
            raise TypeError(f"{self.name} stands for nothing")
        command = typer.main.get_command(self.callback())
        return command.make_context(info_name, args, *rest, **extra)


_RUN, _PLAN, _SWITCHES, _HERE = "Run", "Plan and simulate", "Switches", "This machine"

# The list of commands. Each is a module with a `typer.Typer` named `app`.
COMMANDS = (
    Late(
        "train",
        _RUN,
        "Train a GNN, its neighbour sums made in the switch or by hosts.",
        "switchgnn.commands.train.command",
    ),
    Late(
        "run",
        _RUN,
        "Exchange features through the switch and check every sum.",
        "switchgnn.commands.run.command",
    ),
    Late(
        "soak",
        _RUN,
        "Exchange over random graphs with random faults, again and again.",
        "switchgnn.lab.commands.soak",
    ),
    Late("live", _RUN, "Show a job on several machines in the browser."),
    Late("capture", _RUN, "Show packets: a line for each, or the story of a run."),
    Late(
        "plan",
        _PLAN,
        "Partition a graph, form blocks, and say what that costs.",
        "switchgnn.commands.plan.command",
    ),
    Late("shard", _PLAN, "Write a graph as shards, for `mpirun` elsewhere."),
    Late(
        "simulate",
        _PLAN,
        "Simulate one exchange of a layer in ns-3.",
        "switchgnn.lab.commands.simulate",
    ),
    Late(
        "figures",
        _PLAN,
        "Redraw the paper's figures from simulations.",
        "switchgnn.lab.commands.figures",
    ),
    Late(
        "controller",
        _SWITCHES,
        "Install, show, clear and watch tables.",
        "switchgnn.controller.cli",
    ),
    Late("switch", _SWITCHES, "Run the embedded switch as a service."),
    Late("network", _SWITCHES, "Write down where switches and workers are."),
    Late("doctor", _HERE, "Say what is installed, what is missing, and what mends it."),
)

app = typer.Typer(
    name="switchgnn",
    help="Full-graph GNN neighbour sums, multicast and aggregated in a P4 switch.",
    epilog="Example: switchgnn train --data karate --workers 2 --epochs 3",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _each in COMMANDS:
    _each.add_to(app)


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
