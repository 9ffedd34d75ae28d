"""Predicted times on one machine, whose processors workers and a software switch share."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from switchgnn.base.array_types import Int64s
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.base.lanes import fragment_lanes
from switchgnn.planner.costs.flow import plan_arrivals, results_of
from switchgnn.planner.costs.forecast import HOST, HOST_PARTIAL, SWITCH, Rows, StarForecast
from switchgnn.planner.costs.seconds import PICOSECONDS, NetworkModel, packed_frames, plan_part
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.plan.plan import Plan
from switchgnn.planner.sending.between_hosts import fewest_rows, rows_between

_BITS, _FLOAT_BYTES = 8, 4
# The time of a processor for a worker's step of Gloo's ring; with 8 workers on two cores the 14
# steps take 5 to 8 ms.
_RING_STEP = 1e-4


@dataclass(frozen=True)
class Cost:
    """Seconds of an exchange: some for each worker, and more for each frame or byte."""

    worker: float
    each: float

    @classmethod
    def through(
        cls, workers: int, small: tuple[float, float], large: tuple[float, float]
    ) -> "Cost":
        """Return the costs with which two numbers of frames or bytes take these seconds."""
        each = max(0.0, large[1] - small[1]) / (large[0] - small[0])
        return cls(max(0.0, small[1] - each * small[0]) / workers, each)

    def of(self, workers: int, amount: float) -> float:
        """Return the seconds of an exchange."""
        return self.worker * workers + self.each * amount


@dataclass(frozen=True)
class MeasuredCosts:
    """Exchanges without a limit on links: over the switch by frames, between hosts by bytes."""

    switch: Cost
    hosts: Cost


@dataclass(frozen=True)
class WidthCost:
    """The predicted seconds of one exchange of rows of one width."""

    width: int
    times: float  # such exchanges in an epoch
    seconds: float
    toll: float  # the part of them that occupies links and processors


@dataclass(frozen=True)
class PathCost:
    """The predicted costs of exchanges in one direction, if one path serves all blocks."""

    path: str  # `switch`, `host` or `host-partial`
    direction: Direction
    widths: tuple[WidthCost, ...]
    shares: tuple[float, ...]  # of each block in the costs
    rest: float = 0.0  # the share of what the plan leaves to this path in any case


@dataclass(frozen=True, eq=False, kw_only=True)
class MachineForecast(StarForecast):
    """The forecast of exchanges by processes of one machine."""

    workers: int
    host_exchange: float  # seconds of a processor for each worker in an exchange between hosts
    measured: MeasuredCosts | None = None  # what counts instead of the times of the network

    def of_plan(self, plan: Plan, left: Rows) -> float:
        """See StarForecast. The parts of a mixed exchange use the processors one after another."""
        inside = self._total(lambda *exchange: self._over_switch(plan, *exchange)[0])
        return inside + (self.of_hosts(left) if any(rows.any() for rows in left.values()) else 0.0)

    def of_hosts(self, rows: Rows) -> float:
        """See StarForecast.

        Windows stay open from one exchange to the next and hold most of it, so the busiest link is
        never idle. With fast links, the processors are the limit.
        """
        return self._total(lambda direction, width: self._between_hosts(rows[direction], width)[0])

    def of_paths(self, plan: Plan, boundary: BoundaryEdges) -> list[PathCost]:
        """Return the costs of each path for the destinations that a plan leaves to the switch."""
        found = []
        for direction, widths in self.exchanges.items():
            edges, left = boundary.towards(direction), plan.left(direction)
            inside, rest = edges.into(~left), edges.into(left)
            copies = rows_between(inside, self.workers)
            fewest = rows_between(inside, self.workers, fewest_rows(inside))
            more = rows_between(rest, self.workers, fewest_rows(rest)).sum() / max(1, fewest.sum())
            by_packets, by_rows = _shares(plan, direction)
            for path, shares, extra, cost in (
                (SWITCH, by_packets, 0.0, partial(self._over_switch, plan, direction)),
                (HOST, by_rows, 0.0, partial(self._between_hosts, copies)),
                (HOST_PARTIAL, by_rows, float(more), partial(self._between_hosts, fewest)),
            ):
                each = (WidthCost(width, times, *cost(width)) for width, times in widths.items())
                found.append(PathCost(path, direction, tuple(each), shares, extra))
        return found

    def _over_switch(self, plan: Plan, direction: Direction, width: int) -> tuple[float, float]:
        """Return the seconds of an exchange and its toll."""
        if self.measured is None:
            part = plan_part(plan, direction, width, self.network)
            return part.alone / PICOSECONDS, max(part.links, part.work) / PICOSECONDS
        manifest, record = plan.manifest, plan.manifest.direction(direction)
        fragments = len(fragment_lanes(width, manifest.lanes, manifest.rows))
        barriers, told = fragments * len(record.block_numbers), record.prediction
        frames = fragments * (sum(told.packets_up) + sum(told.packets_down))
        if not barriers:
            return 0.0, 0.0
        cost, waits = self.measured.switch, (barriers - 1) * self.network.barrier
        return cost.of(self.workers, frames) + waits, cost.each * frames

    def _between_hosts(self, rows: Int64s, width: int) -> tuple[float, float]:
        """Return the seconds of an exchange and its toll."""
        network = self.network
        frames, sizes = packed_frames(rows, width, network.mtu)
        if self.measured is not None:
            cost, size = self.measured.hosts, float(sizes.sum())
            return cost.of(self.workers, size), cost.each * size
        links = max(sizes.sum(axis=axis).max() for axis in (0, 1))
        cores, transfer = network.cores or self.workers, links * _BITS / network.bits_per_second
        begin, work = self.workers * self.host_exchange, frames.sum() * network.switch_frame
        return float(max(transfer, (begin + work) / cores)), float(max(transfer, work / cores))


def _shares(plan: Plan, direction: Direction) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the share of each block in the packets of the switch, and in the rows of hosts.

    Rows are counted as if none served two destinations.
    """
    record, switch = plan.manifest.direction(direction), plan.switch
    blocks = len(record.block_numbers)
    packets = np.bincount(plan_arrivals(plan, direction).block - 1, minlength=blocks)
    inside = results_of(plan, direction)
    block = switch.result_block[inside].astype(np.int64) - record.first_block
    rows = np.bincount(block, switch.result_expected[inside], blocks)
    of_packets, of_rows = (each / max(1, each.sum()) for each in (packets, rows))
    return tuple(of_packets.tolist()), tuple(of_rows.tolist())


def reduce_seconds(
    numbers: int, frames: tuple[int, int], payload: float, workers: int, on: NetworkModel
) -> tuple[float, float]:
    """Predict the seconds in which the switch adds up numbers of all workers, and Gloo's ring.

    The switch's frames, whose number and bytes are `frames`, travel up and down at once, after
    those with the marks. In the ring each worker sends an n-th of the numbers 2 (n - 1) times, as a
    share `payload` of the bytes of its frames. Workers and switch share processors.
    """
    count, size = frames
    rate, cores, steps = on.bits_per_second / _BITS, on.cores or workers, 2 * (workers - 1)
    work = workers * count * (2 * on.host_frame + on.switch_frame) / cores
    passes = workers * count / (on.passes_per_second or float("inf"))
    sent = steps * numbers / workers * _FLOAT_BYTES / payload
    switch = 2 * on.barrier + max(size / rate, work, passes)
    ring = steps * on.delay + max(sent / rate, steps * workers * _RING_STEP / cores)
    return switch, ring
