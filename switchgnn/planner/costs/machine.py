"""Predicted times on one machine, whose processors workers and a software switch share."""

from dataclasses import dataclass
from functools import partial

from switchgnn.base.array_types import Int64s
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.base.lanes import fragment_lanes
from switchgnn.planner.costs.forecast import Rows, StarForecast
from switchgnn.planner.costs.seconds import NetworkModel, packed_frames, plan_seconds
from switchgnn.planner.plan.plan import Plan

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


@dataclass(frozen=True, eq=False, kw_only=True)
class MachineForecast(StarForecast):
    """The forecast of exchanges by processes of one machine."""

    workers: int
    host_exchange: float  # seconds of a processor for each worker in an exchange between hosts
    measured: MeasuredCosts | None = None  # what counts instead of the times of the network

    def of_plan(self, plan: Plan, left: Rows) -> float:
        """See StarForecast. The parts of a mixed exchange use the processors one after another."""
        inside = self._total(partial(self._over_switch, plan))
        return inside + (self.of_hosts(left) if any(rows.any() for rows in left.values()) else 0.0)

    def _over_switch(self, plan: Plan, direction: Direction, width: int) -> float:
        if self.measured is None:
            return plan_seconds(plan, direction, width, self.network)
        manifest, record = plan.manifest, plan.manifest.direction(direction)
        fragments = len(fragment_lanes(width, manifest.lanes, manifest.rows))
        barriers, told = fragments * len(record.block_numbers), record.prediction
        frames = fragments * (sum(told.packets_up) + sum(told.packets_down))
        if not barriers:
            return 0.0
        return self.measured.switch.of(self.workers, frames) + (barriers - 1) * self.network.barrier

    def of_hosts(self, rows: Rows) -> float:
        """See StarForecast.

        Windows stay open from one exchange to the next and hold most of it, so the busiest link is
        never idle. With fast links, the processors are the limit.
        """
        return self._total(lambda direction, width: self._between_hosts(rows[direction], width))

    def _between_hosts(self, rows: Int64s, width: int) -> float:
        network = self.network
        frames, sizes = packed_frames(rows, width, network.mtu)
        if self.measured is not None:
            return self.measured.hosts.of(self.workers, sizes.sum())
        links = max(sizes.sum(axis=axis).max() for axis in (0, 1))
        processors = self.workers * self.host_exchange + frames.sum() * network.switch_frame
        transfer = links * _BITS / network.bits_per_second
        return float(max(transfer, processors / (network.cores or self.workers)))


def switch_adds_up_faster(
    numbers: int, frames: tuple[int, int], payload: float, workers: int, on: NetworkModel
) -> bool:
    """Return whether the switch adds up numbers of all workers faster than Gloo's ring.

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
    return switch < ring
