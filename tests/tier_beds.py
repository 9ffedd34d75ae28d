# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Leaves and spines with a plan on them, workers as threads, and faults on every cable."""

import os
import threading
from contextlib import ExitStack, contextmanager

from switchgnn.controller import Share, install_each, leaf_spine_network, tier_plan
from switchgnn.host.faults import Faults, FaultyLink
from switchgnn.host.link import open_link
from switchgnn.p4src import load_program
from switchgnn.planner.build import build_plan
from switchgnn.planner.load import load_graph
from switchgnn.planner.racks import even_racks
from switchgnn.planner.tiers import make_tiers
from switchgnn.run.addresses import worker_addresses
from switchgnn.topologies import LeafSpineSite, Target, WireBytes, free_tcp_port
from switchgnn.topologies.loopback import LoopbackFabric, free_udp_ports
from switchgnn.topologies.targets import wait_until_serving

_TURN_SECONDS = 0.0005


class RelayedFabric(LoopbackFabric):
    """Every cable goes through a relay that loses, repeats, reorders and corrupts."""

    def __init__(self, site, folder, faults):
        super().__init__(site, folder)
        self.faults = Faults.parse(faults)
        self.relays = []

    def _links(self):
        links = super()._links()
        for number, (_, lower, upper) in enumerate(self.site.cables):
            to_lower, to_upper = free_udp_ports(2)
            ends = [links[end.switch][end.port].split(":") for end in (lower, upper)]
            sides = []
            for (switch, port), end, ours in zip(
                (lower, upper), ends, (to_lower, to_upper), strict=True
            ):
                links[switch][port] = f"udp:127.0.0.1:{end[2]}:127.0.0.1:{ours}"
                sides.append(f"udp:127.0.0.1:{ours}:127.0.0.1:{end[2]}")
            self.relays.append(_Relay(*sides, self.faults, number))
        return links

    def stop(self):
        for relay in self.relays:
            relay.stop()
        super().stop()

    def cable_bytes(self):
        """What the relays have taken, frame by frame: as interfaces would count."""
        return [WireBytes(*relay.carried) for relay in self.relays]

    def cable_frames(self):
        """Frames up and down that the relays have taken, of each cable."""
        return [tuple(relay.frames) for relay in self.relays]

    def injected(self):
        """How many frames met a fault between switches."""
        return sum(relay.injected() for relay in self.relays)

    def restart(self, switch):
        """Kill a switch as a power cut would, and start it without a program."""
        child = self._switches[switch]
        os.kill(child.pid, 9)
        child.stop()
        child.start()
        wait_until_serving(child, self.site.switches[switch].grpc_address)


class _Relay:
    def __init__(self, lower, upper, faults, number):
        # A frame up is one that the lower switch sends: for the link to it, it comes down.
        self._lower, self._upper = open_link(lower), open_link(upper)
        if faults.rates:
            self._lower = FaultyLink(self._lower, faults, number)
        self.carried = [0, 0]  # bytes up, bytes down
        self.frames = [0, 0]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        self._stop.set()
        self._thread.join(5)
        self._lower.close()
        self._upper.close()

    def injected(self):
        counts = getattr(self._lower, "counts", {})
        return sum(sum(vars(each).values()) for each in counts.values())

    def _run(self):
        while not self._stop.is_set():
            both = (self._lower, self._upper), (self._upper, self._lower)
            for way, (source, target) in enumerate(both):
                frame = source.receive(_TURN_SECONDS)
                while frame is not None:
                    self.carried[way] += len(frame)
                    self.frames[way] += 1
                    target.send(bytes(frame))
                    frame = source.receive(0.0)


class TierBed:
    """What tests.beds.Team needs, on several switches. Made by :func:`tier_bed`."""

    strawman = False

    def __init__(self, folder, *, workers, leaves, spines, slots, send, graph, faults):
        self.workers = workers
        self.program = load_program()
        self.graph = load_graph(graph)
        self.plan = build_plan(
            self.graph, workers=workers, slots=slots, program=self.program.digest, send=send
        )
        self.racks = even_racks(workers, leaves, spines)
        self.tiers = make_tiers(self.plan, self.racks)
        networks = leaf_spine_network(self.racks.leaf_of_worker, spines)
        addresses = tuple(f"127.0.0.1:{free_tcp_port()}" for _ in networks.switches)
        self.site = LeafSpineSite(networks, Target.EMBEDDED, addresses)
        self.fabric = RelayedFabric(self.site, folder, faults)

    def shares(self):
        """What each switch has to serve."""
        parts = (*self.tiers.leaves, *self.tiers.spines)
        plans = [tier_plan(self.plan.manifest, part) for part in parts]
        return [
            Share(plan, switch.network, switch.grpc_address)
            for plan, switch in zip(plans, self.site.switches, strict=True)
        ]

    def install(self, *, new_session=True):
        """Install the plan on all switches."""
        return install_each(self.shares(), program=self.program, new_session=new_session)

    def link(self, worker):
        return open_link(self.fabric.worker_link(worker))

    def addresses(self, worker):
        return worker_addresses(self.site.network_of(worker), self.site.places[worker][1])


@contextmanager
def tier_bed(
    folder,
    *,
    workers=4,
    leaves=2,
    spines=1,
    slots=16,
    send="multicast",
    graph="karate",
    faults="",
):
    """Switches that run and serve the plan."""
    made = TierBed(
        folder,
        workers=workers,
        leaves=leaves,
        spines=spines,
        slots=slots,
        send=send,
        graph=graph,
        faults=faults,
    )
    with ExitStack() as stack:
        stack.enter_context(made.fabric)
        made.install()
        yield made
