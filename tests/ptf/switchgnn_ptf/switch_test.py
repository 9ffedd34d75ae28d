"""The base class of all cases: connection, set-up, oracles and clean-up.

Nothing here sleeps. The program counts every frame under exactly one outcome, so
``send`` returns when the frame has been counted, and frames on different ports
stay in order. Nothing waits for silence either: ``counted`` ends by sending a
marker to every port, and a queue gives out what it held before the marker first.
"""

import atexit
import collections
import contextlib
import functools
import itertools
import json
import logging
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import ptf
from ptf import testutils
from ptf.base_tests import BaseTest
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from switchgnn.base.network import mac_number
from switchgnn.controller import (
    Counters,
    Outcome,
    P4RuntimeClient,
    clear,
    program_cookie,
    read_counters,
)
from switchgnn.controller.controls.forward import BROADCAST
from switchgnn.controller.controls.loop import result_group
from switchgnn.host.scapy_host.layers import SwitchGNN
from switchgnn.host.wire.header import LANES, SESSION_MASK
from switchgnn.p4src import Program, load_program, load_strawman, load_tofino
from tests.ptf.switchgnn_ptf.entries import Entries
from tests.ptf.switchgnn_ptf.mistakes import with_mistake
from tests.ptf.switchgnn_ptf.packets import (
    NETWORK,
    PLAN,
    PORTS,
    WORKERS,
    Lanes,
    combined,
    feature,
    marker,
    port_of,
    random_lanes,
    station,
    sum_to,
)
from tests.support.speed import Deadline, seconds_here

# To wait for an expected event; a passing case never waits this long.
PATIENCE_SECONDS = 5.0
MEMBERS = sum(1 << worker for worker in WORKERS)

_serials = itertools.count(1)


@functools.cache
def program(*, strawman: bool) -> Program:
    """Return the program under test: a committed one, or one with a planted mistake."""
    usual = load_tofino if testutils.test_param_get("program") == "tofino" else load_program
    committed = load_strawman() if strawman else usual()
    mistake = testutils.test_param_get("mistake")
    return with_mistake(committed, mistake) if mistake else committed


def connection(*, strawman: bool = False) -> P4RuntimeClient:
    client, wanted = _client(), program_cookie(program(strawman=strawman))
    cookie = client.get_pipeline_cookie()
    # Groups are left when an earlier run was killed. BMv2 would keep them while it
    # loads a program, and send everything twice once they are added again.
    if cookie != wanted or client.read_groups():
        if cookie is not None:
            clear(client)
        push(client, strawman=strawman)
    return client


def push(client: P4RuntimeClient, *, strawman: bool = False) -> None:
    """Load the program again, as after a restart: no entries, and registers of zeros."""
    wanted = program(strawman=strawman)
    client.set_pipeline(wanted, program_cookie(wanted))


@functools.cache
def _client() -> P4RuntimeClient:
    client = P4RuntimeClient(testutils.test_param_get("grpc", "127.0.0.1:9559"))
    client.open()
    atexit.register(client.close)
    return client


PerBank = Mapping[int, int]
EVENTS = ("completed", "stale", "overfull", "released", "overflowed")


@dataclass(frozen=True)
class Growth:
    """How much every counter must have grown; those not named must not; None does not look."""

    outcomes: Mapping[Outcome, int]
    passes: Mapping[int, int] | None = None  # by their contributions
    completed: PerBank | None = None
    stale: PerBank = field(default_factory=dict)
    overfull: PerBank = field(default_factory=dict)
    released: PerBank = field(default_factory=dict)
    overflowed: PerBank = field(default_factory=dict)
    unrouted: int = 0
    marked: int | None = 0

    def in_one_bank(self) -> "Growth":
        """Return the events of all banks, and contributions, each of which is then a pass."""
        banks = {kind: getattr(self, kind) for kind in EVENTS}
        sums = {kind: each and {0: sum(each.values())} for kind, each in banks.items()}
        passes = self.passes and {1: sum(number * n for n, number in self.passes.items())}
        return replace(self, passes=passes, **sums)

    def expected(self) -> dict[str, int]:
        """Return the growth of each counter by name, without those that stayed."""
        named = {outcome.name: number for outcome, number in self.outcomes.items()}
        named |= {f"passes of {n}": number for n, number in (self.passes or {}).items()}
        for kind in EVENTS:
            banks = getattr(self, kind) or {}
            named |= {f"{kind} in bank {bank}": number for bank, number in banks.items()}
        named |= {"unrouted": self.unrouted, "marked": self.marked or 0}
        return {name: number for name, number in named.items() if number}

    def found(self, before: Counters, after: Counters) -> dict[str, int]:
        """Return how the counters that this looks at have grown."""
        old, new = _flat(before), _flat(after)
        grown = {name: new[name] - old[name] for name in new if new[name] != old[name]}
        kinds = ("passes", "completed", "marked")
        ignored = tuple(kind for kind in kinds if getattr(self, kind) is None)
        return {name: growth for name, growth in grown.items() if not name.startswith(ignored)}


def _flat(counters: Counters) -> dict[str, int]:
    flat = {outcome.name: number for outcome, number in counters.outcomes.items()}
    for contributions, number in enumerate(counters.passes.by_contributions):
        # With one bank, only contributions are compared; see `Growth.in_one_bank`.
        if contributions or len(counters.banks) > 1:
            flat[f"passes of {contributions}"] = number
    for bank, events in enumerate(counters.banks):
        for kind in EVENTS:
            flat[f"{kind} in bank {bank}"] = getattr(events, kind)
    return flat | {"unrouted": counters.unrouted, "marked": counters.marked}


class SwitchTest(BaseTest):
    """A case: three workers on ports 1 to 3, a host without a worker on port 4."""

    strawman = False
    """Whether the case is for the program that hands its slots out itself."""

    def run(self, result: Any = None) -> None:
        failures, errors = len(result.failures), len(result.errors)
        super().run(result)
        path = testutils.test_param_get("results")
        if path:
            outcome = {
                "case": str(self),
                "failure": result.failures[-1][1] if len(result.failures) > failures else None,
                "error": result.errors[-1][1] if len(result.errors) > errors else None,
            }
            with Path(path).open("a") as file:
                file.write(json.dumps(outcome) + "\n")

    def setUp(self) -> None:
        super().setUp()
        self.maxDiff = None
        self.dataplane = ptf.dataplane_instance
        self._record_packets()
        self.dataplane.flush()
        self.client = connection(strawman=self.strawman)
        self.entries = Entries(self.client)
        # Registers cannot be cleared: their contents belong to older sessions.
        self.session = self.entries.read_session() + 1
        self.addCleanup(self.entries.remove)
        # By job.
        self._indices = collections.defaultdict(itertools.count)
        self._lay_network()
        self.entries.flush()

    def serve(self, *, session: int | None = None, plan: int = PLAN, **options: int) -> None:
        """Make the switch serve a plan, under a new session number if one is given."""
        self.session = self.session if session is None else session
        options = {"session": self.session, "plan": plan, "members": MEMBERS, **options}
        self.entries.set_session(**options)

    def port_of(self, worker: int) -> int:
        return self.entries.place.ports[worker]

    def add_source(self, vertex: int, *, worker: int) -> None:
        index = next(self._indices[self.entries.place.job])
        entry = {"port": self.port_of(worker), "index": index}
        self.entries.add("source", "set_source", src_id=vertex, **entry)

    def add_owners(self, owners: Mapping[int, int]) -> None:
        for vertex, worker in owners.items():
            self.add_source(vertex, worker=worker)

    def add_destination(
        self,
        vertex: int,
        *,
        worker: int,
        slot: int,
        bank: int = 0,
        block: int = 1,
        expected: int | None = None,
        senders: Iterable[int] = (),
        place: int = 0,
        sums: int = 1,
        below: int = 0,
    ) -> None:
        """Send the sum of a slot to a worker, which gets ``sums`` in the block.

        With ``expected`` the worker may also recall it, and fetch its features; and the workers
        ``senders`` may send it partial sums. ``below``: how much higher the worker's number is
        than that of its port.
        """
        port = self.port_of(worker)
        entry = {"bank": bank, "slot": slot, "port": port}
        to = {"vertex": vertex, "group": result_group(port), "worker": worker + below}
        of = {"place": place, "sums": sums}
        self.entries.add("result", "set_result", block_id=block, **entry, **to, **of)
        key = {"block_id": block, "dst_id": vertex}
        if expected is not None:
            self.entries.add("destination", "set_destination", **key, **entry, expected=expected)
        self.entries.add_senders(senders, **key)

    def add_sum(
        self,
        vertex: int,
        sources: Mapping[int, int],
        *,
        worker: int = 2,
        slot: int = 7,
        bank: int = 0,
        block: int = 1,
        known: bool = False,
    ) -> None:
        """Let the ``sources`` (vertex to its worker) meet in one slot; ``known`` ones are there."""
        for source, owner in sources.items():
            if not known:
                self.add_source(source, worker=owner)
            self.entries.add_fanout(block=block, source=source, slots={bank: (slot, len(sources))})
        entry = {"slot": slot, "bank": bank, "block": block}
        self.add_destination(vertex, worker=worker, expected=len(sources), **entry)

    def restart(self) -> None:
        """Load the program again in the middle of a case, and set up the network."""
        # A switch that restarts loses its groups; BMv2 keeps them when it only loads a program.
        self.entries.remove()
        push(self.client, strawman=self.strawman)
        self._lay_network()

    def send(self, port: int, *packets: Packet | bytes) -> None:
        """Send frames one after the other, each when the one before it has been counted."""
        self.entries.flush()
        before = self._frames()
        for number, packet in enumerate(packets, 1):
            self.stamp(packet)
            testutils.send_packet(self, port, bytes(packet))
            if not self._until(lambda: self._frames() >= before + number):  # noqa: B023
                self.fail(f"Frame {number} of {len(packets)} sent to port {port} was not counted.")

    def stamp(self, packet: Packet | bytes) -> None:
        """Say which session a packet is of, if it does not say so itself."""
        if (
            isinstance(packet, Packet)
            and SwitchGNN in packet
            and "Session" not in packet[SwitchGNN].fields
        ):
            packet[SwitchGNN].Session = self.session & SESSION_MASK

    def receive(self, port: int) -> bytes:
        result = self.dataplane.poll(port_number=port, timeout=seconds_here(PATIENCE_SECONDS))
        if isinstance(result, self.dataplane.PollFailure):
            self.fail(f"Nothing came out of port {port}.")
        return bytes(result.packet)

    def expect(self, port: int, *packets: Packet) -> None:
        """Check that exactly these frames come out of a port next, in this order."""
        for packet in packets:
            found = self.receive(port)
            if found != bytes(packet):
                self.fail(f"Another frame came out of port {port}.\n{_compare(packet, found)}")

    def send_feature(
        self, source: int, *, worker: int, numbers: int = LANES, **fields: Any
    ) -> tuple[Packet, Lanes]:
        """Send a feature of random lanes, of others in each job; return the frame and the lanes."""
        own = self.entries.place.job, source, sorted(fields.items())
        lanes = random_lanes(zlib.crc32(repr(own).encode()), numbers)
        packet = feature(source, lanes, port=self.port_of(worker), **fields)
        self.send(self.port_of(worker), packet)
        return packet, lanes

    def send_features(
        self, sources: Mapping[int, int], **fields: Any
    ) -> list[tuple[Packet, Lanes]]:
        return [self.send_feature(source, worker=own, **fields) for source, own in sources.items()]

    def send_lanes(
        self, source: int, lanes: Lanes, bits: int, *, worker: int, **fields: Any
    ) -> tuple[Packet, Lanes]:
        """Send a feature of these lanes, with some bits each; return the frame and the lanes."""
        packet = feature(source, lanes, port=port_of(worker), bits=bits, **fields)
        self.send(port_of(worker), packet)
        return packet, lanes

    def check_sum(
        self,
        vertex: int,
        sources: Mapping[int, int],
        *,
        bank: int = 0,
        passes: PerBank | None = None,
        **fields: Any,
    ) -> None:
        """Send a feature of each source: all are added, and the exact sum leaves its bank."""
        growth = {"completed": {bank: 1}, "passes": passes}
        with self.counted(Outcome.AGGREGATED, len(sources), **growth):
            self.send_sum(vertex, sources, **fields)

    def send_sum(self, vertex: int, sources: Mapping[int, int], **fields: Any) -> None:
        """Send a feature of each source and expect their exact sum, for worker 2."""
        self.expect_sum(vertex, self.send_features(sources, **fields))

    def expect_sum(self, vertex: int, sent: list[tuple[Packet, Lanes]], *, worker: int = 2) -> None:
        """Expect the sum of what ``send_feature`` returned, completed by the last."""
        port, total = self.port_of(worker), combined(sent)
        self.expect(port, sum_to(port, vertex, total, count=len(sent), completed_by=sent[-1][0]))

    def counters(self) -> Counters:
        return read_counters(self.client)

    @contextlib.contextmanager
    def counted(
        self, outcomes: Outcome | Mapping[Outcome, int], number: int = 1, **other: Any
    ) -> Iterator[None]:
        """Check how counters grow (``Growth``), and that nothing else leaves the switch."""
        named = {outcomes: number} if isinstance(outcomes, Outcome) else outcomes
        growth = Growth(named, **other)
        self.entries.flush()
        before = read_counters(self.client)
        yield
        self._settle(growth, before)
        self.expect_nothing_else()
        markers = {Outcome.FORWARDED: named.get(Outcome.FORWARDED, 0) + len(PORTS)}
        self._settle(Growth({**named, **markers}, **other), before)

    def exchange(
        self, outcome: Outcome, port: int, sent: Packet, answers: Any, **other: Any
    ) -> None:
        """Send a frame: exactly these answers, by their ports, must come; a lone one to the sender.

        An answer is of the session of the frame, if it does not say so itself.
        """
        with self.counted(outcome, **other):
            self.send(port, sent)
            by_port = {port: answers} if isinstance(answers, Packet) else answers
            for to, answer in by_port.items():
                self.stamp(answer)
                self.expect(to, answer)

    def check_unanswered(
        self, outcome: Outcome, port: int, *packets: Packet | bytes, **other: Any
    ) -> None:
        """Send frames that all have this outcome, and bring nothing out of any port."""
        with self.counted(outcome, len(packets), **other):
            self.send(port, *packets)

    def expect_nothing_else(self) -> None:
        """Check that no frame but those expected so far leaves any port."""
        serial = next(_serials)
        for port in PORTS:
            testutils.send_packet(self, self.marked_from(port), bytes(marker(port, serial)))
        for port in PORTS:
            found = self.receive(port)
            if found != bytes(marker(port, serial)):
                text = Ether(found).show(dump=True)
                self.fail(f"Port {port} gave out a frame that it must not:\n{text}")

    def marked_from(self, port: int) -> int:
        """Return a port whose ordinary frames reach a port."""
        return PORTS[0]

    def _settle(self, growth: Growth, before: Counters) -> None:
        growth = growth.in_one_bank() if self.entries.one_bank else growth
        expected, found = growth.expected(), {}

        def reached() -> bool:
            nonlocal found
            found = growth.found(before, read_counters(self.client))
            return found == expected

        self._until(reached)
        self.assertEqual(expected, found, "Counters differ.")

    def _frames(self) -> int:
        return sum(read_counters(self.client).outcomes.values())

    def _until(self, condition: Callable[[], bool]) -> bool:
        deadline = Deadline(PATIENCE_SECONDS)
        while not condition():
            if deadline.is_over():
                return False
        return True

    def add_station(self, port: int) -> None:
        self.entries.add("station", "forward", dst_addr=mac_number(station(port).mac), port=port)

    def _lay_network(self) -> None:
        self.entries.admit()
        self.serve()
        for port in PORTS:
            self.add_station(port)
        self.connect([port_of(worker) for worker in WORKERS])

    def connect(self, ports: list[int]) -> None:
        """Attach the workers 0, 1, ... to ports, and broadcast among them."""
        self.entries.add("station", "flood", dst_addr=mac_number(BROADCAST))
        self.entries.add_group(self.entries.place.workers_group, ports)
        self.entries.add_harvest_group()
        for worker, port in enumerate(ports):
            self.entries.add_worker(port=port, worker=worker)
            self.entries.add_rewrite(port=port, network=NETWORK)
            self.entries.add_result_groups(port)

    def _record_packets(self) -> None:
        folder = ptf.config["log_dir"]
        if folder:
            self.dataplane.start_pcap(str(Path(folder) / f"{self}.pcap"))
            self.addCleanup(self.dataplane.stop_pcap)
        logging.info("Case %s", self)


def _compare(expected: Packet, found: bytes) -> str:
    wanted = bytes(expected)
    pairs = enumerate(zip(wanted, found, strict=False))
    first = next((at for at, (a, b) in pairs if a != b), min(len(wanted), len(found)))
    return (
        f"First difference at byte {first} of {len(wanted)} expected and {len(found)} found.\n"
        f"--- expected ---\n{expected.__class__(wanted).show(dump=True)}\n{wanted.hex()}\n"
        f"--- found ---\n{expected.__class__(found).show(dump=True)}\n{found.hex()}"
    )
