# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The options of a software switch, for all commands that run one."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from switchgnn.softswitch.native.build import VARIABLE, Backend
from switchgnn.softswitch.traffic_manager import DEFAULT_DEPTH


class LogLevel(str, Enum):
    """How much is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


_PORTS, _P4RUNTIME, _TLS, _SERVICE = "Ports", "P4Runtime", "TLS", "Service"


@dataclass(frozen=True)
class SwitchOptions:
    """The options of a switch, each documented by its help."""

    grpc: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            rich_help_panel=_P4RUNTIME,
            show_default=False,
            help="P4Runtime address: unix:PATH or HOST:PORT.",
        ),
    ] = None
    port: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N=WHAT",
            rich_help_panel=_PORTS,
            show_default=False,
            help="Attach port N to eth:INTERFACE or udp:IP:PORT:PEER_IP:PORT; repeatable.",
        ),
    ] = None
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=_SERVICE,
            show_default=False,
            help="Keep the controllers' settings in this file, and restore them at the start.",
        ),
    ] = None
    state_interval: Annotated[
        float,
        typer.Option(
            min=0.0,
            metavar="SECONDS",
            rich_help_panel=_SERVICE,
            help="Minimum delay from a change to its write.",
        ),
    ] = 1.0
    ready_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=_SERVICE,
            show_default=False,
            help="Write the P4Runtime address to this file while the switch serves.",
        ),
    ] = None
    device_id: Annotated[
        int,
        typer.Option(min=0, metavar="N", rich_help_panel=_P4RUNTIME, help="P4Runtime's device id."),
    ] = 0
    cpu_port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=510,
            metavar="N",
            rich_help_panel=_P4RUNTIME,
            show_default="none",
            help="Port of packet-ins and packet-outs.",
        ),
    ] = None
    queue_depth: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            rich_help_panel=_PORTS,
            help="Packets of one class that an egress queue holds.",
        ),
    ] = DEFAULT_DEPTH
    port_rate: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            metavar="NUMBER",
            rich_help_panel=_PORTS,
            show_default="any",
            help="Packets per second of each port.",
        ),
    ] = None
    port_bandwidth: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            metavar="NUMBER",
            rich_help_panel=_PORTS,
            show_default="any",
            help="Mbit/s of each port given with --port.",
        ),
    ] = None
    tls_cert: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=_TLS,
            show_default=False,
            help="The server's certificate (PEM).",
        ),
    ] = None
    tls_key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", rich_help_panel=_TLS, show_default=False, help="The server's key (PEM)."
        ),
    ] = None
    tls_client_ca: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=_TLS,
            show_default=False,
            help="CA of client certificates, which it makes mandatory (PEM).",
        ),
    ] = None
    backend: Annotated[
        Backend,
        typer.Option(
            envvar=VARIABLE,
            show_envvar=False,
            metavar="WHAT",
            rich_help_panel=_SERVICE,
            help="Run programs as native code (C++), python, or auto: native if there is a "
            f"compiler; also set by ${VARIABLE}.",
        ),
    ] = Backend.AUTO
    log_level: Annotated[
        LogLevel,
        typer.Option(
            metavar="LEVEL",
            rich_help_panel=_SERVICE,
            help="Least severe message: debug, info, warning or error.",
        ),
    ] = LogLevel.WARNING
    exit_with_parent: Annotated[
        bool,
        typer.Option(
            "--exit-with-parent",
            rich_help_panel=_SERVICE,
            show_default=False,
            help="Stop when the parent process ends.",
        ),
    ] = False
