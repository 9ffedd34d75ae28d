# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A star over UDP on the loopback interface: no root, no Mininet, no BMv2."""

import contextlib
import socket
from collections.abc import Sequence
from pathlib import Path

from switchgnn.topologies.child import Child
from switchgnn.topologies.errors import FabricError
from switchgnn.topologies.fabric import Fabric, Star, WireBytes
from switchgnn.topologies.targets import (
    Target,
    require_free,
    switch_child,
    wait_until_serving,
)

_HOST = "127.0.0.1"


class LoopbackFabric(Fabric):
    """The embedded switch and the workers as processes; a datagram is a frame."""

    def __init__(self, star: Star, folder: Path) -> None:
        if star.target is not Target.EMBEDDED:
            raise FabricError(
                "BMv2 attaches to network interfaces: take FABRIC=mininet, "
                "or TARGET=embedded for the loopback fabric."
            )
        if star.bandwidth is not None:
            raise FabricError("The loopback fabric cannot limit bandwidth: take FABRIC=mininet.")
        super().__init__(star, folder)
        self._switch: Child | None = None
        self._switch_ports: list[int] = []
        self._worker_ports: list[int] = []

    def start(self) -> None:
        """Start the switch and wait until it serves P4Runtime."""
        if self._switch is not None:
            return
        require_free(self.star.grpc_address)
        ports = free_udp_ports(2 * self.star.workers)
        self._switch_ports = ports[: self.star.workers]
        self._worker_ports = ports[self.star.workers :]
        links = {
            station.port: f"udp:{_HOST}:{ours}:{_HOST}:{theirs}"
            for station, ours, theirs in zip(
                self.star.network.stations, self._switch_ports, self._worker_ports, strict=True
            )
        }
        self._switch = switch_child(
            self.star.target,
            ports=links,
            grpc_address=self.star.grpc_address,
            device_id=0,
            log=self.folder / "switch.log",
            tls=self.star.tls,
        )
        self._switch.start()
        wait_until_serving(self._switch, self.star.grpc_address)

    def stop(self) -> None:
        """End the switch."""
        switch, self._switch = self._switch, None
        if switch is not None:
            switch.stop()

    def worker_link(self, worker: int) -> str:
        """Return the worker's pair of UDP addresses."""
        return f"udp:{_HOST}:{self._worker_ports[worker]}:{_HOST}:{self._switch_ports[worker]}"

    def worker_command(self, worker: int, command: Sequence[str]) -> list[str]:
        """Return the command itself: every worker is on this machine."""
        return list(command)

    def wire_bytes(self) -> list[WireBytes] | None:
        """No interface counts here; the workers' sockets do."""
        return None


def free_udp_ports(count: int) -> list[int]:
    """Return so many different UDP ports that are free now."""
    with contextlib.ExitStack() as stack:
        sockets = [
            stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            for _ in range(count)
        ]
        for sock in sockets:
            sock.bind((_HOST, 0))
        return [sock.getsockname()[1] for sock in sockets]


def free_tcp_port() -> int:
    """Return a TCP port that is free now."""
    with socket.socket() as sock:
        sock.bind((_HOST, 0))
        port: int = sock.getsockname()[1]
        return port
