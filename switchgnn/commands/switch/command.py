# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn switch`: the embedded switch as a service."""

import signal
from pathlib import Path
from typing import Annotated

import typer

from switchgnn.base.network import NetworkError
from switchgnn.base.options import with_groups
from switchgnn.commands.switch.network import as_described
from switchgnn.commands.switch.program import PRODUCT, find_program
from switchgnn.controller.forgotten import forget_turn
from switchgnn.softswitch.daemon.command import run_switch
from switchgnn.softswitch.daemon.options import SwitchOptions
from switchgnn.softswitch.daemon.serving import Beginning

_PROGRAM, _NETWORK = "Program", "Network"
_INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog="Example: switchgnn switch --grpc unix:switch.sock --port 1=eth:enp1s0")
@with_groups
def switch(
    options: SwitchOptions,
    *,
    network: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=_NETWORK,
            show_default=False,
            help="A network file, which says --grpc, --port and --device-id.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=_NETWORK,
            show_default=False,
            help="Of this switch in that file, if it has several.",
        ),
    ] = None,
    program: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE",
            rich_help_panel=_PROGRAM,
            help="The P4 program to begin with: switchgnn, strawman, none until a controller "
            "brings one, or the JSON that p4c makes for BMv2.",
        ),
    ] = PRODUCT,
    p4info: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=_PROGRAM,
            show_default="NAME.p4info.txtpb beside it",
            help="P4Info (text) of a program in a file.",
        ),
    ] = None,
) -> None:
    """Run the embedded switch as a service.

    It runs until SIGTERM or Ctrl-C. Controllers reach it over P4Runtime. With
    --state it comes back with its tables when it is restarted.
    """
    if network is not None:
        options = as_described(options, network, name)
    elif name is not None:
        raise NetworkError("--name is that of a switch in a network file: add --network.")
    beginning = Beginning(
        find_program(program, p4info), options.state, options.state_interval, forget_turn
    )
    if run_switch(options, beginning) is signal.SIGINT:
        raise typer.Exit(_INTERRUPTED)
