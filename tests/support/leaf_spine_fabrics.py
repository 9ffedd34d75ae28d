"""Leaves and spines with a plan on them, workers as threads, and a relay on every cable.

The networks are the product's: embedded switches over loopback, BMv2 in Mininet, where each
thread opens its link in the namespace of its worker.
"""

import os
from contextlib import contextmanager, nullcontext
from pathlib import Path

from switchgnn.controller import (
    DesiredStates,
    Share,
    install_each,
    leaf_spine_networks,
    leaf_spine_switch_plan,
)
from switchgnn.host.wire.link import open_link
from switchgnn.p4src import load_program
from switchgnn.planner import build_plan, load_graph
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from switchgnn.planner.plan.leaf_spine import split_for_leaf_spine
from switchgnn.topologies import FABRICS, FabricKind, Target, Topology, socket_address
from switchgnn.topologies.targets import wait_until_serving
from tests.support.commands import forkserver
from tests.support.networks import in_network

NO_FAULTS = "cables.loss=0"


class LeafSpineBed:
    """A leaf-spine for `tests.support.fabrics.Team`."""

    strawman = False

    def __init__(self, target, folder, *, workers=4, leaves=2, spines=1, graph="karate", **options):
        self.target, self.workers = target, workers
        self.program = load_program()
        self.graph = load_graph(graph)
        self.plan = build_plan(
            self.graph,
            workers=workers,
            program=self.program.digest,
            **{"slots": 16, "send": "multicast", "lanes": 32, **options},
        )
        self.leaf_spine = even_leaf_spine(workers, leaves, spines)
        self.parts = split_for_leaf_spine(self.plan, self.leaf_spine)
        networks = leaf_spine_networks(self.leaf_spine.leaf_of_worker, spines)
        addresses = tuple(
            socket_address(Path(folder), f"switch-{number}")
            for number in range(len(networks.switches))
        )
        self.topology = Topology(networks, target, addresses)
        kind = FabricKind.LOOPBACK if target is Target.EMBEDDED else FabricKind.MININET
        self.fabric = FABRICS[kind](
            self.topology, Path(folder), cable_faults=NO_FAULTS, forkserver=forkserver()
        )

    def shares(self):
        parts = self.parts.switches
        plans = [leaf_spine_switch_plan(self.plan.manifest, part) for part in parts]
        return [
            Share(plan, switch.network, switch.grpc_address)
            for plan, switch in zip(plans, self.topology.switches, strict=True)
        ]

    def install(self, *, new_session=True):
        report = install_each(self.shares(), DesiredStates(self.program), new_session=new_session)
        self.session = report.session
        return report

    def disturb(self, faults):
        """Inject these faults on all cables from now on."""
        self.fabric.relay.disturb(faults)

    def restart(self, switch):
        """Kill a switch without warning, and start it without a program."""
        child = self.fabric._switches[switch]
        os.kill(child.pid, 9)
        child.stop()
        child.start()
        wait_until_serving(child, self.topology.switches[switch].grpc_address)

    def link(self, worker):
        namespace = self.fabric.worker_namespace(worker)
        with nullcontext() if namespace is None else in_network(namespace):
            return open_link(self.fabric.worker_link(worker))

    def addresses(self, worker):
        return self.topology.addresses(worker)


@contextmanager
def leaf_spine_bed(folder, target=Target.EMBEDDED, **options):
    """Start the switches of a leaf-spine, with a plan; options as of `LeafSpineBed`."""
    made = LeafSpineBed(target, folder, **options)
    with made.fabric:
        made.install()
        yield made
