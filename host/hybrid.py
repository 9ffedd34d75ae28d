"""Some sums from the switch, others from hosts, in one exchange over one link.

Both parts run in one thread. Whenever the exchange over the switch waits for a frame, the exchange
between the hosts goes on, so that rows travel while blocks wait at their barriers.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from switchgnn.base.array_types import Bools, Float32s, Int32s
from switchgnn.host.base.compression import Compression
from switchgnn.host.base.errors import TransportError
from switchgnn.host.base.operations import Operation
from switchgnn.host.direct.frames import PROTOCOL as DIRECT_PROTOCOL
from switchgnn.host.direct.framing import Framing
from switchgnn.host.direct.kinds import BinnedSchedule, read_binned_schedule, write_schedules
from switchgnn.host.direct.schedule import check_workers, cut_schedules
from switchgnn.host.direct.transport import DirectTransport
from switchgnn.host.innetwork.exchange import InNetworkExchange
from switchgnn.host.innetwork.fixed_point import FixedPoint, FixedSums
from switchgnn.host.links.split import kinds_from, split_link
from switchgnn.host.links.transport import (
    WorkerEnd,
    add_traffic,
    check_packets_fit,
    check_rows,
)
from switchgnn.host.wire.header import ETHERNET_BYTES, PROTOCOL
from switchgnn.host.wire.link import Link, Traffic
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.base.lanes import sum_frame_bytes
from switchgnn.planner.graphs.boundary import boundary_edges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.plan.files import read_manifest, read_worker_part
from switchgnn.planner.plan.manifest import Manifest
from switchgnn.planner.plan.plan import Plan, WorkerPart
from switchgnn.planner.sending.between_hosts import fewest_rows

# As many as an exchange over the switch keeps; later ones are lost, as in a full socket.
_KEPT_AT_MOST = 1 << 17


class HybridTransport(InNetworkExchange):
    """Sums of a plan that leaves some destinations to the hosts.

    A direction without blocks does not use the switch at all.
    """

    def __init__(
        self,
        end: WorkerEnd,
        manifest: Manifest,
        part: WorkerPart,
        schedule: BinnedSchedule,
        link: Link,
        **listeners: Any,  # noqa: ANN401
    ) -> None:
        first, second = split_link(link, kinds_from(0, DIRECT_PROTOCOL), _KEPT_AT_MOST, end.clock)
        self._hosts = DirectTransport(
            schedule.forward,
            second,
            end.stations,
            pace=end.pace,
            backward=schedule.backward,
            framing=Framing.parse(end.mtu),
            clock=end.clock,
            phases=end.phases,
        )
        super().__init__(
            manifest,
            part,
            first,
            end.addresses,
            session=end.session,
            pace=end.pace,
            clock=end.clock,
            **listeners,
        )
        self._arrivals = second
        first.take_turns(self._tend_hosts)

    def compress(self, compression: Compression) -> None:
        """Refuse: sums of switch and hosts have no common scale."""
        compression.refuse(
            "switch with a plan that leaves sums to the hosts",
            "plan with the strategy best, or take host or host-partial",
        )
        super().compress(compression)

    def aggregate_fixed(
        self,
        features: Float32s,
        direction: Direction = Direction.FORWARD,
        tensor_id: int = 0,
        operation: Operation = Operation.SUM,
    ) -> FixedSums:
        """Return the sums of both parts; see ``InNetworkExchange.aggregate_fixed``."""
        operation.refuse("A plan that leaves sums to the hosts")
        check_rows(features, self._hosts.vertices, self._hosts.worker)
        everything = np.arange(len(features))
        stream = self._hosts.begin(features.shape[1], direction)
        stream.feed(everything, features)
        if self._uses_switch(direction):
            fixed = super().aggregate_fixed(features, direction, tensor_id)
        else:
            nothing = np.zeros(features.shape, dtype=np.int32)
            fixed = FixedSums(nothing, FixedPoint.for_exchange(1, 0.0))
        self._hosts.wait_for(stream)
        return replace(fixed, of_hosts=stream.sums(everything))

    def expected_traffic(self, width: int, direction: Direction = Direction.FORWARD) -> Traffic:
        """Return what plan and schedule predict for one exchange."""
        hosts = self._hosts.expected_traffic(width, direction)
        if not self._uses_switch(direction):
            return hosts
        return add_traffic(super().expected_traffic(width, direction), hosts)

    def attend(self, until: Callable[[], bool]) -> None:
        """Answer other hosts that may have missed the last acknowledgements."""
        self._hosts.attend(until)

    def stop(self) -> None:
        """End both exchanges in another thread; see ``Transport.stop``."""
        super().stop()
        self._hosts.stop()

    def next_epoch(self) -> None:
        """Begin another epoch between the hosts; nothing is sampled."""
        self._hosts.next_epoch()

    @property
    def traffic(self) -> Traffic:
        """Frames and bytes of both exchanges so far."""
        return add_traffic(super().traffic, self._hosts.traffic)

    def close(self) -> None:
        """Take leave of the other hosts; takes two seconds at most."""
        self._hosts.close()

    def _uses_switch(self, direction: Direction) -> bool:
        return len(self._manifest.direction(direction).block_numbers) > 0

    def _tend_hosts(self) -> float:
        pause = self._hosts.tend(arrived=self._arrivals.arrived)
        return 0.0 if self._arrivals.arrived else pause


@contextmanager
def open_in_network(
    end: WorkerEnd,
    kind: type[InNetworkExchange] = InNetworkExchange,
    **listeners: Any,  # noqa: ANN401
) -> Iterator[InNetworkExchange]:
    """Open the transport `switch`, or another with the same packets.

    `listeners`: `on_block` and `on_share` of ``InNetworkExchange``.
    """
    plan = end.plan_folder()
    manifest, part = read_manifest(plan), read_worker_part(plan, end.worker)
    check_packets_fit(end.link, packet_bytes(manifest))
    with end.open_link(PROTOCOL) as link:
        exchange = kind(
            manifest,
            part,
            link,
            end.addresses,
            session=end.session,
            pace=end.pace,
            clock=end.clock,
            **listeners,
        )
        exchange.compress(end.compression)
        yield exchange


def packet_bytes(manifest: Manifest) -> int:
    """Return the bytes of the largest IP packet of a plan."""
    return sum_frame_bytes(manifest.lanes, manifest.rows) - ETHERNET_BYTES


@contextmanager
def open_switch(end: WorkerEnd, **listeners: Any) -> Iterator[InNetworkExchange]:  # noqa: ANN401
    """Open the transport `switch`, with an exchange between hosts if the plan needs one.

    `listeners`: `on_block` and `on_share` of ``InNetworkExchange``.
    """
    plan = end.plan_folder()
    part = read_worker_part(plan, end.worker)
    if not part.leaves_any:
        with open_in_network(end, **listeners) as transport:
            yield transport
        return
    manifest = read_manifest(plan)
    schedule = read_binned_schedule(end.schedule_file())
    _check_schedule(part, schedule)
    check_packets_fit(end.link, max(packet_bytes(manifest), Framing.parse(end.mtu).packet_bytes))
    with end.open_link(PROTOCOL, DIRECT_PROTOCOL) as link:
        hybrid = HybridTransport(end, manifest, part, schedule, link, **listeners)
        hybrid.compress(end.compression)
        yield hybrid


def _check_schedule(part: WorkerPart, schedule: BinnedSchedule) -> None:
    both = {Direction.FORWARD: schedule.forward, Direction.BACKWARD: schedule.backward}
    for direction, own in both.items():
        made = np.flatnonzero(own.add.sizes)
        same = (own.worker, own.vertices.tolist()) == (part.worker, part.vertices.tolist())
        if not same or not np.array_equal(made, part.left(direction)):
            raise TransportError(
                f"The schedule of worker {part.worker} does not make the {direction.value} sums "
                "that its plan leaves to the hosts: write both again."
            )


def left_schedules(
    graph: Graph, assignment: Int32s, workers: int, left: Mapping[Direction, Bools]
) -> tuple[BinnedSchedule, ...]:
    """Make the schedules of the destinations that are left to the hosts.

    Each direction has copies or partial sums, whichever are fewer, as in `host-partial`. `left`: by
    direction bool[V], the destinations.
    """
    check_workers(graph, assignment, workers)
    boundary = boundary_edges(graph, assignment)
    turn = np.zeros(len(assignment), dtype=np.int64)
    cut = []
    for every, own in (
        (boundary, left[Direction.FORWARD]),
        (boundary.transposed(), left[Direction.BACKWARD]),
    ):
        edges = every.take(np.flatnonzero(own[every.destination]))
        cut.append(cut_schedules(edges, assignment, workers, by_copy=fewest_rows(edges), turn=turn))
    # Workers that differ in either direction must not take each other's rows.
    both = hashlib.sha256(b"".join(parts[0].digest.tobytes() for parts in cut)).digest()
    digest = np.frombuffer(both, dtype=np.uint8)
    forward, backward = ([replace(part, digest=digest) for part in parts] for parts in cut)
    return tuple(map(BinnedSchedule, forward, backward))


def write_left_schedules(graph: Graph, plan: Plan, paths: Sequence[Path]) -> None:
    """Write the schedules of the destinations that a plan leaves to the hosts."""
    left = {direction: plan.left(direction) for direction in Direction}
    write_schedules(graph, plan.assignment, paths, choose=partial(left_schedules, left=left))
