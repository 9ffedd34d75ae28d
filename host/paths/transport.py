"""Some sums from the switch, others from hosts, in one exchange over one link.

Both parts run in one thread. Whenever the exchange over the switch waits for a frame, the exchange
between the hosts goes on, so that rows travel while blocks wait at their barriers. Which blocks the
switch sums may change between exchanges; the destinations that a plan leaves to the hosts are
always summed by these.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from switchgnn.base.array_types import Float32s, Int32s
from switchgnn.host.base.compression import Compression
from switchgnn.host.base.errors import TransportError
from switchgnn.host.base.operations import Operation
from switchgnn.host.direct.frames import PROTOCOL as DIRECT_PROTOCOL
from switchgnn.host.direct.framing import Framing
from switchgnn.host.direct.kinds import BinnedSchedule
from switchgnn.host.direct.sampling import Sampling
from switchgnn.host.direct.stream import Stream
from switchgnn.host.direct.transport import DirectTransport
from switchgnn.host.innetwork.exchange import InNetworkExchange
from switchgnn.host.innetwork.fixed_point import FixedPoint, FixedSums
from switchgnn.host.links.split import kinds_from, split_link
from switchgnn.host.links.transport import WorkerEnd, add_traffic, check_packets_fit, check_rows
from switchgnn.host.paths.base import BlockPaths, Path, PathTime, one_path
from switchgnn.host.paths.edges import HostEdges, PathSchedule, read_edges
from switchgnn.host.wire.header import ETHERNET_BYTES, PROTOCOL
from switchgnn.host.wire.link import Link, Traffic
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.base.lanes import sum_frame_bytes
from switchgnn.planner.plan.files import read_manifest, read_worker_part
from switchgnn.planner.plan.manifest import Manifest
from switchgnn.planner.plan.plan import WorkerPart

# As many as an exchange over the switch keeps; later ones are lost, as in a full socket.
_KEPT_AT_MOST = 1 << 17
_SCHEDULES_KEPT = 16


class SampledExchange(InNetworkExchange):
    """The transport `switch`, where each epoch may have the rows of other vertices (BNS-GCN).

    The tables of a switch have the number of contributions to each sum. So a vertex that the sample
    leaves out contributes a frame without a body, which counts as zeros. Its row would be sent once
    for all neighbours, so it is left out for all of them.
    """

    _sampling, _epoch = Sampling(), 0
    # float32[n, 1], the factors of the rows; None: all vertices are in the sample.
    _factors: Float32s | None = None

    def sample(self, sampling: Sampling) -> None:
        """Send the rows of k of the n vertices, times n/k; in each epoch those of other ones."""
        self._sampling, self._epoch = sampling, -1
        self._endpoint.narrow |= sampling.rate < 1
        self.next_epoch()

    def next_epoch(self) -> None:
        """Draw the sample of the next epoch; the first epoch is 0."""
        self._epoch += 1
        if self._sampling.rate < 1:
            here = self._part.worker, len(self._part.vertices)
            self._factors = self._sampling.factors(self._epoch, *here)[:, np.newaxis]

    def aggregate(
        self,
        rows: Float32s,
        direction: Direction = Direction.FORWARD,
        tensor_id: int = 0,
        operation: Operation = Operation.SUM,
    ) -> Float32s:
        """Sum the sampled rows; backward, their gradients: see ``InNetworkExchange.aggregate``."""
        factors = self._factors
        if factors is None or operation is not Operation.SUM:
            return super().aggregate(rows, direction, tensor_id, operation)
        if direction is Direction.FORWARD:
            return super().aggregate(rows * factors, direction, tensor_id)
        return super().aggregate(rows, direction, tensor_id) * factors


class PathsTransport(SampledExchange):
    """Sums of each block over the switch or between hosts; see ``Path``.

    At first all blocks are summed by the switch. A direction without any such block does not use
    the switch at all. Other operations than sums use it for all blocks.
    """

    def __init__(
        self,
        end: WorkerEnd,
        manifest: Manifest,
        part: WorkerPart,
        edges: HostEdges,
        link: Link,
        **listeners: Any,  # noqa: ANN401
    ) -> None:
        first, second = split_link(link, kinds_from(0, DIRECT_PROTOCOL), _KEPT_AT_MOST, end.clock)
        self._edges = edges
        # A mapping has no hash.
        self._schedule_of = lru_cache(_SCHEDULES_KEPT)(lambda items: edges.schedule(dict(items)))
        self._clock = end.clock
        self._paths = one_path(manifest, Path.SWITCH)
        self._schedule = self._find_schedule(self._paths)
        self._times: dict[tuple[Direction, int, Path], tuple[float, int]] = {}
        self._hosts = DirectTransport(
            self._schedule.forward,
            second,
            end.stations,
            pace=end.pace,
            backward=self._schedule.backward,
            framing=Framing.parse(end.mtu),
            clock=end.clock,
            peers=edges.peers,
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
        self._stream: Stream | None = None  # of the present exchange, if hosts make some sums
        self._first = first
        first.take_turns(self._tend_hosts)

    @property
    def paths(self) -> BlockPaths:
        """The present paths."""
        return self._paths

    def set_paths(self, paths: BlockPaths) -> None:
        """Take other paths from the next exchange on, as all workers must between the same ones.

        TransportError: they are not one path per block of the plan.
        """
        blocks = {each: len(own) for each, own in self._paths.items()}
        if blocks != {each: len(own) for each, own in paths.items()}:
            raise TransportError(
                f"The paths of worker {self._part.worker} are not one for each block of its plan, "
                f"{', '.join(f'{count} {each.value}' for each, count in blocks.items())}."
            )
        if paths == self._paths:
            return
        self._paths = dict(paths)
        self._schedule = self._find_schedule(self._paths)
        self._hosts.reschedule(self._schedule.forward, self._schedule.backward)
        left_out = {}
        for each, own in paths.items():
            numbers = zip(self._manifest.direction(each).block_numbers, own, strict=True)
            left_out[each] = frozenset(block for block, path in numbers if path is not Path.SWITCH)
        self.leave_out(left_out)

    def take_times(self) -> list[PathTime]:
        """Return the times since the last call, one for each direction, width and path."""
        taken = [PathTime(*key, *times) for key, times in self._times.items()]
        self._times.clear()
        return taken

    def standby(self) -> BinnedSchedule:
        """Return the schedule of all sums between hosts, partial sums where those are fewer."""
        return self._find_schedule(one_path(self._manifest, Path.HOST_PARTIAL))

    def beside(self, paths: BlockPaths) -> BinnedSchedule:
        """Return the schedule of the blocks on the path GLOO alone."""
        chosen = {
            each: tuple(Path.HOST_PARTIAL if it is Path.GLOO else Path.SWITCH for it in own)
            for each, own in paths.items()
        }
        return self._edges.schedule(chosen, left=Path.SWITCH)

    def compress(self, compression: Compression) -> None:
        """Refuse: sums of switch and hosts have no common scale."""
        compression.refuse(
            "switch with sums that hosts make",
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
        if self._part.leaves_any:
            operation.refuse("A plan that leaves sums to the hosts")
        if operation is not Operation.SUM:
            return super().aggregate_fixed(features, direction, tensor_id, operation)
        self._manifest.direction(direction)  # refuses one that the plan does not have
        check_rows(features, self._hosts.vertices, self._hosts.worker)
        width, self._stream = features.shape[1], None
        if self._uses_hosts(direction):
            self._stream = self._hosts.begin(width, direction)
            self._stream.feed(np.arange(len(features)), features)
            self._first.take_turns(self._tend_hosts)
        if self._uses_switch(direction):
            before = self._units.seconds
            fixed = super().aggregate_fixed(features, direction, tensor_id)
            self.note(direction, width, Path.SWITCH, self._units.seconds - before)
        else:
            nothing: Int32s = np.zeros(features.shape, dtype=np.int32)
            fixed = FixedSums(nothing, FixedPoint.for_exchange(1, 0.0))
        if self._stream is None:
            return fixed
        return replace(fixed, of_hosts=self._sums_of_hosts(self._stream, direction, width))

    def resume(self) -> None:
        """Complete both parts; see ``InNetworkExchange.resume``."""
        # What has come since the last try counts as heard: others answer only while they try.
        before = self.traffic.frames_down
        if self._stream is not None:
            self._hosts.wait_for(self._stream, until=lambda: True)
        super().resume()
        if self._stream is not None:
            self._barrier.repeat_last()
            self._wait_for(self._stream, before)

    def expected_traffic(self, width: int, direction: Direction = Direction.FORWARD) -> Traffic:
        """Return what plan and present paths predict for one exchange."""
        if not self._uses_hosts(direction):
            return super().expected_traffic(width, direction)
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

    @property
    def traffic(self) -> Traffic:
        """Frames and bytes of both exchanges so far."""
        return add_traffic(super().traffic, self._hosts.traffic)

    def close(self) -> None:
        """Take leave of the other hosts; takes two seconds at most."""
        self._hosts.close()

    def _uses_hosts(self, direction: Direction) -> bool:
        own = self._paths.get(direction, ())
        return self._part.leaves_any or Path.HOST in own or Path.HOST_PARTIAL in own

    def _uses_switch(self, direction: Direction) -> bool:
        return Path.SWITCH in self._paths.get(direction, ())

    def _find_schedule(self, paths: BlockPaths) -> PathSchedule:
        found: PathSchedule = self._schedule_of(tuple(sorted(paths.items())))
        return found

    def _sums_of_hosts(self, stream: Stream, direction: Direction, width: int) -> Float32s:
        self._wait_for(stream, self.traffic.frames_down)
        began = self._clock.now()
        sums = stream.sums(np.arange(self._hosts.vertices))
        seconds = stream.round.seconds + self._clock.now() - began
        copies = self._schedule.copies[direction]
        partial = Path.HOST_PARTIAL in self._paths[direction] or self._part.leaves_any
        if Path.HOST in self._paths[direction]:
            self.note(direction, width, Path.HOST, seconds * (copies if partial else 1.0))
        if partial:
            self.note(direction, width, Path.HOST_PARTIAL, seconds * (1.0 - copies))
        return sums

    def _wait_for(self, stream: Stream, before: int) -> None:
        """Wait for a round of the hosts, and for the workers that are still at the last barrier.

        `before`: frames until then. A switch that restarts needs the `done` of this worker again.
        """
        asked_at = self._clock.now()
        hosts, both = self._hosts.traffic.frames_down, before
        self.watch.begin(asked_at)

        def over() -> bool:
            nonlocal asked_at, hosts, both
            if stream.round.complete:
                return True
            if (now := self._clock.now()) - asked_at >= self._endpoint.pace.heartbeat_interval:
                self._barrier.repeat_last()
                asked_at = now
            earlier = hosts, both
            hosts, both = self._hosts.traffic.frames_down, self.traffic.frames_down
            heard, progress = both > earlier[1], hosts > earlier[0]
            self.watch.look(now, heard=heard, progress=progress, ask=self._barrier.repeat_last)
            return False

        self._hosts.wait_for(stream, until=lambda: True)
        self._hosts.attend(over, self.watch.longest_wait)

    def note(self, direction: Direction, width: int, path: Path, seconds: float) -> None:
        """Add an exchange to what `take_times` returns."""
        key = direction, width, path
        so_far, exchanges = self._times.get(key, (0.0, 0))
        self._times[key] = so_far + seconds, exchanges + 1

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
        _adjust(exchange, end)
        yield exchange


def packet_bytes(manifest: Manifest) -> int:
    """Return the bytes of the largest IP packet of a plan."""
    return sum_frame_bytes(manifest.lanes, manifest.rows) - ETHERNET_BYTES


@contextmanager
def open_switch(end: WorkerEnd, **listeners: Any) -> Iterator[InNetworkExchange]:  # noqa: ANN401
    """Open the transport `switch`, with other paths if there is a file with the worker's edges.

    A plan that leaves destinations to the hosts needs one. `listeners`: `on_block` and `on_share`
    of ``InNetworkExchange``.
    """
    plan = end.plan_folder()
    part = read_worker_part(plan, end.worker)
    if end.schedule is None and not part.leaves_any:
        with open_in_network(end, SampledExchange, **listeners) as transport:
            yield transport
        return
    manifest = read_manifest(plan)
    edges = read_edges(end.schedule_file(), manifest, part)
    check_packets_fit(end.link, max(packet_bytes(manifest), Framing.parse(end.mtu).packet_bytes))
    with end.open_link(PROTOCOL, DIRECT_PROTOCOL) as link:
        transport = PathsTransport(end, manifest, part, edges, link, **listeners)
        _adjust(transport, end)
        yield transport


def _adjust(exchange: InNetworkExchange, end: WorkerEnd) -> None:
    sampling = Sampling(end.sampling, end.seed)
    sampling.refuse(end.compression)
    exchange.compress(end.compression)
    if isinstance(exchange, SampledExchange):
        exchange.sample(sampling)
