"""All subcommands of `switchgnn`."""

import importlib
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from switchgnn import __version__

# The modules of commands that are not `switchgnn.commands.NAME`; each has a `typer.Typer` `app`.
_MODULES = {
    "train": "switchgnn.commands.train.command",
    "plan": "switchgnn.commands.plan.command",
    "simulate": "switchgnn.lab.commands.simulate",
    "figures": "switchgnn.lab.commands.figures",
    "controller": "switchgnn.commands.controller",
}


@dataclass(frozen=True)
class Late:
    """A subcommand that is imported when it is chosen."""

    name: str
    panel: str  # its panel in the list of commands
    help: str  # its line there, which is also the first of its own help

    @property
    def module(self) -> str:
        """The module of the command."""
        return _MODULES.get(self.name, f"switchgnn.commands.{self.name}")

    def load(self) -> typer.Typer:
        """Import the command."""
        found: typer.Typer = importlib.import_module(self.module).app
        return found


class _Placeholder(TyperCommand):
    """A placeholder in the list of commands; its callback returns the application."""

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> Any:  # noqa: ANN401
        """Begin the command itself instead of this one."""
        command = typer.main.get_command(self.callback())  # type: ignore[misc]
        return command.make_context(info_name, args, *rest, **extra)


_RUN, _PLAN, _SWITCHES, _HERE = "Run", "Plan and simulate", "Switches", "This machine"

COMMANDS = (
    Late("train", _RUN, "Train a GNN, its neighbour sums made in the switch or by hosts."),
    Late("run", _RUN, "Exchange features through the switch and check every sum."),
    Late("allreduce", _RUN, "Sum tensors over all workers in the switch, and check every number."),
    Late(
        "launch", _RUN, "Run a PyTorch program on every worker, its all-reduces made in the switch."
    ),
    Late("live", _RUN, "Show a job on several machines in the browser."),
    Late("capture", _RUN, "Show packets: a line for each, or a summary by block."),
    Late("plan", _PLAN, "Partition a graph, form blocks, and report the costs."),
    Late("simulate", _PLAN, "Simulate one exchange of a layer."),
    Late("figures", _PLAN, "Redraw the paper's figures with results, and three more."),
    Late("controller", _SWITCHES, "Install, show, clear and watch tables."),
    Late("switch", _SWITCHES, "Run the embedded switch as a service."),
    Late("network", _SWITCHES, "Write down where switches and workers are."),
    Late("doctor", _HERE, "List what is installed, what is missing, and how to install it."),
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
    _add = app.command(_each.name, cls=_Placeholder, help=_each.help, rich_help_panel=_each.panel)
    _add(_each.load)


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
