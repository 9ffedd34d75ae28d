# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The two switches that run the P4 program, as command lines."""

import shutil
import socket
import sys
from collections.abc import Mapping
from enum import Enum
from pathlib import Path

from switchgnn.topologies.child import Child
from switchgnn.topologies.errors import FabricError

BMV2_PROGRAM = "simple_switch_grpc"
_READY_SECONDS = 30.0
_CPU_PORT = 510


class Target(str, Enum):
    """Which switch runs the P4 program."""

    BMV2 = "bmv2"
    EMBEDDED = "embedded"


def bmv2_installed() -> bool:
    """Tell whether BMv2 is on the PATH."""
    return shutil.which(BMV2_PROGRAM) is not None


def switch_command(
    target: Target, *, ports: Mapping[int, str], grpc_address: str, device_id: int
) -> list[str]:
    """Return the command that starts a switch without a program.

    Args:
        target: which switch.
        ports: port number to ``eth:INTERFACE`` or ``udp:HOST:PORT:PEER_HOST:PEER_PORT``.
        grpc_address: where it serves P4Runtime, ``HOST:PORT``.
        device_id: P4Runtime's device id.
    """
    if target is Target.EMBEDDED:
        return [
            *(sys.executable, "-m", "switchgnn.softswitch"),
            *("--device-id", str(device_id), "--grpc", grpc_address, "--exit-with-parent"),
            *(word for port, link in ports.items() for word in ("--port", f"{port}={link}")),
        ]
    interfaces = {port: link.removeprefix("eth:") for port, link in ports.items()}
    return [
        *(BMV2_PROGRAM, "--no-p4", "--device-id", str(device_id)),
        *(word for port, name in interfaces.items() for word in ("-i", f"{port}@{name}")),
        *("--", "--grpc-server-addr", grpc_address, "--cpu-port", str(_CPU_PORT)),
    ]


def require_free(grpc_address: str) -> None:
    """Check that nothing listens on the address yet.

    Raises:
        FabricError: something does; the switch would start and never be reached.
    """
    host, _, port = grpc_address.rpartition(":")
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, int(port)))
        except OSError as error:
            raise FabricError(
                f"Port {port} on {host} is taken: {error.strerror}. "
                "End the program that holds it, or choose another with --grpc-port."
            ) from error


def switch_child(
    target: Target,
    *,
    ports: Mapping[int, str],
    grpc_address: str,
    device_id: int,
    log: Path,
) -> Child:
    """Return the switch as a child process, not yet started."""
    command = switch_command(target, ports=ports, grpc_address=grpc_address, device_id=device_id)
    return Child(f"The {target.value} switch", command, log)


def wait_until_serving(switch: Child, grpc_address: str) -> None:
    """Wait until the switch answers on its gRPC address.

    Raises:
        FabricError: it ended, or did not answer in time.
    """
    host, _, port = grpc_address.rpartition(":")
    switch.wait_until(lambda: _answers(host, int(port)), _READY_SECONDS)


def _answers(host: str, port: int) -> bool:
    with socket.socket() as sock:
        sock.settimeout(0.2)
        return sock.connect_ex((host, port)) == 0
