# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Links between the ports of a switch and PTF: pairs of interfaces, or UDP on loopback."""

import itertools
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import TracebackType

from switchgnn.topologies.free_ports import free_udp_addresses

_numbers = itertools.count()


@dataclass
class UdpWiring:
    """Two UDP sockets on loopback for each port; needs no root."""

    ports: Iterable[int]
    switch: dict[int, str] = field(default_factory=dict)
    tester: dict[int, str] = field(default_factory=dict)

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
    """A pair of virtual interfaces for each port; needs root."""

    ports: Iterable[int]
    switch: dict[int, str] = field(default_factory=dict)
    tester: dict[int, str] = field(default_factory=dict)
    _pairs: list[str] = field(default_factory=list)

    def __enter__(self) -> "VethWiring":
        try:
            for port in self.ports:
                self._add_pair(port)
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._remove()

    def _add_pair(self, port: int) -> None:
        # 15 characters at most, and no other process has them.
        stem = f"g{os.getpid()}x{next(_numbers)}"
        ours, theirs = f"{stem}s", f"{stem}t"
        self._pairs.append(ours)
        _ip("link", "add", ours, "type", "veth", "peer", "name", theirs)
        for name in (ours, theirs):
            # Before it is up, so that the kernel sends nothing of its own.
            _ip("link", "set", name, "addrgenmode", "none")
            _disable_ipv6(name)
            _ip("link", "set", name, "up")
        self.switch[port] = f"eth:{ours}"
        self.tester[port] = theirs

    def _remove(self) -> None:
        while self._pairs:
            # Its peer goes with it.
            _ip("link", "delete", self._pairs.pop(), check=False)


def _ip(*words: str, check: bool = True) -> None:
    subprocess.run(["ip", *words], check=check, capture_output=True)


def _disable_ipv6(interface: str) -> None:
    words = ["sysctl", "-qw", f"net.ipv6.conf.{interface}.disable_ipv6=1"]
    subprocess.run(words, check=False, capture_output=True)
