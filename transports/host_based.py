# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Exchange without help from the switch: workers send rows to each other."""

import zlib
from functools import partial

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.header import fragments_of
from switchgnn.host.link import Link, Traffic
from switchgnn.host.pace import Pace
from switchgnn.planner.direction import Direction
from switchgnn.planner.graph import Graph
from switchgnn.transports.errors import TransportError
from switchgnn.transports.exchange import HostExchange
from switchgnn.transports.host_schedule import HostSchedule, copies, host_schedules
from switchgnn.transports.sampling import Sample, Sampling, sample_rows
from switchgnn.transports.tally import HostTally
from switchgnn.transports.transport import check_rows, traffic_since
from switchgnn.transports.wire import Station

_EXACT = Sampling()


def copy_schedules(
    graph: Graph, assignment: NDArray[np.int32], workers: int
) -> tuple[HostSchedule, ...]:
    """The schedules of `host`: one copy per vertex and remote worker that needs it.

    Raises:
        ScheduleError: as ``host_schedules``.
    """
    return host_schedules(graph, assignment, workers, choose=copies)


class HostTransport:
    """One worker of `host` or `host-partial`, as its schedule says.

    BACKWARD is the transpose of FORWARD, also of a sampled one: it is the gradient of the
    sums of the same epoch.

    Args:
        schedule: this worker's part.
        link: an open link, for ``wire.PROTOCOL``; the caller closes it, after ``close``.
        stations: where the workers are.
        pace: bounds on sending and waiting.
        sampling: which rows travel; by default all.
        first_round: number of the first round; must grow where links are used again.

    Raises:
        TransportError: stations for another number of workers.
    """

    def __init__(
        self,
        schedule: HostSchedule,
        link: Link,
        stations: tuple[Station, ...],
        *,
        pace: Pace | None = None,
        sampling: Sampling = _EXACT,
        first_round: int = 1,
    ) -> None:
        if len(stations) != schedule.workers:
            raise TransportError(
                f"The schedule is for {schedule.workers} workers, but {len(stations)} have "
                "addresses."
            )
        self._schedules = {
            Direction.FORWARD: schedule,
            Direction.BACKWARD: schedule.transposed(),
        }
        self._sampling = sampling
        self._epoch = 0
        self._samples = self._draw()
        self._link = link
        self._start = link.traffic
        self._agreement = zlib.crc32(
            f"{sampling.rate}/{sampling.seed}/{first_round}".encode(),
            zlib.crc32(schedule.digest.tobytes()),
        )
        sends, gets = np.diff(schedule.out_indptr) > 0, np.diff(schedule.in_indptr) > 0
        self._exchange = HostExchange(
            schedule.worker,
            stations,
            link,
            pace=pace or Pace(),
            peers=_numbers(sends | gets),
            one_way=_numbers(sends ^ gets),
            session=self._agreement,
            first_round=first_round,
        )

    @property
    def tally(self) -> HostTally:
        """What was counted so far."""
        return self._exchange.tally

    @property
    def traffic(self) -> Traffic:
        """Frames and bytes so far, acknowledgements included."""
        return traffic_since(self._start, self._link.traffic)

    def expected_traffic(self, width: int, direction: Direction) -> Traffic:
        """What the schedule and the sample predict for one exchange; see ``Transport``."""
        out, back = self._samples
        sent, awaited = (out, back) if direction is Direction.FORWARD else (back, out)
        return self._exchange.expected_traffic(sent.indptr, awaited.indptr, fragments_of(width))

    def next_epoch(self) -> None:
        """Draw another sample from now on; the first epoch is 0."""
        self._epoch += 1
        self._samples = self._draw()

    def aggregate(self, rows: NDArray[np.float32], direction: Direction) -> NDArray[np.float32]:
        """Return float32[n, F], added in float32; see ``Transport``.

        Raises:
            TransportError: wrong shape or type.
            SilentWorkerError: another worker is gone, or calls with other arguments.
            LinkError: the link is gone.
        """
        schedule = self._schedules[direction]
        check_rows(rows, len(schedule.vertices), schedule.worker)
        out, back = self._samples
        sent, awaited = (out, back) if direction is Direction.FORWARD else (back, out)
        outgoing = schedule.send.apply(rows)[sent.place]
        received = self._exchange.run(
            outgoing,
            schedule.send.sizes[sent.place],
            sent.indptr,
            awaited.indptr,
            zlib.crc32(f"{self._epoch}/{direction.value}".encode(), self._agreement),
        )
        incoming = np.zeros((schedule.add.width, rows.shape[1]), dtype=np.float32)
        incoming[awaited.place] = received * awaited.scale[:, np.newaxis]
        return schedule.add.apply(incoming)

    def close(self) -> None:
        """Take leave of the other workers; takes two seconds at most."""
        self._exchange.close()

    def _draw(self) -> tuple[Sample, Sample]:
        """The rows that are sent forward and those that come; backward it is the reverse."""
        forward = self._schedules[Direction.FORWARD]
        draw = partial(sample_rows, self._sampling, self._epoch, forward.worker)
        return draw(forward.out_indptr, outgoing=True), draw(forward.in_indptr, outgoing=False)


def _numbers(chosen: NDArray[np.bool_]) -> frozenset[int]:
    return frozenset(np.flatnonzero(chosen).tolist())
