# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A switch, a network file, and processes as torchrun starts them, all on this machine."""

import sys
from contextlib import contextmanager
from pathlib import Path

from switchgnn.network import star_network
from switchgnn.network.described import (
    DescribedNetwork,
    DescribedSwitch,
    DescribedWorker,
    SwitchTarget,
)
from switchgnn.network.file import network_text
from switchgnn.topologies import Target, socket_address
from switchgnn.topologies.child import Child, temporary_files_in
from switchgnn.topologies.free_ports import free_udp_addresses
from switchgnn.topologies.targets import switch_child, wait_until_serving
from tests.support.commands import nursery
from tests.support.speed import seconds_here

ROOT = Path(__file__).parent.parent.parent
SECONDS = 200


class Machine:
    """A folder in which scripts run, beside a switch. Made by :func:`one_machine`."""

    def __init__(self, workers, folder):
        self.workers = workers
        self.folder = folder
        self.runs = 0

    def run(self, words):
        """Run a program in the folder; return what it prints."""
        code, output, error = self.try_to_run(words)
        assert code == 0, f"{output[-2000:]}\n{error[-4000:]}"
        return output

    def try_to_run(self, words):
        """Run a program in the folder; return its exit code, output and error."""
        with self.child(words) as child:
            child.stdin.close()
            output = child.stdout.read()
            return child.wait(seconds_here(SECONDS)), output, child.log.read_text()

    def child(self, words):
        """A program in the folder, to be started as a context manager."""
        self.runs += 1
        variables = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        # PyTorch Geometric and torchrun leave files there.
        variables |= temporary_files_in(self.folder)
        there = ("env", f"--chdir={self.folder}", *map(str, words))
        log = self.folder / f"error-{self.runs}.txt"
        return Child("script", there, log, pipe=True, environment=variables)

    def torchrun(self, *words):
        """Run a script as all workers; return what they print."""
        return self.run(self.torchrun_words(*words))

    def torchrun_words(self, *words):
        """The words of torchrun, which finds a free port by itself."""
        options = ("--standalone", "--nproc-per-node", str(self.workers))
        return [sys.executable, "-m", "torch.distributed.run", *options, *words]


@contextmanager
def one_machine(workers, folder):
    """Start a switch, and write a network file with its workers."""
    udp = free_udp_addresses(2 * workers)
    address = socket_address(folder)
    switch = switch_child(
        Target.EMBEDDED,
        ports={
            worker + 1: f"udp:{udp[workers + worker]}:{udp[worker]}" for worker in range(workers)
        },
        grpc_address=address,
        device_id=0,
        log=folder / "switch.log",
        nursery=nursery(),
    )
    network = star_network(workers)
    described = DescribedNetwork(
        switches=(
            DescribedSwitch(
                "s0", address, SwitchTarget.EMBEDDED, network.switch.mac, network.switch.ip
            ),
        ),
        workers=tuple(
            DescribedWorker(
                "s0",
                each.port,
                each.station.mac,
                each.station.ip,
                link=f"udp:{udp[worker]}:{udp[workers + worker]}",
                gloo="lo",
            )
            for worker, each in enumerate(network.neighbours)
        ),
    )
    (folder / "network.toml").write_text(network_text(described))
    switch.start()
    try:
        wait_until_serving(switch, address)
        yield Machine(workers, folder)
    finally:
        switch.stop()
