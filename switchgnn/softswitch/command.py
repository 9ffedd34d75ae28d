# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The command line of the software switch."""

import gc
import logging
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from switchgnn.errors import SwitchGNNError
from switchgnn.softswitch.errors import PortError, SoftSwitchError
from switchgnn.softswitch.native.backend import VARIABLE, Backend
from switchgnn.softswitch.p4runtime.server import TlsFiles
from switchgnn.softswitch.p4runtime.unix_socket import socket_path
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


def main(  # noqa: PLR0917  typer reads the options from the signature
    grpc: Annotated[
        str,
        typer.Option(metavar="unix:PATH|HOST:PORT", help="Where it serves P4Runtime."),
    ],
    port: Annotated[
        list[str] | None,
        typer.Option(
            help="NUMBER=eth:INTERFACE, xdp:INTERFACE or udp:IP:PORT:PEER_IP:PORT; repeatable."
        ),
    ] = None,
    device_id: Annotated[int, typer.Option(min=0, help="P4Runtime device id.")] = 0,
    cpu_port: Annotated[
        int | None, typer.Option(min=0, max=510, help="Port of packet-ins and packet-outs.")
    ] = None,
    queue_depth: Annotated[
        int, typer.Option(min=1, help="Packets an egress queue holds.")
    ] = DEFAULT_DEPTH,
    port_rate: Annotated[
        float | None, typer.Option(min=0.001, help="Packets per second of each port.")
    ] = None,
    port_bandwidth: Annotated[
        float | None, typer.Option(min=0.001, help="Mbit/s of each port given with --port.")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="PEM file of the server.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="PEM file of the server's key.")] = None,
    tls_client_ca: Annotated[
        Path | None, typer.Option(help="PEM file of the CA that clients must have.")
    ] = None,
    backend: Annotated[
        Backend,
        typer.Option(
            envvar=VARIABLE,
            help="Run programs as C++, as Python, or as C++ if there is a compiler.",
        ),
    ] = Backend.AUTO,
    log_level: Annotated[LogLevel, typer.Option(help="Least severe message.")] = LogLevel.WARNING,
    exit_with_parent: Annotated[
        bool, typer.Option(help="Stop when the parent process ends.")
    ] = False,
) -> None:
    """Run a software switch until SIGINT or SIGTERM; controllers load its program."""
    with StopSignals() as signals:
        if exit_with_parent:
            stop_with_parent()
        logging.basicConfig(
            level=log_level.value.upper(), format="%(levelname)s %(name)s %(message)s"
        )
        try:
            tls = _tls(tls_cert, tls_key, tls_client_ca)
            switch = SoftSwitch(
                _ports(port or []),
                device_id=device_id,
                grpc=grpc,
                cpu_port=cpu_port,
                queues=_queues(queue_depth, port_rate, port_bandwidth),
                tls=tls,
                backend=backend,
            )
            _serve(switch, signals, open_to_all=tls is None or tls.client_ca is None)
        except SwitchGNNError as error:
            typer.echo(str(error), err=True)
            raise typer.Exit(2) from None


def _serve(switch: SoftSwitch, signals: StopSignals, *, open_to_all: bool) -> None:
    with switch:
        # What exists now stays, so the garbage collector does not have to visit it again.
        gc.freeze()
        address = switch.grpc_address
        typer.echo(f"softswitch: device {switch.device_id} serves P4Runtime on {address}")
        sys.stdout.flush()
        if open_to_all and socket_path(address) is None:
            typer.echo(
                f"Warning: all who reach {address}, such as every user of this machine, may "
                "write to this switch: take unix:PATH, or certificates of clients "
                "(--tls-client-ca).",
                err=True,
            )
        signals.wait()


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
