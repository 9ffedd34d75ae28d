"""A switch, a network file, and processes as torchrun starts them, all on this machine."""

import sys
from contextlib import contextmanager
from pathlib import Path

from switchgnn.base.network import leaf_spine_networks, star_network
from switchgnn.base.network_file import network_text
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from switchgnn.topologies import Target, Topology, socket_address
from switchgnn.topologies.child import Child, temporary_files_in
from switchgnn.topologies.loopback_fabric import LoopbackFabric
from tests.support.commands import forkserver
from tests.support.speed import seconds_here

ROOT = Path(__file__).parent.parent.parent
SECONDS = 200


class Machine:
    """A folder in which scripts run, next to a switch."""

    def __init__(self, workers, folder):
        self.workers = workers
        self.folder = folder
        self.runs = 0

    def run(self, words):
        code, output, error = self.try_to_run(words)
        assert code == 0, f"{output[-2000:]}\n{error[-4000:]}"
        return output

    def try_to_run(self, words):
        with self.child(words) as child:
            child.stdin.close()
            output = child.stdout.read()
            return child.wait(seconds_here(SECONDS)), output, child.log.read_text()

    def child(self, words):
        self.runs += 1
        variables = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        # PyTorch Geometric and torchrun leave files there.
        variables |= temporary_files_in(self.folder)
        there = ("env", f"--chdir={self.folder}", *map(str, words))
        log = self.folder / f"error-{self.runs}.txt"
        return Child("script", there, log, pipe=True, environment=variables)

    def torchrun(self, *words):
        return self.run(self.torchrun_words(*words))

    def torchrun_words(self, *words):
        options = ("--standalone", "--nproc-per-node", str(self.workers))
        return [sys.executable, "-m", "torch.distributed.run", *options, *words]


@contextmanager
def one_machine(workers, folder, *, leaves=0, spines=1):
    topology = _leaf_spine(workers, leaves, spines, folder) if leaves else _star(workers, folder)
    with LoopbackFabric(topology, folder, forkserver=forkserver()) as fabric:
        (folder / "network.toml").write_text(network_text(fabric.describe()))
        yield Machine(workers, folder)


def _star(workers, folder):
    return Topology(star_network(workers).alone, Target.EMBEDDED, (socket_address(folder),))


def _leaf_spine(workers, leaves, spines, folder):
    networks = leaf_spine_networks(even_leaf_spine(workers, leaves, spines).leaf_of_worker, spines)
    addresses = tuple(socket_address(folder, f"switch-{n}") for n in range(leaves + spines))
    return Topology(networks, Target.EMBEDDED, addresses)
