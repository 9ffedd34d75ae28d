"""A star of veth pairs: the smallest fabric that both switches can be attached to."""

import os
import subprocess
from collections.abc import Iterable
from itertools import count
from pathlib import Path

from bench.errors import BenchError
from switchgnn.topologies import Fabric, Topology, WireBytes
from switchgnn.topologies.child import Child
from switchgnn.topologies.rpc_address import require_free
from switchgnn.topologies.targets import switch_child, wait_until_serving

_STARS = count()


class VethStar(Fabric):
    """Switch and workers in one namespace, with a veth pair for each worker."""

    def __init__(self, star: Topology, folder: Path) -> None:
        super().__init__(star, folder)
        # A name has at most 15 characters and must differ from those of other programs.
        self._tag = f"b{os.getpid() % 0x100000:x}{next(_STARS)}"
        self._switch: Child | None = None
        (self._address,) = star.grpc_addresses

    def start(self) -> None:
        """Make the pairs, start the switch, and wait until it serves P4Runtime."""
        if self._switch is not None:
            return
        require_free(self._address)
        for worker in range(self.topology.workers):
            make_pair(self._host_end(worker), self._switch_end(worker))
        self._switch = switch_child(
            self.topology.target,
            ports={
                neighbour.port: f"eth:{self._switch_end(worker)}"
                for worker, neighbour in enumerate(self.topology.network_of(0).neighbours)
            },
            grpc_address=self._address,
            log=self.folder / f"{self._tag}.log",
            backend=self.topology.backend,
        )
        self._switch.start()
        wait_until_serving(self._switch, self._address)

    def stop(self) -> None:
        """End the switch and remove the pairs."""
        switch, self._switch = self._switch, None
        if switch is not None:
            switch.stop()
            for worker in range(self.topology.workers):
                remove_pair(self._host_end(worker))

    @property
    def switch_processes(self) -> list[int]:
        """The id of the switch's process while it runs."""
        return [] if self._switch is None or self._switch.pid is None else [self._switch.pid]

    def worker_link(self, worker: int) -> str:
        """Return the worker's end of its pair."""
        return f"eth:{self._host_end(worker)}"

    def wire_bytes(self) -> list[WireBytes]:
        """Return what the switch's ends of the pairs have received and sent."""
        return [
            WireBytes(*_counters(self._switch_end(worker)))
            for worker in range(self.topology.workers)
        ]

    def _host_end(self, worker: int) -> str:
        return f"{self._tag}w{worker}"

    def _switch_end(self, worker: int) -> str:
        return f"{self._tag}s{worker}"


def make_pair(one: str, other: str) -> None:
    """Make a veth pair and enable both ends."""
    _ip(["link", "add", "name", one, "type", "veth", "peer", "name", other])
    for name in (one, other):
        _ip(["link", "set", name, "up"])


def remove_pair(one: str) -> None:
    """Remove a veth pair by one of its ends."""
    _ip(["link", "del", one])


def _counters(interface: str) -> tuple[int, int]:
    # /sys shows the namespace in which it was mounted; /proc/thread-self shows ours.
    for line in Path("/proc/thread-self/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == interface:
            fields = numbers.split()
            return int(fields[0]), int(fields[8])
    raise BenchError(f"There is no interface {interface}.")


def _ip(arguments: Iterable[str]) -> None:
    result = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if result.returncode:
        raise BenchError(f"`ip {' '.join(arguments)}` failed: {result.stderr.strip()}")
