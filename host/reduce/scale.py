"""float32 to fixed point and back, with a scale for each group of a tensor.

The scale of a group is a power of two that bounds its values at all workers. Each worker sends the
code of the next group's exponent with every fragment, and the switch returns the largest one.
With n workers and the exponent e, x becomes one word or two, none of whose sums can leave int32:

- One word is round(f x) with f = (2^31 - n) / (n 2^e). A sum is wrong by at most n / (2 f).
- Two words are q = round(f x) and round(2^s (f x - q)), with the least k for which 2^k > n,
  f = 2^(31 - k - e) and s = 32 - k. As f is a power of two, f x - q is exact. A sum is wrong by at
  most n / (2 f 2^s).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from switchgnn.base.array_types import Float32s, Int32s, UInt8s

# The code of a group with an infinity or NaN; its result is NaN throughout.
NOT_FINITE = 255
# The exponent of code 0, which also stands for all smaller values.
_LEAST_EXPONENT = -126
_MAGNITUDE_BITS = np.uint32(0x7FFFFFFF)
_MANTISSA_BITS = 23
_MANTISSA = (1 << _MANTISSA_BITS) - 1
_INFINITY_BITS = 0x7F800000
# Of the random numbers that are added before rounding down. With as few bits the sum with a number
# below 2^31 is exact enough not to reach the next integer.
_RANDOM_BITS = 16
_RANDOM_STEP = 2.0**-_RANDOM_BITS


def group_codes(values: Float32s, group: int) -> UInt8s:
    """Return uint8[ceil(N / group)], the exponent code of each group of values, float32[N].

    0: all magnitudes are at most 2^-126. From 1 to 254: the code is e + 126 for the smallest e with
    all magnitudes at most 2^e. NOT_FINITE: there is an infinity or NaN.
    """
    bits = values.view(np.uint32)
    starts = range(0, len(bits), group)
    # The bits of non-negative floats compare like integers.
    largest = [int((bits[start : start + group] & _MAGNITUDE_BITS).max()) for start in starts]
    return np.array([_code(each) for each in largest], dtype=np.uint8)


def _code(bits: int) -> int:
    """Return the code for the float32 bits of the largest magnitude."""
    if bits >= _INFINITY_BITS:
        return NOT_FINITE
    # Rounded up to a power of two, the bits are a biased exponent.
    return max(0, (bits + _MANTISSA >> _MANTISSA_BITS) - 1)


@dataclass(frozen=True)
class GroupScale:
    """The scale of one group: the largest exponent code of n workers, for 1 or 2 words a number."""

    code: int
    workers: int
    words: int = 1

    @property
    def finite(self) -> bool:
        """Whether all values of all workers are finite."""
        return self.code != NOT_FINITE

    @property
    def bound(self) -> float:
        """2^e, which no magnitude exceeds; infinity if some value is not finite."""
        return 2.0 ** (self.code + _LEAST_EXPONENT) if self.finite else float("inf")

    @cached_property
    def factor(self) -> float:
        """f, steps of the first word per unit; 0 if some value is not finite."""
        if self.words == 1:
            return (2.0**31 - self.workers) / (self.workers * self.bound)
        return 2.0 ** (31 - self.workers.bit_length()) / self.bound

    @property
    def finer(self) -> float:
        """2^s, steps of the last word per step of the first one."""
        return 1.0 if self.words == 1 else 2.0 ** (32 - self.workers.bit_length())

    def quantise(self, values: Float32s, generator: np.random.Generator | None = None) -> Int32s:
        """Return the words of each value in turn, int32; 0 if a value of the group is not finite.

        With a generator the last word is rounded up or down at random so that the mean is right.
        """
        words = np.zeros((len(values), self.words), dtype=np.int32)
        if self.finite:
            steps = np.multiply(values, self.factor, dtype=np.float64)
            if self.words > 1:
                words[:, 0] = whole = np.rint(steps)
                steps -= whole
                steps *= self.finer
            if generator is None:
                np.rint(steps, out=steps)
            else:
                random = generator.integers(0, 1 << _RANDOM_BITS, len(steps), dtype=np.uint16)
                steps += (random + 0.5) * _RANDOM_STEP
                np.floor(steps, out=steps)
            words[:, -1] = steps
        return words.reshape(-1)

    def dequantise(self, sums: Int32s, out: Float32s, divisor: int = 1) -> None:
        """Write sums, int32[k · words], in units; NaN if some value is not finite.

        The sums may have any byte order. `divisor`: the number of workers for an average.
        """
        if not self.finite:
            out.fill(np.nan)
            return
        words = sums.reshape(-1, self.words)
        steps = words[:, -1] / self.finer
        if self.words > 1:
            steps += words[:, 0]
        # A sum beyond float32 is an infinity, as it is without a switch.
        with np.errstate(over="ignore"):
            np.divide(steps, self.factor * divisor, out=out, casting="unsafe")

    def error_bound(self, *, stochastic: bool = False) -> float:
        """Return the largest error of a sum, before its rounding to float32."""
        if not self.finite:
            return 0.0
        return self.workers / (self.factor * self.finer) / (1 if stochastic else 2)


class _IntegerScale:
    """The scale of integers, which the switch adds as they are."""

    def quantise(self, values: Int32s, _generator: object = None) -> Int32s:
        return values

    def dequantise(self, sums: Int32s, out: Int32s, divisor: int = 1) -> None:
        # Quotients are exact enough in float64, and rounded towards 0.
        out[:] = sums if divisor == 1 else sums / divisor


INTEGERS = _IntegerScale()
