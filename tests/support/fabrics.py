"""A switch with a plan on it, and workers as threads: quick enough for a matrix.

The embedded switch is reached over UDP, BMv2 over veth pairs into a network namespace of its own.
Leaves and spines are in the product's networks: embedded switches over loopback, BMv2 in Mininet,
where each thread opens its link in the namespace of its worker.
"""

import os
import secrets
import threading
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path

import numpy as np

from switchgnn.base.network import network_on, star_network
from switchgnn.controller import (
    DesiredStates,
    JobRequest,
    Share,
    install_each,
    leaf_spine_networks,
    leaf_spine_switch_plan,
    load_plan,
)
from switchgnn.host import Addresses, InNetworkExchange, Pace, open_link
from switchgnn.host.links.faults import Faults, FaultyLink
from switchgnn.host.strawman import StrawmanExchange
from switchgnn.p4src import load_program, load_strawman
from switchgnn.planner import Direction, build_plan, load_graph, reference_sums
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from switchgnn.planner.plan.leaf_spine import split_for_leaf_spine
from switchgnn.topologies import FABRICS, FabricKind, Target, Topology, socket_address
from switchgnn.topologies.rpc_address import free_udp_addresses
from switchgnn.topologies.targets import switch_child, wait_until_serving
from tests.support.commands import forkserver
from tests.support.networks import in_network, own_network
from tests.support.speed import pace_here, seconds_here

JOIN_SECONDS = 100
PATIENT = Pace(timeout=30.0)


class Bed:
    """A running switch with ports for workers. Made by :func:`bed`."""

    def __init__(
        self,
        target,
        workers,
        folder,
        *,
        graph="karate",
        slots=16,
        strawman=False,
        left=None,
        backend=None,
        mtu=1500,
        bandwidth=None,
        **options,
    ):
        self.target, self.workers, self.folder = target, workers, Path(folder)
        self.network = star_network(workers)
        self.address = socket_address(self.folder)
        self.strawman = strawman
        self.program = load_strawman() if strawman else load_program()
        self.graph = load_graph(graph)
        self.left, self.backend, self.mtu, self.bandwidth = left, backend, mtu, bandwidth
        of_strawman = {"blocks": "strawman", "order": "random"} if strawman else {}
        self._options = options | of_strawman
        self.plan = self.plan_for(slots)
        self._udp = free_udp_addresses(2 * workers)
        self._tag = f"b{secrets.token_hex(3)}"  # Several beds may be up at once.
        self._network = None
        self.switch = None
        self.session = 0

    def plan_for(self, slots):
        return build_plan(
            self.graph,
            workers=self.workers,
            slots=slots,
            program=self.program.digest,
            left=None if self.left is None else self.left(self.graph),
            **self._options,
        )

    def start(self):
        self.switch = switch_child(
            self.target,
            ports={port: self._switch_side(port) for port in range(1, self.workers + 1)},
            grpc_address=self.address,
            log=self.folder / "switch.log",
            backend=self.backend,
            bandwidth=self.bandwidth,
            forkserver=forkserver(),
            namespace=self._network and self._network.path,
        )
        self.switch.start()
        wait_until_serving(self.switch, self.address)

    def kill(self):
        os.kill(self.switch.pid, 9)
        self.switch.stop()

    def restart(self, _switch=0):
        self.kill()
        self.start()

    def shares(self):
        return [Share(load_plan(self.plan), self.network, self.address)]

    def install(self):
        report = install_each(self.shares(), DesiredStates(self.program), new_session=True)
        self.session = report.session
        return report

    def disturb(self, faults):
        """Do nothing: there are no cables."""

    def link(self, worker, *protocols):
        return open_link(
            f"eth:{self._tag}w{worker}"
            if self.target is Target.BMV2
            else f"udp:{self._udp[worker]}:{self._udp[self.workers + worker]}",
            *protocols,
        )

    def add_cables(self, stack):
        if self.target is not Target.BMV2:
            return
        self._network = stack.enter_context(own_network())
        for worker in range(self.workers):
            self._network.add_cable(f"{self._tag}w{worker}", f"{self._tag}s{worker}", self.mtu)

    def addresses(self, worker):
        return Addresses(self.network.neighbours[worker].station, self.network.switch)

    def _switch_side(self, port):
        worker = port - 1
        if self.target is Target.BMV2:
            return f"eth:{self._tag}s{worker}"
        here, there = self._udp[self.workers + worker], self._udp[worker]
        return f"udp:{here}:{there}"


@contextmanager
def bed(target, workers, folder, **options):
    """Start the switch of a bed, without a plan; other options are those of the plan."""
    made = Bed(target, workers, folder, **options)
    with ExitStack() as stack:
        made.add_cables(stack)
        stack.callback(lambda: made.switch and made.switch.stop())
        made.start()
        yield made


class JobBed:
    """A job on some ports of a running switch, for `Team`; on the strawman's it shares slots."""

    def __init__(self, bed, name, first, workers, *, graph=None, **planned):
        self.bed, self.name, self.graph = bed, name, graph or bed.graph
        self.strawman, self.workers = bed.strawman, workers
        self.session = 0
        self.network = network_on(range(first + 1, first + 1 + workers))
        self.plan = build_plan(self.graph, workers=workers, program=bed.program.digest, **planned)
        self._first = first

    def install(self, client=None):
        share = Share(load_plan(self.plan), self.network, client or self.bed.address)
        request = JobRequest(self.name, shared=self.strawman)
        desired = DesiredStates(self.bed.program)
        self.session = install_each([share], desired, request, new_session=True).session

    def link(self, worker):
        return self.bed.link(self._first + worker)

    def addresses(self, worker):
        return Addresses(self.network.neighbours[worker].station, self.network.switch)


def in_threads(work, workers):
    """Call ``work(worker)`` in a thread for each worker, and wait for all."""
    threads = [
        threading.Thread(target=work, args=(worker,), daemon=True) for worker in range(workers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds_here(JOIN_SECONDS))
        assert not thread.is_alive(), "a worker hangs"


def added_up(records):
    counted = [asdict(each) for each in records]
    return {name: sum(each[name] for each in counted) for name in counted[0]}


class Team:
    """All workers of a bed, each in a thread with its own link; `link` opens that of a worker."""

    def __init__(self, bed, stack, *, faults="", pace=PATIENT, on_block=None, kind=None, link=None):
        open_link = link or bed.link
        self.bed = bed
        self.links = []
        self.exchanges = []
        self.errors = {}
        parsed = Faults.parse(faults)
        kind = kind or (StrawmanExchange if bed.strawman else InNetworkExchange)
        for part in bed.plan.workers:
            link = stack.enter_context(open_link(part.worker))
            if faults:
                link = FaultyLink(link, parsed, part.worker)
            self.links.append(link)
            self.exchanges.append(
                kind(
                    *(bed.plan.manifest, part, link, bed.addresses(part.worker)),
                    session=bed.session,
                    pace=pace_here(pace),
                    on_block=on_block,
                )
            )

    def run(self, rounds, width=33, seed=0, *, stops=None):
        """Exchange `rounds` rounds, or `stops[worker]`; return the number of wrong sums."""
        generator = np.random.default_rng(seed)
        shape = (self.bed.graph.vertices, width)
        features = [generator.standard_normal(shape).astype(np.float32) for _ in range(rounds)]
        results = self.exchange(features, [Direction.FORWARD] * rounds, stops=stops)
        if self.errors:
            return None
        return sum(map(self._wrong, features, results))

    def exchange(self, features, directions, *, stops=None):
        """Exchange features round after round; return the sums; `errors` says what is wrong."""
        results = [{} for _ in features]

        def work(worker):
            rows = self.bed.plan.workers[worker].vertices
            for index in range((stops or {}).get(worker, len(features))):
                try:
                    results[index][worker] = self.exchanges[worker].aggregate_fixed(
                        features[index][rows], directions[index]
                    )
                except Exception as error:
                    self.errors[worker] = error
                    return

        in_threads(work, self.bed.workers)
        return results

    def total(self):
        return added_up(exchange.counters for exchange in self.exchanges)

    def injected(self):
        return added_up(counts for link in self.links for counts in link.counts.values())

    def _wrong(self, features, result):
        scale = result[0].fixed_point.scale
        fixed = np.rint(features.astype(np.float64) * scale).astype(np.int64)
        expected = reference_sums(self.bed.graph, self.bed.plan.assignment, fixed)
        got = np.zeros(features.shape, dtype=np.int64)
        for worker, sums in result.items():
            got[self.bed.plan.workers[worker].vertices] = sums.values
        return int((got != expected).sum())


NO_FAULTS = "cables.loss=0"


class LeafSpineBed:
    """A leaf-spine for `tests.support.fabrics.Team`."""

    strawman = False

    def __init__(self, target, folder, *, workers=4, leaves=2, spines=1, graph="karate", **options):
        self.target, self.workers = target, workers
        self.program = load_program()
        self.graph = load_graph(graph)
        self.plan = build_plan(
            self.graph, workers=workers, program=self.program.digest, **{"slots": 16, **options}
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
        plans = [leaf_spine_switch_plan(self.plan.manifest, part) for part in self.parts.switches]
        return [
            Share(plan, switch.network, switch.grpc_address)
            for plan, switch in zip(plans, self.topology.switches, strict=True)
        ]

    def install(self, *, new_session=True):
        report = install_each(self.shares(), DesiredStates(self.program), new_session=new_session)
        self.session = report.session
        return report

    def disturb(self, faults):
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
    made = LeafSpineBed(target, folder, **options)
    with made.fabric:
        made.install()
        yield made
