# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""TCP flows between the workers, through the same links and the same switches."""

from contextlib import ExitStack
from types import TracebackType

from switchgnn.base.machine import python_program
from switchgnn.topologies.errors import FabricError
from switchgnn.topologies.fabric import Fabric
from switchgnn.topologies.processes.child import Child

_PROGRAM = python_program("switchgnn.topologies.tcp_flows")


class BackgroundTraffic:
    """Flows from each worker to the next, as long as the context lasts.

    The plan must be installed: the switches forward by its tables.

    Args:
        fabric: running, with hosts that have a network of their own.
        flows: from each worker to the next; 0 for none.
    """

    def __init__(self, fabric: Fabric, flows: int) -> None:
        self._fabric = fabric
        self._flows = flows
        self._stack = ExitStack()
        self._children: list[Child] = []

    def __enter__(self) -> "BackgroundTraffic":
        site = self._fabric.site
        workers = site.workers
        if self._flows and not self._fabric.workers_have_hosts:
            raise FabricError("Background traffic needs hosts of their own: take --fabric mininet.")
        with self._stack:
            for worker in range(workers if self._flows else 0):
                child = self._fabric.worker_child(worker, _PROGRAM, name="background")
                self._children.append(self._stack.enter_context(child))
            for child in self._children:
                child.read_line()
            for worker, child in enumerate(self._children):
                for _ in range(self._flows):
                    self._write(child, f"connect {site.station((worker + 1) % workers).ip}")
                    child.read_line()
            for child in self._children:
                self._write(child, "fill")
                child.read_line()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def received_bytes(self) -> int:
        """Return what all flows have brought so far."""
        for child in self._children:
            self._write(child, "count")
        return sum(int(child.read_line()) for child in self._children)

    @staticmethod
    def _write(child: Child, line: str) -> None:
        child.stdin.write(f"{line}\n")
        child.stdin.flush()
