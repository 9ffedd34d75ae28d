# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn switch`: the embedded switch as a service."""

import signal
from pathlib import Path
from typing import Annotated

import typer

from switchgnn.commands.switch.program import PRODUCT, find_program
from switchgnn.controller.forgotten import forget_turn
from switchgnn.softswitch.command import (
    BackendChoice,
    CpuPort,
    DeviceId,
    ExitWithParent,
    Grpc,
    Level,
    LogLevel,
    PortBandwidth,
    PortRate,
    Ports,
    QueueDepth,
    ReadyFile,
    State,
    StateInterval,
    SwitchOptions,
    TlsCert,
    TlsClientCa,
    TlsKey,
    run_switch,
)
from switchgnn.softswitch.daemon.serving import Beginning
from switchgnn.softswitch.native.backend import Backend
from switchgnn.softswitch.traffic_manager import DEFAULT_DEPTH

_PROGRAM = "Program"
_INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog="Example: switchgnn switch --grpc unix:switch.sock --port 1=eth:enp1s0")
def switch(
    grpc: Grpc,
    port: Ports = None,
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
    state: State = None,
    state_interval: StateInterval = 1.0,
    ready_file: ReadyFile = None,
    device_id: DeviceId = 0,
    cpu_port: CpuPort = None,
    queue_depth: QueueDepth = DEFAULT_DEPTH,
    port_rate: PortRate = None,
    port_bandwidth: PortBandwidth = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    tls_client_ca: TlsClientCa = None,
    backend: BackendChoice = Backend.AUTO,
    log_level: Level = LogLevel.WARNING,
    exit_with_parent: ExitWithParent = False,
) -> None:
    """Run the embedded switch as a service.

    It runs until SIGTERM or Ctrl-C. Controllers reach it over P4Runtime. With
    --state it comes back with its tables when it is restarted.
    """
    options = SwitchOptions(
        grpc=grpc,
        port=port,
        device_id=device_id,
        cpu_port=cpu_port,
        queue_depth=queue_depth,
        port_rate=port_rate,
        port_bandwidth=port_bandwidth,
        tls_cert=tls_cert,
        tls_key=tls_key,
        tls_client_ca=tls_client_ca,
        backend=backend,
        log_level=log_level,
        ready_file=ready_file,
        exit_with_parent=exit_with_parent,
    )
    beginning = Beginning(find_program(program, p4info), state, state_interval, forget_turn)
    if run_switch(options, beginning) is signal.SIGINT:
        raise typer.Exit(_INTERRUPTED)
