# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""One interface for every way to get the sums over remote neighbours."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.clock import SYSTEM_CLOCK, Clock
from switchgnn.base.network import Station
from switchgnn.host.compression import NO_COMPRESSION, Compression
from switchgnn.host.errors import FeatureError, TransportError
from switchgnn.host.innetwork.endpoint import ExchangeStatus
from switchgnn.host.links.faults import FaultCounts, open_worker_link
from switchgnn.host.pace import Pace
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.link import Link, Traffic
from switchgnn.planner.direction import Direction

NO_TRAFFIC = Traffic(0, 0, 0, 0)


@dataclass(frozen=True)
class WorkerEnd:
    """The parameters of one worker's end. Each transport uses those that it needs.

    Attributes:
        vertices: how many vertices the worker holds.
        link: ``eth:...`` or ``udp:...``, as for ``open_link``.
        faults: the faults on the link, as for ``Faults.parse``.
        addresses: those of the worker and of its switch.
        stations: the addresses of all workers.
        plan: the plan folder, if the switch adds up.
        session: the number of its install.
        schedule: the worker's file, if hosts send to each other.
        sampling: the share of rows that is sent.
        mtu: of frames between hosts, as for ``Framing.parse`` of host/direct.
        clock: the clock of the link.
        recording: the file for the frames of the link, or None.
        shared: an open link to use instead, of which an all-reduce uses the other half.
        compression: what workers leave out of the rows that they send.
    """

    worker: int
    workers: int
    vertices: int
    pace: Pace
    link: str
    faults: str
    addresses: Addresses
    stations: tuple[Station, ...]
    plan: Path | None
    session: int
    schedule: Path | None
    sampling: float
    seed: int
    mtu: str = "1500"
    clock: Clock = SYSTEM_CLOCK
    recording: Path | None = None
    shared: Link | None = None
    compression: Compression = NO_COMPRESSION

    def open_link(self, *protocols: int) -> Link:
        """Open the link for some IPv4 protocols."""
        if self.shared is not None:
            return self.shared
        return open_worker_link(self.link, self.faults, self.worker, protocols, self.recording)

    def plan_folder(self) -> Path:
        """Return the plan folder."""
        if self.plan is None:
            raise TransportError(f"Worker {self.worker} needs a plan for this transport.")
        return self.plan

    def schedule_file(self) -> Path:
        """Return the file of the worker's schedule."""
        if self.schedule is None:
            raise TransportError(f"Worker {self.worker} needs a schedule for this transport.")
        return self.schedule


class Transport(Protocol):
    """One worker's end. All workers make the same calls in the same order.

    What a transport does not override does nothing, or is empty.
    """

    def aggregate(
        self, rows: NDArray[np.float32], direction: Direction, site: int = 0
    ) -> NDArray[np.float32]:
        """Sum over the remote neighbours of each of this worker's vertices.

        `rows`: float32[n, F], one row per vertex of this worker, ids ascending; any F from 1, the
        same for all workers. They are not used after the return. `site` numbers the tensor: a cache
        compares it with the last one of the same site, direction and width. Returns float32[n, F];
        0 for a vertex without remote neighbours.
        """

    def attend(self, until: Callable[[], bool]) -> None:
        """Answer workers that may have missed our last frames, while nothing is exchanged."""
        return

    def next_epoch(self) -> None:
        """Begin another epoch: a transport that samples draws again."""
        return

    @property
    def status(self) -> ExchangeStatus | None:
        """The progress of an exchange over the switch; None: hosts exchange alone."""
        return None

    @property
    def report(self) -> dict[str, int]:
        """Counters of an exchange over the switch for reports."""
        return {}

    def injected(self) -> Mapping[str, FaultCounts]:
        """Return the faults on the link to the switch so far, by direction."""
        return {}

    @property
    def traffic(self) -> Traffic:
        """Frames and bytes of this transport so far."""

    def expected_traffic(self, width: int, direction: Direction) -> Traffic:
        """Return the traffic of one such exchange of this epoch without losses."""

    def close(self) -> None:
        """Take leave of the other workers; the link stays open."""
        return


def check_rows(rows: NDArray[np.float32], vertices: int, worker: int) -> None:
    """Reject anything but float32[vertices, F]."""
    if rows.ndim != 2 or rows.shape[0] != vertices or rows.shape[1] < 1:
        raise FeatureError(
            f"Worker {worker} holds {vertices} vertices: rows must have the shape "
            f"({vertices}, F) with F from 1, not {rows.shape}."
        )
    if rows.dtype != np.float32:
        raise FeatureError(f"Rows must be float32, not {rows.dtype}.")


def add_traffic(one: Traffic, other: Traffic) -> Traffic:
    """Return the sum of both."""
    return Traffic(*(a + b for a, b in zip(one, other, strict=True)))


def traffic_since(start: Traffic, now: Traffic) -> Traffic:
    """Return the traffic between two readings."""
    return Traffic(*(after - before for before, after in zip(start, now, strict=True)))
