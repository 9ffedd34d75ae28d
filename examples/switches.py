"""Switches on this machine, until Ctrl-C or SIGTERM; network.toml says how workers reach them."""

import argparse
import signal
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.files import private_folder
from switchgnn.base.interruptible import Interruption, wait_for_interrupt
from switchgnn.base.network import leaf_spine_networks, star_network
from switchgnn.base.network_file import network_text
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from switchgnn.topologies import Target, Topology, folder_for_sockets, socket_address
from switchgnn.topologies.loopback_fabric import LoopbackFabric


def topology_of(workers: int, leaves: int, spines: int, folder: Path) -> Topology:
    """Return a star, or a leaf-spine where there are leaves.

    Args:
        workers: their number.
        leaves: how many switches they are divided over; 0: a star.
        spines: how many switches are above the leaves.
        folder: for the sockets of P4Runtime.
    """
    if not leaves:
        return Topology(star_network(workers).alone, Target.EMBEDDED, (socket_address(folder),))
    leaf_of_worker = even_leaf_spine(workers, leaves, spines).leaf_of_worker
    networks = leaf_spine_networks(leaf_of_worker, spines)
    sockets = (socket_address(folder, f"switch-{n}") for n in range(leaves + spines))
    return Topology(networks, Target.EMBEDDED, tuple(sockets))


def main() -> None:
    """Read the options and serve; what cannot be is one sentence and exit code 2."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=4, choices=range(1, 129), metavar="N")
    parser.add_argument("--leaves", type=int, default=0, help="0: a star")
    parser.add_argument("--spines", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("network.toml"))
    asked = parser.parse_args()
    if asked.out.exists():
        parser.error(f"{asked.out} exists already: remove it, or name another file with --out")
    # Shells let programs that they start with `&` ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with Interruption() as interruption, suppress(KeyboardInterrupt):
            interruption.at_once()
            serve(asked.workers, asked.leaves, asked.spines, asked.out)
    except SwitchGNNError as error:
        parser.error(str(error))


def serve(workers: int, leaves: int, spines: int, out: Path) -> None:
    """Run the switches until a signal ends them; the network file is there while they serve.

    Args:
        workers: their number.
        leaves: how many switches they are divided over; 0: a star.
        spines: how many switches are above the leaves.
        out: the file.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(private_folder("switches-"))
        sockets = stack.enter_context(folder_for_sockets(folder))
        topology = topology_of(workers, leaves, spines, sockets)
        fabric = LoopbackFabric(topology, folder)
        stack.enter_context(fabric)
        stack.callback(out.unlink, missing_ok=True)
        out.write_text(network_text(fabric.describe()))
        sys.stdout.write(f"Serving; {out} says where. Ctrl-C ends the switches.\n")
        sys.stdout.flush()
        wait_for_interrupt()


if __name__ == "__main__":
    main()
