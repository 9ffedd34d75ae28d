# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Embedded switches with a plan, the links to them, and what the switches count."""

from contextlib import ExitStack, contextmanager
from dataclasses import replace

from switchgnn.base.network import mac_number
from switchgnn.controller import P4RuntimeClient, install, read_counters
from switchgnn.controller.controls.forward import FORWARD, Forward
from switchgnn.controller.controls.session import Session
from switchgnn.controller.p4runtime.messages import INSERT, default_update
from switchgnn.controller.p4runtime.rows import make_rows
from switchgnn.controller.p4runtime.state import read_default
from switchgnn.controller.p4runtime.wire import encode_rows
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.header import SESSION_MASK, BarrierBody, Header, Kind
from switchgnn.host.wire.link import open_link
from switchgnn.topologies import Target, socket_address
from switchgnn.topologies.free_ports import free_udp_addresses
from switchgnn.topologies.targets import switch_child, wait_until_serving
from tests.fuzz.frames import ping
from tests.fuzz.team import PATIENT, WORKERS, Team, world_of
from tests.support.commands import forkserver
from tests.support.leaf_spine_fabrics import leaf_spine_bed
from tests.support.speed import Deadline

STRANGER = WORKERS
_SECONDS = 20.0


class Field:
    """What is common to a star and a leaf-spine: ``world``, ``links``, ``session``, ``clients``."""

    workers = WORKERS

    def team(self, *last, pace=PATIENT):
        """All workers; the last ones have these links."""
        links = [*self.links[: self.workers - len(last)], *last]
        return Team(self.world, links, self.addresses, session=self.session, pace=pace)

    def send(self, end, header, body=b""):
        header = header._replace(session=self.session & SESSION_MASK)
        self.links[end].send(self.addresses(end).frame(header.pack(body)))

    def echo(self, end, number=0):
        """Return when everything sent at this end has passed the switch's ingress."""
        question = ping(self.mac(end), number)
        self.links[end].send(question)
        deadline = Deadline(_SECONDS)
        while not deadline.is_over():
            if self.links[end].receive(1.0) == question:
                return
        raise TimeoutError(f"no echo of frame {number}")

    def report_done(self, worker, *, block, magnitude=0):
        """Report a block of round 1 done for a worker that is not."""
        body = BarrierBody(magnitude=magnitude, plan=self.world.facts.plan_id).pack()
        self.send(
            worker,
            Header(kind=Kind.DONE, src_id=worker, is_ack=True, block_id=block, round=1),
            body,
        )
        self.echo(worker)

    def ask(self, worker, kind, vertex, *, block, round_number):
        """Recall or fetch a vertex."""
        source = min(self.world.facts.owner)
        numbers = {"src_id": source, "dst_id": vertex, "block_id": block, "round": round_number}
        self.send(worker, Header(kind=kind, **numbers))

    def counted_each(self):
        """Frames of each switch by outcome, when all are counted or time is up."""
        deadline = Deadline(_SECONDS)
        while True:
            delta = [
                {name: now[name] - before[name] for name in now}
                for now, before in zip(self._outcomes(), self._before, strict=True)
            ]
            if [sum(counts.values()) for counts in delta] == self.arrived() or deadline.is_over():
                return delta

    def _outcomes(self):
        return [
            {outcome.name: count for outcome, count in read_counters(client).outcomes.items()}
            for client in self.clients
        ]


class Star(Field):
    """A switch over UDP, and one port more than workers, where an ordinary host is."""

    def __init__(self, stack, world, program, folder):
        self.world = world
        self.links = []
        self._program = program
        self._address = socket_address(folder)
        self._udp = free_udp_addresses(2 * (WORKERS + 1))
        self.switch = switch_child(
            Target.EMBEDDED,
            ports={end + 1: self._link(end, at_switch=True) for end in range(WORKERS + 1)},
            grpc_address=self._address,
            device_id=0,
            log=folder / "switch.log",
            forkserver=forkserver(),
        )
        stack.callback(self.switch.stop)
        self.switch.start()
        wait_until_serving(self.switch, self._address)
        self.clients = [stack.enter_context(P4RuntimeClient(self._address, primary=False))]
        stack.callback(self._close_links)
        self.renew()

    def renew(self):
        """Begin a new session, with links on which nothing has arrived."""
        self._close_links()
        plan = self.world.plan
        self.session = install(
            (plan.manifest, plan.switch),
            [self._address],
            self.world.network,
            program=self._program,
            new_session=True,
        ).session
        self._connect_the_stranger()
        self.links = [open_link(self._link(end)) for end in range(WORKERS + 1)]
        self._before = self._outcomes()

    def accept_any_turn(self):
        """Make the switch accept frames out of turn, as after a restart."""
        with P4RuntimeClient(self._address) as client:
            session = Session(client.get_layout())
            entry = session.decode(read_default(client, session.table))
            lenient = session.encode(replace(entry, any_turn=1))
            client.write([default_update(session.table, lenient)])

    def addresses(self, end):
        network = self.world.network
        return Addresses(network.neighbours[end].station, network.switch)

    def mac(self, end):
        return self.world.network.neighbours[end].station.mac

    def arrived(self):
        """Frames that were handed to the links since the start."""
        return [sum(link.traffic.frames_up for link in self.links)]

    def counted(self):
        return self.counted_each()[0]

    def _close_links(self):
        for link in self.links:
            link.close()

    def _connect_the_stranger(self):
        with P4RuntimeClient(self._address) as client:
            table = Forward(client.get_layout()).table
            values = {"dst_addr": mac_number(self.mac(STRANGER)), "port": STRANGER + 1}
            client.write_requests(encode_rows(INSERT, make_rows(table, FORWARD, values, 1)))

    def _link(self, end, *, at_switch=False):
        one, other = self._udp[end], self._udp[WORKERS + 1 + end]
        return f"udp:{other}:{one}" if at_switch else f"udp:{one}:{other}"


class LeafSpine(Field):
    """Two leaves and their spines."""

    def __init__(self, stack, bed):
        self.bed = bed
        self.workers = bed.workers
        self.session = bed.session
        self.leaf_of_worker = bed.leaf_spine.leaf_of_worker
        self.leaves = len(bed.parts.leaves)
        # A station of every leaf: what a worker may send ordinary frames to.
        self.world = world_of(bed.graph, bed.plan, bed.site.networks.leaves[-1])
        self.links = [stack.enter_context(bed.link(worker)) for worker in range(bed.workers)]
        self.clients = [
            stack.enter_context(P4RuntimeClient(switch.grpc_address, primary=False))
            for switch in bed.site.switches
        ]
        self.addresses = bed.addresses
        self._before = self._outcomes()

    def mac(self, worker):
        return self.bed.site.station(worker).mac

    def workers_of(self, leaf):
        return [worker for worker in range(self.workers) if self.leaf_of_worker[worker] == leaf]

    def leaf_of(self, vertex):
        return self.leaf_of_worker[self.world.plan.assignment[vertex]]

    def partial_sums(self):
        """(Block, Src_id, Count) of all partial sums that leaves send up."""
        return self._of_spines("entry_block", "entry_source", "entry_count")

    def completed_above(self):
        """(block, vertex) of all sums that spines complete."""
        return self._of_spines("result_block", "result_vertex")

    def _of_spines(self, *columns):
        return [
            tuple(map(int, row))
            for spine in self.bed.parts.spines
            for row in zip(*(getattr(spine.switch, name) for name in columns), strict=True)
        ]

    def arrived(self):
        """Frames that reached each switch, by the counters of the network."""
        frames = [0] * len(self.bed.site.switches)
        for worker, link in enumerate(self.links):
            frames[self.leaf_of_worker[worker]] += link.traffic.frames_up
        relayed = self.bed.fabric.relay.counts()
        for cable in self.bed.site.cables:
            frames[cable.upper.switch] += relayed[cable.name]["frames"]["up"]
            frames[cable.lower.switch] += relayed[cable.name]["frames"]["down"]
        return frames


@contextmanager
def star(world, program, folder):
    with ExitStack() as stack:
        yield Star(stack, world, program, folder)


@contextmanager
def leaf_spine(folder, **options):
    with leaf_spine_bed(folder, **{"send": "cover", **options}) as bed, ExitStack() as stack:
        yield LeafSpine(stack, bed)
