"""float32 to fixed point and back, so that a switch can add.

With n the largest fan-in and m the largest magnitude in the exchange,
x becomes round(f x) with f = (2^31 - n) / (n m): no sum of n of them can leave
the int32 range, and a sum is wrong by at most n / (2 f).
"""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from switchgnn.base.array_types import Float32s, Int32s
from switchgnn.host.base.compression import WHOLE_BITS
from switchgnn.host.base.errors import FeatureError
from switchgnn.host.base.operations import Operation, Words
from switchgnn.host.innetwork.errors import MagnitudeError
from switchgnn.planner.base.direction import Direction

LARGEST_SUM = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class FixedPoint:
    """The scale of one exchange."""

    scale: float  # F, steps per unit (float64); 1 when all features are zero.
    max_fan_in: int  # N, the largest number of contributions to one sum.
    magnitude: float  # M, the largest absolute value over all workers.
    # 32; or 16 or 8: f then is such that a feature of m has that many bits, and larger ones have
    # more.
    bits: int = WHOLE_BITS
    step_error: float = 0.5  # The largest error of a rounded feature, in steps.

    @classmethod
    def for_exchange(
        cls, max_fan_in: int, magnitude: float, bits: int = WHOLE_BITS, step_error: float = 0.5
    ) -> "FixedPoint":
        """Choose the scale for a fan-in and a magnitude; see ``FixedPoint``.

        FeatureError: a sum of ``max_fan_in`` such features would overflow float32.
        """
        if max_fan_in * magnitude > LARGEST_SUM:
            raise FeatureError(
                f"The largest feature is {magnitude:g} and a vertex sums up to {max_fan_in} of "
                "them: the sum overflows float32. Scale the features down."
            )
        if magnitude == 0.0:
            return cls(1.0, max_fan_in, 0.0, bits, step_error)
        steps = (2.0**31 - max_fan_in) / max_fan_in
        if bits < WHOLE_BITS:
            steps = min(steps, 2.0 ** (bits - 1) - 1)
        return cls(steps / magnitude, max_fan_in, magnitude, bits, step_error)

    @property
    def limit(self) -> float:
        """The largest absolute value whose sums cannot overflow."""
        if self.bits == WHOLE_BITS or self.magnitude == 0.0:
            return self.magnitude
        steps = (2.0**31 - self.max_fan_in) / self.max_fan_in
        return max(self.magnitude, min(steps / self.scale, LARGEST_SUM / self.max_fan_in))

    def encode(self, features: Float32s) -> Int32s:
        """Return round(f x), same shape, int32."""
        return np.rint(features.astype(np.float64) * self.scale).astype(np.int32)

    def decode(self, sums: Int32s) -> Float32s:
        """Return sums / f, same shape, float32."""
        return (sums / self.scale).astype(np.float32)

    def error_bound(self) -> float:
        """Return the largest absolute error of a decoded sum of features of up to m.

        Rounding n features costs n e / f, e steps each; the float32 result rounds once more,
        by at most 2^-24 of its size, which n m bounds.
        """
        if self.magnitude == 0.0:
            return 0.0
        rounded = self.max_fan_in * self.step_error / self.scale
        return rounded + self.max_fan_in * self.magnitude * 2.0**-24


@dataclass(frozen=True)
class FixedSums:
    """Sums as the switch computed them, int32[n, F], at a scale.

    There is one row per vertex of the worker; 0 without remote neighbours. `of_hosts`: float32[n,
    F], the sums that hosts have made, which are added; None: the switch has made all.
    """

    values: Int32s
    fixed_point: FixedPoint
    of_hosts: Float32s | None = None

    def decode(self) -> Float32s:
        """Return the sums as float32[n, F]."""
        if self.of_hosts is not None and self.fixed_point.magnitude == 0.0:
            return self.of_hosts
        sums = self.fixed_point.decode(self.values)
        return sums if self.of_hosts is None else sums + self.of_hosts


@dataclass(frozen=True)
class OwnWords(FixedPoint):
    """The words of an operation that needs no scale; all features fit."""

    scale: float = np.inf
    max_fan_in: int = 1
    magnitude: float = np.inf
    words: Words = field(kw_only=True)

    def encode(self, features: Float32s) -> Int32s:
        """Return the words, same shape, as int32."""
        return self.words.encode(features).view(np.int32)

    def decode(self, sums: Int32s) -> Float32s:
        """Return the features, same shape."""
        return self.words.decode(sums.view(np.uint32))


def own_words(operation: Operation) -> OwnWords | None:
    """Return the words of an operation that needs no scale; None: it has fixed point."""
    words = operation.rule.words
    return None if words is None else OwnWords(words=words)


def largest_magnitude(features: Float32s) -> int:
    """Return the float32 bits of the largest absolute value; 0 for no features.

    The bits of non-negative floats compare like integers, which lets the switch
    take the maximum.
    """
    if features.size == 0:
        return 0
    largest = np.abs(features).max()
    if not np.isfinite(largest):
        bad = np.argwhere(~np.isfinite(features))[0]
        raise FeatureError(
            f"Feature {int(bad[1])} of local vertex {int(bad[0])} is "
            f"{features[bad[0], bad[1]]}: features must be finite."
        )
    return int(largest.view(np.uint32))


def magnitude_from_bits(bits: int) -> float:
    """Return the float that :func:`largest_magnitude` wrote as bits."""
    return float(np.uint32(bits).view(np.float32))


# Growth of the features since the last two rounds of the same tensor: with dropout the largest one
# doubles now and then. It costs two of the 31 bits.
HEADROOM = 4.0
_REMEMBERED = 256
_MOST_COMPARED = 64


@dataclass(frozen=True)
class ExchangeKind:
    """What all workers must agree on before features are sent; `width`: elements of a feature."""

    direction: Direction
    width: int
    operation: Operation = Operation.SUM


@dataclass(frozen=True)
class Foreseen:
    """The predicted next exchange; features up to the scale's ``limit`` fit."""

    kind: ExchangeKind
    fixed_point: FixedPoint


class Foresight:
    """Predicts the next exchange from the previous ones.

    `bits` and `step_error`: of its scale. Fewer than 32 bits have room for larger features.
    """

    def __init__(self, max_fan_in: int, bits: int = WHOLE_BITS, step_error: float = 0.5) -> None:
        self._max_fan_in = max_fan_in
        self._bits, self._step_error = bits, step_error
        self._past: deque[tuple[ExchangeKind, int]] = deque(maxlen=_REMEMBERED)

    def note(self, kind: ExchangeKind, largest: int) -> None:
        """Remember an exchange; `largest`: float32 bits of the largest magnitude of all workers."""
        self._past.append((kind, largest))

    def next(self) -> Foreseen | None:
        """Return the next exchange; None if the past gives no hint."""
        kinds = [kind for kind, _ in self._past]
        before = _last_alike(kinds)
        if before is None:
            return None
        kind = kinds[before + 1]
        earlier = before + 1 - (len(kinds) - 1 - before)
        alike = [
            self._past[index][1]
            for index in (before + 1, earlier)
            if index >= 0 and kinds[index] == kind
        ]
        fixed_point = own_words(kind.operation) or self._fixed_point(max(alike))
        return None if fixed_point is None else Foreseen(kind, fixed_point)

    def _fixed_point(self, largest: int) -> FixedPoint | None:
        headroom = HEADROOM if self._bits == WHOLE_BITS else 1.0
        capacity = headroom * magnitude_from_bits(largest)
        if not 0 < self._max_fan_in * capacity <= LARGEST_SUM:
            return None
        return FixedPoint.for_exchange(self._max_fan_in, capacity, self._bits, self._step_error)


def _last_alike(kinds: list[ExchangeKind]) -> int | None:
    """Return the last index up to which the most exchanges are of the same kinds as the last."""
    best, most = None, 0
    for end in range(len(kinds) - 2, -1, -1):
        longest = min(end + 1, _MOST_COMPARED)
        different = (n for n in range(longest) if kinds[end - n] != kinds[-1 - n])
        common = next(different, longest)
        if common > most:
            best, most = end, common
        # If all exchanges are alike, searching on would take longer than an exchange.
        if most == _MOST_COMPARED:
            break
    return best


@dataclass(frozen=True)
class Largest:
    """The largest magnitude of a round, as float32 bits, and the worker that reported it.

    After a restart of a switch in the round, `worker` may be another one.
    """

    bits: int
    worker: int


# A cached scale is renewed when the largest feature is above this multiple of its magnitude.
ROOM = 2.0
# In steps of the fixed point: smaller values are rounded to zero.
_HALF_A_STEP = 0.5


class Scales:
    """Chooses scales; rejects those that overflow or round all features of this worker to zero."""

    def __init__(
        self, worker: int, max_fan_in: int, bits: int = WHOLE_BITS, step_error: float = 0.5
    ) -> None:
        self._worker = worker
        self._max_fan_in = max_fan_in
        self._bits, self._step_error = bits, step_error
        self._peaks: dict[Direction, float] = {}

    def check_own(self, direction: Direction, own: int) -> None:
        """Reject features whose sums would overflow; `own`: float32 bits of the largest one."""
        magnitude = magnitude_from_bits(own)
        try:
            FixedPoint.for_exchange(self._max_fan_in, magnitude)
        except FeatureError as error:
            raise FeatureError(
                f"Worker {self._worker} has features of up to {magnitude:g}. {error}"
            ) from error
        self._peaks[direction] = max(self._peaks.get(direction, 0.0), magnitude)

    def choose(self, round_number: int, largest: Largest, *, lasting: bool = False) -> FixedPoint:
        """Choose the scale of a round by its largest feature; `lasting`: of a cache."""
        fan_in, magnitude = self._max_fan_in, magnitude_from_bits(largest.bits)
        if lasting and self._bits == WHOLE_BITS and ROOM * fan_in * magnitude < LARGEST_SUM:
            magnitude *= ROOM
        try:
            return FixedPoint.for_exchange(fan_in, magnitude, self._bits, self._step_error)
        except FeatureError as error:
            raise MagnitudeError(
                f"Round {round_number}: worker {largest.worker} reports features of up to "
                f"{magnitude:g}; a sum of {fan_in} of them overflows float32, unlike those of "
                f"worker {self._worker}. If that worker works correctly, scale its features "
                "down. If it reported less, the switch is broken.",
                [largest.worker],
            ) from error

    def check(
        self, round_number: int, direction: Direction, largest: Largest, fixed_point: FixedPoint
    ) -> None:
        """Reject a scale at which this worker's largest features so far become zero.

        Later features may be that small, as gradients are.
        """
        magnitude = self._peaks[direction]
        if self._bits < WHOLE_BITS:
            return  # that is the price of few bits
        if magnitude and largest.bits and magnitude * fixed_point.scale < _HALF_A_STEP:
            raise MagnitudeError(
                f"Round {round_number}: worker {largest.worker} reports features of up to "
                f"{magnitude_from_bits(largest.bits):g}. At that scale all features of worker "
                f"{self._worker}, of up to {magnitude:g}, would be rounded to zero. If that "
                "worker works correctly, scale its features down.",
                [largest.worker],
            )
