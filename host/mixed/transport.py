# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Some sums from the switch, others from hosts, in one exchange over one link.

Both parts run in one thread. Whenever the exchange over the switch waits for a frame, the exchange
between the hosts goes on, so that rows travel while blocks wait at their barriers.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.direct.binned import BinnedSchedule, read_binned_schedule
from switchgnn.host.direct.frames import PROTOCOL as DIRECT_PROTOCOL
from switchgnn.host.direct.framing import Framing
from switchgnn.host.direct.schedule import DirectSchedule
from switchgnn.host.direct.tally import DirectTally
from switchgnn.host.direct.transport import DirectTransport
from switchgnn.host.errors import TransportError
from switchgnn.host.innetwork.exchange import FixedSums, InNetworkExchange
from switchgnn.host.innetwork.fixed_point import FixedPoint
from switchgnn.host.innetwork.transport import (
    InNetworkTransport,
    Listeners,
    new_exchange,
    open_in_network,
)
from switchgnn.host.transport import NO_TRAFFIC, WorkerEnd, add_traffic, check_rows
from switchgnn.host.wire.header import ETHERNET_BYTES, PROTOCOL, feature_frame_bytes
from switchgnn.host.wire.link import Link, Traffic, check_packets_fit
from switchgnn.host.wire.split import SplitLink
from switchgnn.planner.direction import Direction
from switchgnn.planner.plan.files import read_manifest, read_worker_part
from switchgnn.planner.plan.manifest import Manifest
from switchgnn.planner.plan.plan import WorkerPart


class MixedTransport(InNetworkTransport):
    """Sums of a plan that leaves some destinations to the hosts.

    A direction without blocks does not use the switch at all.

    Args:
        manifest: the plan's manifest.
        exchange: this worker's exchange over the switch, on ``split.first``.
        hosts: this worker's exchange with the other hosts, on ``split.second``.
        split: shares the link between both.
        link: that link, for its counters.
    """

    def __init__(
        self,
        manifest: Manifest,
        exchange: InNetworkExchange,
        hosts: DirectTransport,
        split: SplitLink,
        link: Link,
    ) -> None:
        super().__init__(exchange, link)
        self._manifest = manifest
        self._hosts = hosts
        self._arrivals = split.second
        split.first.meanwhile = self._tend_hosts

    @property
    def hosts_tally(self) -> DirectTally:
        """What was counted between the hosts so far."""
        return self._hosts.tally

    def aggregate(self, rows: NDArray[np.float32], direction: Direction) -> NDArray[np.float32]:
        """Return float32[n, F]; see ``Transport``.

        A sum of the switch is off by at most ``FixedPoint.error_bound()``; hosts add in float32.

        Raises:
            PlannerError: the plan was made without that direction.
            HostError: either part cannot go on.
        """
        fixed, sums = self.aggregate_parts(rows, direction)
        sums += fixed.decode()
        return sums

    def aggregate_parts(
        self, rows: NDArray[np.float32], direction: Direction
    ) -> tuple[FixedSums, NDArray[np.float32]]:
        """Return the sums of both parts; see ``InNetworkTransport.aggregate_parts``."""
        over_switch = self._uses_switch(direction)
        check_rows(rows, self._hosts.vertices, self._hosts.worker)
        everything = np.arange(len(rows))
        stream = self._hosts.begin(rows.shape[1], direction)
        stream.feed(everything, rows)
        if over_switch:
            fixed = self.exchange.aggregate_fixed(rows, direction)
        else:
            nothing = np.zeros(rows.shape, dtype=np.int32)
            fixed = FixedSums(nothing, FixedPoint.for_exchange(1, 0.0))
        self._hosts.wait_for(stream)
        return fixed, stream.sums(everything)

    def expected_traffic(self, width: int, direction: Direction) -> Traffic:
        """Return what plan and schedule predict for one exchange."""
        switch = NO_TRAFFIC
        if self._uses_switch(direction):
            switch = self.exchange.expected_traffic(width, direction)
        return add_traffic(switch, self._hosts.expected_traffic(width, direction))

    def attend(self, until: Callable[[], bool]) -> None:
        """Answer other hosts, which may have missed our last acknowledgements.

        Raises:
            LinkError: the link is gone.
        """
        self._hosts.attend(until)

    def next_epoch(self) -> None:
        """Begin another epoch between the hosts; nothing is sampled."""
        self._hosts.next_epoch()

    def close(self) -> None:
        """Take leave of the other hosts; takes two seconds at most."""
        self._hosts.close()

    def _uses_switch(self, direction: Direction) -> bool:
        return len(self._manifest.direction(direction).block_numbers) > 0

    def _tend_hosts(self) -> float:
        """Let the hosts' part go on while the other one waits for a frame."""
        pause = self._hosts.tend(arrived=self._arrivals.ready)
        return 0.0 if self._arrivals.ready else pause


@contextmanager
def open_switch(end: WorkerEnd, listeners: Listeners | None = None) -> Iterator[InNetworkTransport]:
    """Open the transport `switch`, with the hosts' part where the plan leaves them something.

    Args:
        end: the worker's end.
        listeners: hear of the blocks of the switch; None: nobody does.

    Yields:
        The transport; its link is closed at the end.

    Raises:
        TransportError: the worker was not given a plan, or it needs a schedule and was not given
            one of the same plan.
        PlanError: the plan cannot be read.
        PlanMismatchError: the plan is the strawman's.
        ScheduleError: the schedule cannot be read.
        LinkError: the link cannot be opened, or the frames are too long for it.
    """
    plan, listeners = end.plan_folder(), listeners or Listeners()
    part = read_worker_part(plan, end.worker)
    if not part.leaves_any:
        with open_in_network(end, listeners=listeners) as transport:
            yield transport
        return
    manifest = read_manifest(plan)
    schedule = read_binned_schedule(end.schedule_file())
    _check_schedule(part, schedule)
    over_switch = feature_frame_bytes(manifest.lanes) - ETHERNET_BYTES
    check_packets_fit(end.link, max(over_switch, Framing.parse(end.mtu).packet_bytes))
    with end.open_link(PROTOCOL, DIRECT_PROTOCOL) as link:
        yield mixed_transport(end, manifest, part, schedule, link, listeners=listeners)


def mixed_transport(
    end: WorkerEnd,
    manifest: Manifest,
    part: WorkerPart,
    schedule: BinnedSchedule,
    link: Link,
    *,
    listeners: Listeners,
) -> MixedTransport:
    """Put both parts of a worker on one link.

    Args:
        end: the worker's end.
        manifest: the plan's manifest.
        part: its part of the plan.
        schedule: what it sends to other hosts, in both directions.
        link: an open link for the frames of both; the caller closes it.
        listeners: hear of the blocks of the switch.

    Returns:
        The transport.

    Raises:
        DirectError: stations for another number of workers, or an MTU out of range.
        PlanMismatchError: the plan is the strawman's.
    """
    split = SplitLink(link, DIRECT_PROTOCOL, end.clock)
    hosts = DirectTransport(
        schedule.forward,
        split.second,
        end.stations,
        pace=end.pace,
        backward=schedule.backward,
        framing=Framing.parse(end.mtu),
        clock=end.clock,
    )
    exchange = new_exchange(end, manifest, part, split.first, listeners=listeners)
    return MixedTransport(manifest, exchange, hosts, split, link)


def _check_schedule(part: WorkerPart, schedule: BinnedSchedule) -> None:
    """Refuse a schedule that makes other sums than the plan leaves to the hosts.

    Raises:
        TransportError: it does.
    """
    both: dict[Direction, DirectSchedule] = {
        Direction.FORWARD: schedule.forward,
        Direction.BACKWARD: schedule.backward,
    }
    for direction, own in both.items():
        made = np.flatnonzero(own.add.sizes)
        same = (own.worker, own.vertices.tolist()) == (part.worker, part.vertices.tolist())
        if not same or not np.array_equal(made, part.left(direction)):
            raise TransportError(
                f"The schedule of worker {part.worker} does not make the {direction.value} sums "
                "that its plan leaves to the hosts: write both again."
            )
