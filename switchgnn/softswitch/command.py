# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The command line of the software switch, and what other commands that run it share with it."""

import logging
import signal
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from switchgnn.errors import SwitchGNNError
from switchgnn.softswitch.daemon.serving import Beginning, serve
from switchgnn.softswitch.errors import PortError, SoftSwitchError
from switchgnn.softswitch.native.backend import VARIABLE, Backend
from switchgnn.softswitch.p4runtime.server import TlsFiles
from switchgnn.softswitch.ports import PortSpec, parse_port
from switchgnn.softswitch.stopping import StopSignals, stop_with_parent
from switchgnn.softswitch.switch import SoftSwitch
from switchgnn.softswitch.traffic_manager import DEFAULT_DEPTH, QueueSettings


class LogLevel(str, Enum):
    """How much is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


_PORTS, _P4RUNTIME, _TLS, _SERVICE = "Ports", "P4Runtime", "TLS", "Service"
Grpc = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS",
        rich_help_panel=_P4RUNTIME,
        show_default=False,
        help="Where it serves P4Runtime: unix:PATH or HOST:PORT.",
    ),
]
Ports = Annotated[
    list[str] | None,
    typer.Option(
        metavar="N=WHAT",
        rich_help_panel=_PORTS,
        show_default=False,
        help="What is at port N: eth:INTERFACE, xdp:INTERFACE or udp:IP:PORT:PEER_IP:PORT; "
        "repeatable.",
    ),
]
DeviceId = Annotated[
    int, typer.Option(min=0, metavar="N", rich_help_panel=_P4RUNTIME, help="P4Runtime's device id.")
]
CpuPort = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=510,
        metavar="N",
        rich_help_panel=_P4RUNTIME,
        show_default="none",
        help="Port of packet-ins and packet-outs.",
    ),
]
QueueDepth = Annotated[
    int,
    typer.Option(min=1, metavar="N", rich_help_panel=_PORTS, help="Packets an egress queue holds."),
]
PortRate = Annotated[
    float | None,
    typer.Option(
        min=0.001,
        metavar="NUMBER",
        rich_help_panel=_PORTS,
        show_default="any",
        help="Packets per second of each port.",
    ),
]
PortBandwidth = Annotated[
    float | None,
    typer.Option(
        min=0.001,
        metavar="NUMBER",
        rich_help_panel=_PORTS,
        show_default="any",
        help="Mbit/s of each port given with --port.",
    ),
]
TlsCert = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", rich_help_panel=_TLS, show_default=False, help="The server's, as PEM."
    ),
]
TlsKey = Annotated[
    Path | None,
    typer.Option(metavar="FILE", rich_help_panel=_TLS, show_default=False, help="Its key, as PEM."),
]
TlsClientCa = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=_TLS,
        show_default=False,
        help="The CA that clients must have, as PEM.",
    ),
]
BackendChoice = Annotated[
    Backend,
    typer.Option(
        envvar=VARIABLE,
        show_envvar=False,
        metavar="WHAT",
        rich_help_panel=_SERVICE,
        help="Run programs as native code (C++), python, or auto: native where there is a "
        f"compiler; also by ${VARIABLE}.",
    ),
]
Level = Annotated[
    LogLevel,
    typer.Option(
        metavar="LEVEL",
        rich_help_panel=_SERVICE,
        help="Least severe message: debug, info, warning or error.",
    ),
]
State = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=_SERVICE,
        show_default=False,
        help="Keep what controllers set in this file, and begin with what it has.",
    ),
]
StateInterval = Annotated[
    float,
    typer.Option(
        min=0.0,
        metavar="SECONDS",
        rich_help_panel=_SERVICE,
        help="From a change to a file that has it, at least.",
    ),
]
ReadyFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=_SERVICE,
        show_default=False,
        help="Has the address of P4Runtime while the switch serves.",
    ),
]
ExitWithParent = Annotated[
    bool,
    typer.Option(
        "--exit-with-parent",
        rich_help_panel=_SERVICE,
        show_default=False,
        help="Stop when the parent process ends.",
    ),
]


@dataclass(frozen=True)
class SwitchOptions:
    """How a switch is run; the fields are the options of the command line.

    Attributes:
        grpc: where it serves P4Runtime.
        port: the texts that say what its ports are attached to.
        device_id: P4Runtime's device id.
        cpu_port: the port of packet-ins and packet-outs.
        queue_depth: packets that an egress queue holds.
        port_rate: packets per second of each port.
        port_bandwidth: Mbit/s of each port that is attached.
        tls_cert: PEM file of the server.
        tls_key: PEM file of the server's key.
        tls_client_ca: PEM file of the authority that clients must have.
        backend: which code programs become.
        log_level: the least severe message.
        ready_file: has the address while the switch serves.
        exit_with_parent: whether it ends with the process that has started it.
    """

    grpc: str
    port: list[str] | None = None
    device_id: int = 0
    cpu_port: int | None = None
    queue_depth: int = DEFAULT_DEPTH
    port_rate: float | None = None
    port_bandwidth: float | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    backend: Backend = Backend.AUTO
    log_level: LogLevel = LogLevel.WARNING
    ready_file: Path | None = None
    exit_with_parent: bool = False


def main(  # noqa: PLR0917  typer reads the options from the signature
    grpc: Grpc,
    port: Ports = None,
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
    state: State = None,
    state_interval: StateInterval = 1.0,
    ready_file: ReadyFile = None,
    exit_with_parent: ExitWithParent = False,
) -> None:
    """Run a software switch until SIGINT or SIGTERM; controllers load its program."""
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
    try:
        run_switch(options, Beginning(state=state, interval=state_interval))
    except SwitchGNNError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None


def run_switch(options: SwitchOptions, beginning: Beginning) -> signal.Signals:
    """Run a switch until SIGINT or SIGTERM.

    Args:
        options: how.
        beginning: what it begins with.

    Returns:
        The signal that has ended it.

    Raises:
        SoftSwitchError: it cannot start, or cannot keep its state.
    """
    with StopSignals() as signals:
        if options.exit_with_parent:
            stop_with_parent()
        logging.basicConfig(
            level=options.log_level.value.upper(), format="%(levelname)s %(name)s %(message)s"
        )
        tls = _tls(options.tls_cert, options.tls_key, options.tls_client_ca)
        switch = SoftSwitch(
            _ports(options.port or []),
            device_id=options.device_id,
            grpc=options.grpc,
            cpu_port=options.cpu_port,
            queues=_queues(options.queue_depth, options.port_rate, options.port_bandwidth),
            tls=tls,
            backend=options.backend,
        )
        return serve(
            switch,
            signals,
            beginning,
            ready_file=options.ready_file,
            open_to_all=tls is None or tls.client_ca is None,
        )


def _ports(texts: list[str]) -> dict[int, PortSpec]:
    ports: dict[int, PortSpec] = {}
    for number, spec in map(parse_port, texts):
        if number in ports:
            raise PortError(f"Port {number} is given twice: use each number once.")
        ports[number] = spec
    return ports


def _queues(depth: int, rate: float | None, megabits: float | None) -> QueueSettings:
    bandwidth = None if megabits is None else megabits * 1e6
    return QueueSettings(depth, rate, bandwidth=bandwidth)


def _tls(certificate: Path | None, key: Path | None, client_ca: Path | None) -> TlsFiles | None:
    if certificate is not None and key is not None:
        return TlsFiles(certificate, key, client_ca)
    if certificate is None and key is None and client_ca is None:
        return None
    raise SoftSwitchError("TLS needs both --tls-cert and --tls-key.")


def run() -> None:
    """Run the command line."""
    typer.run(main)
