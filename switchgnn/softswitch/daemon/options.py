# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The options of a software switch, for all commands that run one."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from switchgnn.base.options import option
from switchgnn.softswitch.native.build import VARIABLE, Backend
from switchgnn.softswitch.queues import DEFAULT_DEPTH


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

    grpc: str | None = option(
        _P4RUNTIME, "ADDRESS", "Serve P4Runtime at this address: unix:PATH or HOST:PORT."
    )
    port: list[str] | None = option(
        _PORTS, "N=WHAT", "Attach port N to eth:INTERFACE or udp:IP:PORT:PEER_IP:PORT; repeatable."
    )
    state: Path | None = option(
        _SERVICE,
        "FILE",
        "Keep the controllers' settings in this file, and restore them at the start.",
    )
    state_interval: float = option(
        _SERVICE, "SECONDS", "Write a change after this delay at least.", default=1.0, min=0.0
    )
    ready_file: Path | None = option(
        _SERVICE, "FILE", "Write the P4Runtime address to this file while the switch serves."
    )
    device_id: int = option(_P4RUNTIME, "N", "Use this device id of P4Runtime.", default=0, min=0)
    cpu_port: int | None = option(
        _P4RUNTIME,
        "N",
        "Send packet-ins and packet-outs through this port.",
        shown="none",
        min=0,
        max=510,
    )
    queue_depth: int = option(
        _PORTS, "N", "An egress queue holds N packets of one class.", default=DEFAULT_DEPTH, min=1
    )
    port_rate: float | None = option(
        _PORTS, "NUMBER", "Limit each port to this many packets per second.", shown="any", min=0.001
    )
    port_bandwidth: float | None = option(
        _PORTS,
        "NUMBER",
        "Limit each port given with --port to this many Mbit/s.",
        shown="any",
        min=0.001,
    )
    tls_cert: Path | None = option(_TLS, "FILE", "Identify the server by this certificate (PEM).")
    tls_key: Path | None = option(_TLS, "FILE", "Use this key (PEM) of the server.")
    tls_client_ca: Path | None = option(
        _TLS, "FILE", "Demand client certificates of this CA (PEM)."
    )
    backend: Backend = option(
        _SERVICE,
        "WHAT",
        "Run programs as native code (C++), python, or auto: native if there is a compiler; also "
        f"set by ${VARIABLE}.",
        default=Backend.AUTO,
        envvar=VARIABLE,
        show_envvar=False,
    )
    log_level: LogLevel = option(
        _SERVICE,
        "LEVEL",
        "Print messages from this severity on: debug, info, warning or error.",
        default=LogLevel.WARNING,
    )
