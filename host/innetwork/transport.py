# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The sums of the switch, as a transport."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.compression import Compression, Savings
from switchgnn.host.innetwork.block import ShareListener
from switchgnn.host.innetwork.exchange import BlockListener, FixedSums, InNetworkExchange
from switchgnn.host.links.faults import FaultCounts, injected_faults
from switchgnn.host.transport import WorkerEnd, traffic_since
from switchgnn.host.wire.header import ETHERNET_BYTES, PROTOCOL, feature_frame_bytes
from switchgnn.host.wire.link import Link, Traffic, check_packets_fit
from switchgnn.planner.direction import Direction
from switchgnn.planner.plan.files import read_manifest, read_worker_part
from switchgnn.planner.plan.manifest import Manifest
from switchgnn.planner.plan.plan import WorkerPart


@dataclass(frozen=True)
class Listeners:
    """Callbacks on progress; see ``InNetworkExchange``."""

    on_block: BlockListener | None = None
    on_share: ShareListener | None = None


_NOBODY = Listeners()


class InNetworkTransport:
    """In-network sums."""

    def __init__(self, exchange: InNetworkExchange, link: Link) -> None:
        self.exchange = exchange
        self._link = link
        self._start = link.traffic

    def compress(self, compression: Compression) -> None:
        """Send rows in fewer bytes from the next exchange on, as all workers must."""
        self.exchange.compress(compression)

    @property
    def epsilon(self) -> float:
        """The least relative change of a cached row that is sent."""
        return self.exchange.epsilon

    @epsilon.setter
    def epsilon(self, epsilon: float) -> None:
        self.exchange.epsilon = epsilon

    @property
    def savings(self) -> Savings:
        """The counters of compression."""
        return self.exchange.savings

    def rest(self, site: int, vertices: NDArray[np.bool_] | None) -> None:
        """Let rows of a site count as unchanged; see ``InNetworkExchange.rest``."""
        self.exchange.rest(site, vertices)

    def forget(self, site: int) -> None:
        """Drop all that is kept of a site, as all workers must between the same exchanges."""
        self.exchange.forget(site)

    def aggregate(
        self, rows: NDArray[np.float32], direction: Direction, site: int = 0
    ) -> NDArray[np.float32]:
        """Return float32[n, F]; see ``InNetworkExchange.aggregate`` and ``Transport``."""
        return self.exchange.aggregate(rows, direction, site)

    def aggregate_parts(
        self, rows: NDArray[np.float32], direction: Direction
    ) -> tuple[FixedSums, NDArray[np.float32] | None]:
        """Return the integers that the switch summed, and the sums of the hosts.

        `rows`: float32[n, F], one row per vertex of this worker, ids ascending. The sums of the
        hosts are float32[n, F], or None if hosts sum nothing. Each part has 0 where the other one
        has the sum.
        """
        return self.exchange.aggregate_fixed(rows, direction), None

    def expected_traffic(self, width: int, direction: Direction) -> Traffic:
        """Return what the plan predicts for one exchange."""
        return self.exchange.expected_traffic(width, direction)

    def attend(self, until: Callable[[], bool]) -> None:
        """Do nothing: no worker leaves a block before all have their sums."""

    def next_epoch(self) -> None:
        """Do nothing: nothing is sampled."""

    @property
    def barriers(self) -> int:
        """How often this worker waited at a barrier."""
        return self.exchange.counters.barriers

    @property
    def void(self) -> int:
        """Abandoned rounds, whose features exceeded the predicted scale."""
        return self.exchange.counters.void

    @property
    def troubles(self) -> dict[str, int]:
        """What was lost, late or marked so far."""
        told = self.exchange.counters
        return {
            "recalls": told.recalls,
            "sums_recalled": told.sums_recalled,
            "marked": told.marked,
            "window_cuts": self.exchange.window_cuts,
        }

    @property
    def traffic(self) -> Traffic:
        """Frames and bytes of the exchange so far."""
        return traffic_since(self._start, self._link.traffic)

    def injected(self) -> Mapping[str, FaultCounts]:
        """Return the faults on the link so far, by direction."""
        return injected_faults(self._link)

    def close(self) -> None:
        """Do nothing: after the last barrier no worker waits for another."""


@contextmanager
def open_in_network(
    end: WorkerEnd,
    kind: type[InNetworkExchange] = InNetworkExchange,
    listeners: Listeners = _NOBODY,
) -> Iterator[InNetworkTransport]:
    """Open the transport `switch`, or another with the same packets."""
    plan = end.plan_folder()
    manifest, part = read_manifest(plan), read_worker_part(plan, end.worker)
    check_packets_fit(end.link, feature_frame_bytes(manifest.lanes) - ETHERNET_BYTES)
    with end.open_link(PROTOCOL) as link:
        exchange = new_exchange(end, manifest, part, link, kind=kind, listeners=listeners)
        exchange.compress(end.compression)
        yield InNetworkTransport(exchange, link)


def new_exchange(
    end: WorkerEnd,
    manifest: Manifest,
    part: WorkerPart,
    link: Link,
    *,
    kind: type[InNetworkExchange] = InNetworkExchange,
    listeners: Listeners = _NOBODY,
) -> InNetworkExchange:
    """Return a worker's exchange over the switch."""
    return kind(
        manifest,
        part,
        link,
        end.addresses,
        session=end.session,
        pace=end.pace,
        on_block=listeners.on_block,
        on_share=listeners.on_share,
        clock=end.clock,
    )
