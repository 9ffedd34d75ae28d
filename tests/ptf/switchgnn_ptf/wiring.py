# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Links between the ports of a switch and PTF: pairs of interfaces, or UDP on loopback."""

import itertools
import os
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from switchgnn.topologies.free_ports import free_udp_addresses
from tests.support.networks import own_network

_numbers = itertools.count()


@dataclass
class UdpWiring:
    """Two UDP sockets on loopback for each port; needs no root."""

    ports: Iterable[int]
    switch: dict[int, str] = field(default_factory=dict)
    tester: dict[int, str] = field(default_factory=dict)
    namespace: Path | None = None

    def __enter__(self) -> "UdpWiring":
        ports = list(self.ports)
        free = iter(free_udp_addresses(2 * len(ports)))
        for port in ports:
            ours, theirs = next(free), next(free)
            self.switch[port] = f"udp:{ours}:{theirs}"
            self.tester[port] = f"{theirs}:{ours}"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """There is nothing to take down."""


@dataclass
class VethWiring:
    """A pair of virtual interfaces for each port; needs root. The switch's ends are elsewhere."""

    ports: Iterable[int]
    switch: dict[int, str] = field(default_factory=dict)
    tester: dict[int, str] = field(default_factory=dict)
    namespace: Path | None = None
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> "VethWiring":
        with ExitStack() as stack:
            network = stack.enter_context(own_network())
            self.namespace = network.path
            for port in self.ports:
                # 15 characters at most, and no other process has them.
                stem = f"g{os.getpid()}x{next(_numbers)}"
                ours, theirs = f"{stem}s", f"{stem}t"
                network.add_cable(theirs, ours)
                self.switch[port], self.tester[port] = f"eth:{ours}", theirs
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()
