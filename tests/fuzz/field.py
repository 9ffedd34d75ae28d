# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""An embedded switch with a plan, the links to it, and what it counts."""

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
from switchgnn.host.wire.header import SESSION_MASK
from switchgnn.host.wire.link import open_link
from switchgnn.topologies import Target, socket_address
from switchgnn.topologies.free_ports import free_udp_addresses
from switchgnn.topologies.targets import switch_child, wait_until_serving
from tests.fuzz.frames import ping
from tests.fuzz.team import WORKERS, Team
from tests.support.commands import forkserver
from tests.support.speed import Deadline

STRANGER = WORKERS
_SECONDS = 20.0


class Star:
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
        self._client = stack.enter_context(P4RuntimeClient(self._address, primary=False))
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

    def accept_any_tag(self):
        """Make the switch accept frames of any tag, as after a restart."""
        with P4RuntimeClient(self._address) as client:
            session = Session(client.get_layout())
            entry = session.decode(read_default(client, session.table))
            lenient = session.encode(replace(entry, any_tag=1))
            client.write([default_update(session.table, lenient)])

    def addresses(self, end):
        network = self.world.network
        return Addresses(network.neighbours[end].station, network.switch)

    def mac(self, end):
        return self.world.network.neighbours[end].station.mac

    def arrived(self):
        """Frames that were handed to the links since the start."""
        return sum(link.traffic.frames_up for link in self.links)

    def team(self, *last):
        """All workers; the last ones have these links."""
        links = [*self.links[: WORKERS - len(last)], *last]
        return Team(self.world, links, self.addresses, session=self.session)

    def send(self, end, header, body):
        header = header._replace(session=self.session & SESSION_MASK)
        self.links[end].send(self.addresses(end).frame(header.pack(body)))

    def echo(self, end):
        """Return when everything sent at this end has passed the switch's ingress."""
        question = ping(self.mac(end), 0)
        self.links[end].send(question)
        deadline = Deadline(_SECONDS)
        while not deadline.is_over():
            if self.links[end].receive(1.0) == question:
                return
        raise TimeoutError("no echo")

    def counted(self):
        """Frames by outcome, when all are counted or time is up."""
        deadline = Deadline(_SECONDS)
        while True:
            now = self._outcomes()
            delta = {name: now[name] - self._before[name] for name in now}
            if sum(delta.values()) == self.arrived() or deadline.is_over():
                return delta

    def _outcomes(self):
        outcomes = read_counters(self._client).outcomes
        return {outcome.name: count for outcome, count in outcomes.items()}

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


@contextmanager
def star(world, program, folder):
    with ExitStack() as stack:
        yield Star(stack, world, program, folder)
