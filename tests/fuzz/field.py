# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A switch with a plan for its workers and one port more, where an ordinary host is.

The embedded switch is reached over UDP, BMv2 over veth pairs into a network namespace of its own.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from switchgnn.base.network import mac_number
from switchgnn.controller import P4RuntimeClient, install, read_counters
from switchgnn.controller.controls.forward import FORWARD, Forward
from switchgnn.controller.controls.session import Session
from switchgnn.controller.p4runtime.messages import INSERT, default_update
from switchgnn.controller.p4runtime.rows import make_rows
from switchgnn.controller.p4runtime.state import read_default
from switchgnn.controller.p4runtime.wire import encode_rows
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.link import Link, SocketLink, open_link
from switchgnn.p4src import Program
from switchgnn.topologies import Target, socket_address
from switchgnn.topologies.free_ports import free_udp_addresses
from switchgnn.topologies.targets import (
    BMV2_PROGRAM,
    bmv2_installed,
    switch_child,
    wait_until_serving,
)
from tests.fuzz.attacker import echo
from tests.fuzz.packets import PING_ETHERTYPE
from tests.fuzz.world import WORKERS, World
from tests.support.commands import nursery
from tests.support.networks import OwnNetwork, own_network
from tests.support.speed import Deadline

STRANGER = WORKERS
_SETTLE_SECONDS = 10.0

needs_bmv2 = pytest.mark.skipif(
    not bmv2_installed() or os.geteuid() != 0,
    reason=f"{BMV2_PROGRAM} is not on the PATH, or not root",
)


class Field:
    """A running switch and the links to it. Made by :func:`field`."""

    def __init__(self, target: Target, world: World, program: Program, folder: Path) -> None:
        self.target = target
        self.world = world
        self.links: list[Link] = []
        self.ears: list[Link] = []
        self._program = program
        self._folder = folder
        self._address = socket_address(folder)
        self._ends = WORKERS + 1
        self._tag = f"z{os.getpid() & 0xFFFF:x}"
        self._udp = free_udp_addresses(2 * self._ends)
        self._network: OwnNetwork | None = None

    def start(self, stack: ExitStack) -> None:
        """Build everything; `stack` tears it down."""
        if self.target is Target.BMV2:
            self._network = stack.enter_context(own_network())
            for end in range(self._ends):
                self._network.add_cable(f"{self._tag}w{end}", f"{self._tag}s{end}")
        switch = switch_child(
            self.target,
            ports={end + 1: self._switch_side(end) for end in range(self._ends)},
            grpc_address=self._address,
            device_id=0,
            log=self._folder / "switch.log",
            nursery=nursery(),
            namespace=self._network.path if self._network else None,
        )
        stack.callback(switch.stop)
        switch.start()
        wait_until_serving(switch, self._address)
        self.switch = switch
        stack.callback(self._close_links)
        self.renew()

    def renew(self) -> None:
        """Begin a new session, with links on which nothing has arrived."""
        self._close_links()
        plan = self.world.plan
        report = install(
            (plan.manifest, plan.switch),
            [self._address],
            self.world.network,
            program=self._program,
            new_session=True,
        )
        self.session = report.session
        self._connect_the_stranger()
        self.links = [open_link(self._link(end)) for end in range(self._ends)]
        self.ears = [self._open_ears(end) for end in range(self._ends)]
        self._before = self._outcomes()
        self._rx_before = self._interface_frames()

    def forget_turns(self) -> None:
        """Make the switch accept frames out of turn, as after a restart."""
        with P4RuntimeClient(self._address) as client:
            session = Session(client.get_layout())
            entry = session.decode(read_default(client, session.table))
            lenient = session.encode(replace(entry, any_turn=1))
            client.write([default_update(session.table, lenient)])

    def addresses(self, worker: int) -> Addresses:
        network = self.world.network
        return Addresses(network.neighbours[worker].station, network.switch)

    def mac(self, end: int) -> str:
        return self.world.network.neighbours[end].station.mac

    def echo(self, end: int, number: int) -> None:
        """Return when everything sent at this end has passed the switch's ingress."""
        echo(self.links[end], self.ears[end], self.mac(end), number)

    def sent(self) -> int:
        """Frames that were handed to the links since the start."""
        return sum(link.traffic.frames_up for link in self.links)

    def arrived(self) -> int:
        """Frames that reached the switch's ports, by the counters of the network."""
        if self.target is Target.BMV2:
            return self._interface_frames() - self._rx_before
        return self.sent()

    def counted(self) -> dict[str, int]:
        """Frames by outcome, when all are counted or the counters stand still."""
        deadline = Deadline(_SETTLE_SECONDS)
        while True:
            now = self._outcomes()
            delta = {name: now[name] - self._before[name] for name in now}
            if sum(delta.values()) == self.arrived() or deadline.is_over():
                return delta

    def _close_links(self) -> None:
        for link in (*self.links, *self.ears):
            link.close()
        self.links, self.ears = [], []

    def _outcomes(self) -> dict[str, int]:
        with P4RuntimeClient(self._address, primary=False) as client:
            outcomes = read_counters(client).outcomes
            return {outcome.name: count for outcome, count in outcomes.items()}

    def _connect_the_stranger(self) -> None:
        with P4RuntimeClient(self._address) as client:
            table = Forward(client.get_layout()).table
            values = {"dst_addr": mac_number(self.mac(STRANGER)), "port": STRANGER + 1}
            client.write_requests(encode_rows(INSERT, make_rows(table, FORWARD, values, 1)))

    def _link(self, end: int) -> str:
        if self.target is Target.BMV2:
            return f"eth:{self._tag}w{end}"
        return f"udp:{self._udp[end]}:{self._udp[self._ends + end]}"

    def _open_ears(self, end: int) -> Link:
        """Receive pings: a worker's link over an interface accepts only SwitchGNN frames."""
        if self.target is not Target.BMV2:
            return self.links[end]
        name = f"{self._tag}w{end}"
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        sock.bind((name, PING_ETHERTYPE))
        return SocketLink(sock, name)

    def _switch_side(self, end: int) -> str:
        if self.target is Target.BMV2:
            return f"eth:{self._tag}s{end}"
        return f"udp:{self._udp[self._ends + end]}:{self._udp[end]}"

    def _interface_frames(self) -> int:
        network = self._network
        if network is None:
            return 0
        return sum(network.received_frames(f"{self._tag}s{end}") for end in range(self._ends))


@contextmanager
def field(target: Target, world: World, program: Program, folder: Path) -> Iterator[Field]:
    made = Field(target, world, program, folder)
    with ExitStack() as stack:
        made.start(stack)
        yield made
