"""float32 to fixed point and back, with a scale for each fragment of a tensor.

The scale of a fragment is a power of two that bounds its values at all workers; the switch returns
the largest exponent code. With n workers and the exponent e, x becomes T = round(f x):

- In 32 bits f is (2^31 - n) / (n 2^e).
- In 48 bits f is 2^(31 - k + b - e), with the least k for which 2^k > n and the largest b for which
  n (2^b - 1) < 2^16. A fragment has floor(T / 2^b) of all its numbers as int32, then T modulo 2^b
  as uint16, two in a lane. No sum of n carries into its neighbour.

A sum is wrong by at most n / (2 f).
"""

import numpy as np

from switchgnn.base.array_types import Float32s, Float64s, Int32s, UInt8s

# The bits of a number.
PRECISE, COARSE = 48, 32
# The code of a fragment with an infinity or NaN; its result is NaN throughout.
NOT_FINITE = 255
# The exponent of code 0, which also stands for all smaller values.
_LEAST_EXPONENT = -126
# 2^e of each code.
_BOUNDS = np.ldexp(1.0, np.arange(NOT_FINITE + 1) + _LEAST_EXPONENT)
_BOUNDS[NOT_FINITE] = np.nan
_MAGNITUDE_BITS = np.uint32(0x7FFFFFFF)
_MANTISSA_BITS = np.uint32(23)
_MANTISSA = np.uint32((1 << 23) - 1)
_INFINITY_BITS = np.uint32(0x7F800000)
_LANE, _HALF = np.dtype(">i4"), np.dtype(">u2")


def numbers_of(bits: int, lanes: int) -> int:
    """Return how many numbers of 48 or 32 bits a fragment has; of 256 lanes: 170 or 256."""
    return lanes * 32 // bits


def group_codes(values: Float32s, group: int) -> UInt8s:
    """Return uint8[ceil(N / group)], the exponent code of each group of values, float32[N].

    0: all magnitudes are at most 2^-126. From 1 to 254: the code is e + 126 for the smallest e with
    all magnitudes at most 2^e. NOT_FINITE: there is an infinity or NaN.
    """
    starts = np.arange(0, len(values), group)
    with np.errstate(invalid="ignore"):  # a NaN remains one
        most, least = np.maximum.reduceat(values, starts), np.minimum.reduceat(values, starts)
        bits = np.maximum(most, -least).view(np.uint32) & _MAGNITUDE_BITS
    # Rounded up to a power of two, the bits are a biased exponent.
    codes: UInt8s = (np.maximum(bits + _MANTISSA >> _MANTISSA_BITS, 1) - 1).astype(np.uint8)
    codes[bits >= _INFINITY_BITS] = NOT_FINITE
    return codes


def fragment_codes(
    values: Float32s, workers: int, slots: int, bits: int, lanes: int
) -> tuple[UInt8s, int]:
    """Return the code of each fragment, and how many of the first slots / 2 share one to fit."""
    codes = group_codes(values, numbers_of(bits, lanes))
    first = codes[: slots // 2]
    each = first_groups(len(first), workers, lanes)
    largest = np.maximum.reduceat(first, np.arange(0, len(first), each))
    first[:] = np.repeat(largest, each)[: len(first)]
    return codes, each


def first_groups(window: int, workers: int, lanes: int) -> int:
    """Return how many of the fragments of a window share a code."""
    return max(1, -(-window // (1 + _LANE.itemsize * (lanes // workers))))


def separate_codes(codes: UInt8s, worker: int, workers: int) -> Int32s:
    """Return codes, uint8[G], in a worker's lanes of int32[1, k]; those of the others are 0."""
    lanes = np.zeros((workers, -(-len(codes) // _LANE.itemsize)), dtype=_LANE)
    lanes.view(np.uint8)[worker, : len(codes)] = codes
    return lanes.reshape(1, -1)


def largest_codes(lanes: Int32s, count: int, workers: int) -> UInt8s:
    """Return the largest codes of all workers, uint8[count], from the sum of their lanes."""
    each = -(-count // _LANE.itemsize)
    codes: UInt8s = lanes[: workers * each].view(np.uint8).reshape(workers, -1).max(axis=0)
    return codes[:count]


class FragmentScales:
    """The scales of fragments of m numbers: the largest codes of n workers, uint8[F].

    `factors`: f, steps per unit, float64[F, 1]; NaN if some value is not finite.
    """

    def __init__(self, codes: UInt8s, workers: int, bits: int = PRECISE) -> None:
        self.codes, self._workers, bounds = codes, workers, _BOUNDS[codes, np.newaxis]
        # 2^b, or 1 without lower parts.
        self._base = 1.0 if bits == COARSE else 2.0 ** (16 - (workers - 1).bit_length())
        self.factors: Float64s = (2.0**31 - workers) / (workers * bounds)
        if bits != COARSE:
            self.factors = 2.0 ** (31 - workers.bit_length()) * self._base / bounds

    def quantise(self, values: Float32s) -> Int32s:
        """Return the lanes of fragments, int32[F, k] in network order, for values, float32[F, m].

        0 if some value is not finite.
        """
        with np.errstate(invalid="ignore"):
            steps = values.astype(np.float64)
        steps *= self.factors
        if NOT_FINITE in self.codes.tobytes():
            steps[self.codes == NOT_FINITE] = 0
        np.rint(steps, out=steps)
        if self._base == 1:
            return steps.astype(_LANE)
        m = values.shape[1]
        lanes = np.empty((len(values), m + (m + 1) // 2), dtype=_LANE)
        upper = steps * (1 / self._base)
        lanes[:, :m] = np.floor(upper, out=upper)
        upper *= self._base
        steps -= upper
        halves = lanes.view(_HALF)
        halves[:, 2 * m : 3 * m] = steps
        halves[:, 3 * m :] = 0
        return lanes

    def dequantise(self, sums: Int32s, out: Float32s, divisor: int = 1) -> None:
        """Write sums, int32[F, 256] in network order, in units, float32[F, m].

        NaN if some value is not finite. `divisor`: the number of workers for an average.
        """
        m = out.shape[1]
        steps = sums[:, :m].astype(np.float64)
        if self._base != 1:
            steps *= self._base
            steps += sums.view(_HALF)[:, 2 * m : 3 * m].astype(np.uint16)
        steps *= 1 / (self.factors * divisor)
        # A sum beyond float32 is an infinity, as it is without a switch.
        with np.errstate(over="ignore"):
            out[:] = steps

    def error_bounds(self) -> Float64s:
        """Return the largest error of sums, float64[F], before their rounding to float32."""
        return self._workers / self.factors[:, 0] / 2


class _IntegerScale:
    """The scale of integers, which the switch adds as they are."""

    def quantise(self, values: Int32s) -> Int32s:
        return values

    def dequantise(self, sums: Int32s, out: Int32s, divisor: int = 1) -> None:
        # Quotients are exact enough in float64, and rounded towards 0.
        sums = sums[:, : out.shape[1]]
        out[:] = sums if divisor == 1 else sums / divisor


INTEGERS = _IntegerScale()
