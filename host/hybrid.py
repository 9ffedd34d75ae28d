"""Some sums from the switch, others from hosts, in one exchange over one link.

Both parts run in one thread. Whenever the exchange over the switch waits for a frame, the exchange
between the hosts goes on, so that rows travel while blocks wait at their barriers.
"""

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from switchgnn.base.array_types import Bools, Float32s, Int32s
from switchgnn.base.clock import SYSTEM_CLOCK, Clock
from switchgnn.host.base.compression import Compression
from switchgnn.host.base.errors import TransportError
from switchgnn.host.direct.frames import PROTOCOL as DIRECT_PROTOCOL
from switchgnn.host.direct.framing import Framing
from switchgnn.host.direct.kinds import BinnedSchedule, read_binned_schedule, write_binned_schedule
from switchgnn.host.direct.schedule import check_workers, cut_schedules
from switchgnn.host.direct.transport import DirectTransport
from switchgnn.host.innetwork.exchange import (
    BlockListener,
    InNetworkExchange,
)
from switchgnn.host.innetwork.fixed_point import FixedPoint, FixedSums
from switchgnn.host.innetwork.units import ShareListener
from switchgnn.host.links import WrappedLink
from switchgnn.host.links.faults import FaultCounts, injected_faults
from switchgnn.host.links.transport import Operation, WorkerEnd, add_traffic, check_rows
from switchgnn.host.wire.batches import FrameBatch, FrameRows, new_batch
from switchgnn.host.wire.header import ETHERNET_BYTES, PROTOCOL
from switchgnn.host.wire.link import LARGEST_FRAME, Link, Traffic, check_packets_fit
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.base.lanes import sum_frame_bytes
from switchgnn.planner.graphs.boundary import boundary_edges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.plan.files import read_manifest, read_worker_part
from switchgnn.planner.plan.manifest import Manifest
from switchgnn.planner.plan.plan import Plan, WorkerPart
from switchgnn.planner.sending.between_hosts import fewest_rows

_PROTOCOL_AT = ETHERNET_BYTES + 9
# As many as an exchange over the switch keeps; later ones are lost, as in a full socket.
_KEPT_AT_MOST = 1 << 17
# Seconds after which the second exchange has its turn, while frames of the first one never pause.
_TURN = 0.001
# Frames of a batch.
_AT_ONCE = 64

Meanwhile = Callable[[], float]


class SplitLink:
    """Shares a link between two exchanges, `first` and `second`.

    `protocol`: the IPv4 protocol of the second one. The first one gets all other frames.
    """

    def __init__(self, link: Link, protocol: int, clock: Clock = SYSTEM_CLOCK) -> None:
        self.first = PartLink(self, link, clock)
        self.second = PartLink(self, link, clock)
        self._link = link
        self._protocol = protocol

    def receive(self, seconds: float) -> None:
        """Receive frames for both parts, waiting at most ``seconds``."""
        batch = self._link.receive_batch(seconds)
        if batch is None:
            return
        for index in range(batch.first, batch.count):
            frame = bytes(batch.frame(index))
            of_second = len(frame) > _PROTOCOL_AT and frame[_PROTOCOL_AT] == self._protocol
            kept = (self.second if of_second else self.first).kept
            if len(kept) < _KEPT_AT_MOST:
                kept.append(frame)


class PartLink(WrappedLink):
    """One exchange's view of a shared link."""

    def __init__(self, split: SplitLink, link: Link, clock: Clock) -> None:
        super().__init__(link)
        self.kept: deque[bytes] = deque()  # the frames that were received for it
        # called while waiting for a frame, to let the other exchange continue; returns the seconds
        # without anything to do for it. None: nothing is called.
        self.meanwhile: Meanwhile | None = None
        self._split = split
        self._clock = clock
        self._next_turn = float("-inf")
        self._batch = new_batch(_AT_ONCE, LARGEST_FRAME)

    def send_rows(self, rows: FrameRows, first: int, count: int) -> None:
        """Send some frames in their order; waits while the link is full."""
        self._link.send_rows(rows, first, count)

    def receive(self, seconds: float) -> memoryview | None:
        """Return the next frame, or None after ``seconds``."""
        self._wait(seconds)
        return memoryview(self.kept.popleft()) if self.kept else None

    def receive_batch(self, seconds: float) -> FrameBatch | None:
        """Return the next frames, valid until the next call, or None after ``seconds``."""
        self._wait(seconds)
        batch = self._batch
        batch.count = 0
        while self.kept and batch.count < _AT_ONCE:
            batch.put(self.kept.popleft())
        return batch if batch.count else None

    def close(self) -> None:
        """Do nothing: the shared link is not closed with one part of it."""

    def _wait(self, seconds: float) -> None:
        """Wait for a frame unless one is kept."""
        until = self._clock.now() + seconds
        # What is here already comes before the other exchange has its turn.
        pause = float("inf") if self.meanwhile is None else 0.0
        while not self.kept:
            left = until - self._clock.now()
            self._split.receive(max(0.0, min(left, pause)))
            now = self._clock.now()
            idle = not self.kept and now < until
            if self.meanwhile is not None and (idle or now >= self._next_turn):
                pause = self.meanwhile()
                self._next_turn = self._clock.now() + _TURN
            if now >= until:
                return


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
        *,
        on_block: BlockListener | None = None,
        on_share: ShareListener | None = None,
    ) -> None:
        split = SplitLink(link, DIRECT_PROTOCOL, end.clock)
        self._hosts = DirectTransport(
            schedule.forward,
            split.second,
            end.stations,
            pace=end.pace,
            backward=schedule.backward,
            framing=Framing.parse(end.mtu),
            clock=end.clock,
        )
        super().__init__(
            manifest,
            part,
            split.first,
            end.addresses,
            session=end.session,
            pace=end.pace,
            on_block=on_block,
            on_share=on_share,
            clock=end.clock,
        )
        self._whole, self._arrivals = link, split.second
        split.first.meanwhile = self._tend_hosts

    def compress(self, compression: Compression) -> None:
        """Refuse: sums of switch and hosts have no common scale."""
        compression.refuse(
            "switch with a plan that leaves sums to the hosts",
            "plan with the strategy best, or take host or host-partial",
        )
        super().compress(compression)

    def aggregate_parts(
        self, rows: Float32s, direction: Direction, tensor_id: int, operation: Operation
    ) -> tuple[FixedSums, Float32s]:
        """Return the sums of both parts, of the hosts in float32."""
        operation.refuse("A plan that leaves sums to the hosts")
        check_rows(rows, self._hosts.vertices, self._hosts.worker)
        everything = np.arange(len(rows))
        stream = self._hosts.begin(rows.shape[1], direction)
        stream.feed(everything, rows)
        if self._uses_switch(direction):
            fixed = self.aggregate_fixed(rows, direction, tensor_id)
        else:
            fixed = FixedSums(np.zeros(rows.shape, dtype=np.int32), FixedPoint.for_exchange(1, 0.0))
        self._hosts.wait_for(stream)
        return fixed, stream.sums(everything)

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

    def injected(self) -> Mapping[str, FaultCounts]:
        """Return the faults on the shared link so far, by direction."""
        return injected_faults(self._whole)

    def close(self) -> None:
        """Take leave of the other hosts; takes two seconds at most."""
        self._hosts.close()

    def _uses_switch(self, direction: Direction) -> bool:
        return len(self._manifest.direction(direction).block_numbers) > 0

    def _tend_hosts(self) -> float:
        """Let the exchange between hosts continue while the other one waits for a frame."""
        pause = self._hosts.tend(arrived=bool(self._arrivals.kept))
        return 0.0 if self._arrivals.kept else pause


@contextmanager
def open_in_network(
    end: WorkerEnd,
    kind: type[InNetworkExchange] = InNetworkExchange,
    *,
    on_block: BlockListener | None = None,
    on_share: ShareListener | None = None,
) -> Iterator[InNetworkExchange]:
    """Open the transport `switch`, or another with the same packets."""
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
            on_block=on_block,
            on_share=on_share,
            clock=end.clock,
        )
        exchange.compress(end.compression)
        yield exchange


def packet_bytes(manifest: Manifest) -> int:
    """Return the bytes of the largest IP packet of a plan."""
    return sum_frame_bytes(manifest.lanes, manifest.rows) - ETHERNET_BYTES


@contextmanager
def open_switch(
    end: WorkerEnd, *, on_block: BlockListener | None = None, on_share: ShareListener | None = None
) -> Iterator[InNetworkExchange]:
    """Open the transport `switch`, with an exchange between hosts if the plan needs one."""
    plan = end.plan_folder()
    part = read_worker_part(plan, end.worker)
    if not part.leaves_any:
        with open_in_network(end, on_block=on_block, on_share=on_share) as transport:
            yield transport
        return
    manifest = read_manifest(plan)
    schedule = read_binned_schedule(end.schedule_file())
    _check_schedule(part, schedule)
    check_packets_fit(end.link, max(packet_bytes(manifest), Framing.parse(end.mtu).packet_bytes))
    with end.open_link(PROTOCOL, DIRECT_PROTOCOL) as link:
        hybrid = HybridTransport(
            end, manifest, part, schedule, link, on_block=on_block, on_share=on_share
        )
        hybrid.compress(end.compression)
        yield hybrid


def _check_schedule(part: WorkerPart, schedule: BinnedSchedule) -> None:
    """Reject a schedule for other sums than those that the plan leaves to the hosts."""
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
    schedules = left_schedules(graph, plan.assignment, plan.manifest.workers, left)
    for schedule, path in zip(schedules, paths, strict=True):
        write_binned_schedule(schedule, path)
