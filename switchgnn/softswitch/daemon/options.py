# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The options of a software switch, for all commands that run one."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from switchgnn.base.options import option
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

    grpc: str | None = option(_P4RUNTIME, "ADDRESS", "P4Runtime address: unix:PATH or HOST:PORT.")
    port: list[str] | None = option(
        _PORTS,
        "N=WHAT",
        "Attach port N to eth:INTERFACE or udp:IP:PORT:PEER_IP:PORT; repeatable.",
    )
    state: Path | None = option(
        _SERVICE,
        "FILE",
        "Keep the controllers' settings in this file, and restore them at the start.",
    )
    state_interval: float = option(
        _SERVICE, "SECONDS", "Minimum delay from a change to its write.", default=1.0, min=0.0
    )
    ready_file: Path | None = option(
        _SERVICE, "FILE", "Write the P4Runtime address to this file while the switch serves."
    )
    device_id: int = option(_P4RUNTIME, "N", "P4Runtime's device id.", default=0, min=0)
    cpu_port: int | None = option(
        _P4RUNTIME, "N", "Port of packet-ins and packet-outs.", shown="none", min=0, max=510
    )
    queue_depth: int = option(
        _PORTS,
        "N",
        "Packets of one class that an egress queue holds.",
        default=DEFAULT_DEPTH,
        min=1,
    )
    port_rate: float | None = option(
        _PORTS, "NUMBER", "Packets per second of each port.", shown="any", min=0.001
    )
    port_bandwidth: float | None = option(
        _PORTS, "NUMBER", "Mbit/s of each port given with --port.", shown="any", min=0.001
    )
    tls_cert: Path | None = option(_TLS, "FILE", "The server's certificate (PEM).")
    tls_key: Path | None = option(_TLS, "FILE", "The server's key (PEM).")
    tls_client_ca: Path | None = option(
        _TLS, "FILE", "CA of client certificates, which it makes mandatory (PEM)."
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
        "Least severe message: debug, info, warning or error.",
        default=LogLevel.WARNING,
    )
