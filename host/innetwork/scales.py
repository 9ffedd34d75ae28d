# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The scale of a round, and the features that no scale serves."""

from switchgnn.host.errors import FeatureError
from switchgnn.host.innetwork.barrier import Largest
from switchgnn.host.innetwork.errors import MagnitudeError
from switchgnn.host.innetwork.fixed_point import FixedPoint, magnitude_from_bits
from switchgnn.planner.direction import Direction

# In steps of the fixed point: what is smaller is rounded to zero.
_HALF_A_STEP = 0.5


class Scales:
    """Chooses scales, and refuses what this worker's features would not survive.

    Args:
        worker: this worker.
        max_fan_in: of the plan.
    """

    def __init__(self, worker: int, max_fan_in: int) -> None:
        self._worker = worker
        self._max_fan_in = max_fan_in
        self._peaks: dict[Direction, float] = {}

    def check_own(self, direction: Direction, own: int) -> None:
        """Take note of this worker's features, and refuse those whose sums would overflow.

        Args:
            direction: of the exchange.
            own: float32 bits of the largest magnitude.

        Raises:
            FeatureError: they would.
        """
        magnitude = magnitude_from_bits(own)
        try:
            FixedPoint.for_exchange(self._max_fan_in, magnitude)
        except FeatureError as error:
            raise FeatureError(
                f"Worker {self._worker} has features of up to {magnitude:g}. {error}"
            ) from error
        self._peaks[direction] = max(self._peaks.get(direction, 0.0), magnitude)

    def choose(self, round_number: int, largest: Largest) -> FixedPoint:
        """Choose the scale of a round by its largest feature.

        Args:
            round_number: the round.
            largest: of the features of all workers.

        Raises:
            MagnitudeError: sums of such features would overflow.
        """
        fan_in, magnitude = self._max_fan_in, magnitude_from_bits(largest.bits)
        try:
            return FixedPoint.for_exchange(fan_in, magnitude)
        except FeatureError as error:
            raise MagnitudeError(
                f"Round {round_number}: worker {largest.worker} reports features of up to "
                f"{magnitude:g}, of which a sum of {fan_in} overflows float32; those of worker "
                f"{self._worker} do not. If that worker is not broken, scale its features "
                "down. If it reports less, the switch is broken."
            ) from error

    def check(
        self, round_number: int, direction: Direction, largest: Largest, fixed_point: FixedPoint
    ) -> None:
        """Refuse a scale that is made for another worker's features alone.

        Features may become small: gradients do. What counts are the largest of this worker so far.

        Args:
            round_number: the round.
            direction: of the exchange.
            largest: of the features of all workers.
            fixed_point: the scale.

        Raises:
            MagnitudeError: all features of this worker would be rounded to zero.
        """
        magnitude = self._peaks[direction]
        # Where all features are zero, there is no scale.
        if magnitude and largest.bits and magnitude * fixed_point.scale < _HALF_A_STEP:
            raise MagnitudeError(
                f"Round {round_number}: worker {largest.worker} reports features of up to "
                f"{magnitude_from_bits(largest.bits):g}. Beside them all features of worker "
                f"{self._worker}, of up to {magnitude:g}, would be rounded to zero. If that "
                "worker is not broken, scale its features down."
            )
