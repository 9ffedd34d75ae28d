# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""One all-reduce: its tensor as consecutive fragments of the stream, and its result."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.errors import FeatureError
from switchgnn.host.reduce.frames import LANES, FragmentFrames, SumRing, fragments_of, spans
from switchgnn.host.reduce.scale import GroupScale, group_codes
from switchgnn.planner.lanes import LANES as WIDTHS

Values = NDArray[np.int32] | NDArray[np.float32]


class Reduction(ABC):
    """The sum of one tensor over all workers, while it goes through the stream.

    Attributes:
        begin: its first fragment.
        end: the fragment after its last one.
        result: the sums, as long as the tensor; complete when `done`.
        done: whether all of the result is here.
    """

    result: NDArray[Any]

    def __init__(self, begin: int, ahead: int, values: Values) -> None:
        self.begin = begin
        self._data = begin + ahead
        self.end = self._data + fragments_of(len(values))
        self._size = len(values)
        self.done = not self._size

    @abstractmethod
    def write(self, frames: FragmentFrames, number: int, limit: int) -> int:
        """Write fragments from ``number`` on, below ``limit``; return how many.

        0: the first one cannot be written before the sum of an earlier one has come.
        """

    @abstractmethod
    def take(self, sums: SumRing, number: int, limit: int) -> None:
        """Take the sums of all fragments from ``number`` on, below ``limit`` and its own end."""

    def _values_of(self, number: int, limit: int) -> slice:
        """Return where the values of some fragments are."""
        begin = (number - self._data) * LANES
        return slice(begin, min(self._size, begin + (limit - number) * LANES))


class IntegerReduction(Reduction):
    """A sum of integers, modulo 2^32. `values`: int32[N]."""

    def __init__(self, begin: int, values: NDArray[np.int32]) -> None:
        super().__init__(begin, 0, values)
        self._values = values
        self.result = np.empty_like(values)

    def write(self, frames: FragmentFrames, number: int, limit: int) -> int:
        """See ``Reduction``."""
        limit = min(limit, self.end)
        frames.write(number, self._values[self._values_of(number, limit)], 0)
        return limit - number

    def take(self, sums: SumRing, number: int, limit: int) -> None:
        """See ``Reduction``."""
        limit = min(limit, self.end)
        for slot, count in spans(number, limit - number, len(sums.codes)):
            place = self._values_of(number, number + count)
            lanes = sums.lanes[slot : slot + count].reshape(-1)
            self.result[place] = lanes[: place.stop - place.start]
            number += count
        self.done = number == self.end


class FloatReduction(Reduction):
    """A sum of floats, in groups of as many fragments as the switch has slots.

    Each group has its scale. The code of the next group's exponent is sent with every fragment of a
    group, that of the first group with a fragment of zeros ahead of it. A fragment is sent after
    the sum of the one that was in its slot before, so the scale is known by then.

    Args:
        begin: the number of the first fragment.
        values: float32[N].
        workers: how many workers contribute.
        slots: fragments of a group.
        average: divide the sums by the number of workers.
        generator: for stochastic rounding; None: to the nearest.
    """

    def __init__(
        self,
        begin: int,
        values: NDArray[np.float32],
        *,
        workers: int,
        slots: int,
        average: bool,
        generator: np.random.Generator | None,
    ) -> None:
        super().__init__(begin, 1 if len(values) else 0, values)
        self._values = values
        self._workers = workers
        self._slots = slots
        self._divisor = workers if average else 1
        self._generator = generator
        self.result = np.empty_like(values)
        self._scales: dict[int, GroupScale] = {}
        self._codes: dict[int, int] = {}

    def write(self, frames: FragmentFrames, number: int, limit: int) -> int:
        """See ``Reduction``."""
        if number < self._data:
            frames.write(number, np.zeros(WIDTHS[0], dtype=np.int32), self._code(0))
            return 1
        group, limit = self._group(number, limit)
        scale = self._scales.get(group)
        if scale is None:
            return 0
        values = self._values[self._values_of(number, limit)]
        frames.write(number, scale.quantise(values, self._generator), self._code(group + 1))
        return limit - number

    def take(self, sums: SumRing, number: int, limit: int) -> None:
        """See ``Reduction``."""
        if number < self._data:
            self._learn(0, sums, number)
            number += 1
        limit = min(limit, self.end)
        while number < limit:
            group, group_limit = self._group(number, limit)
            self._learn(group + 1, sums, number)
            for slot, count in spans(number, group_limit - number, len(sums.codes)):
                place = self._values_of(number, number + count)
                lanes = sums.lanes[slot : slot + count].reshape(-1)[: place.stop - place.start]
                self._scales[group].dequantise(lanes, self.result[place], self._divisor)
                number += count
        self.done = number == self.end

    def _group(self, number: int, limit: int) -> tuple[int, int]:
        """Return the group of a fragment, and where it or the limit ends."""
        group = (number - self._data) // self._slots
        return group, min(limit, self.end, self._data + (group + 1) * self._slots)

    def _code(self, group: int) -> int:
        """Return this worker's code for a group; 0 after the last one."""
        code = self._codes.get(group)
        if code is None:
            size = self._slots * LANES
            values = self._values[group * size : (group + 1) * size]
            code = int(group_codes(values, size)[0]) if len(values) else 0
            self._codes[group] = code
        return code

    def _learn(self, group: int, sums: SumRing, number: int) -> None:
        """Take the scale of a group from a sum of the group before."""
        if group not in self._scales:
            code = int(sums.codes[number & self._slots - 1])
            self._scales[group] = GroupScale(code, self._workers)


def new_reduction(
    begin: int,
    values: NDArray[Any],
    *,
    workers: int,
    slots: int,
    average: bool = False,
    generator: np.random.Generator | None = None,
) -> Reduction:
    """Return the sum of a tensor from a fragment of the stream on; see `check_tensor`."""
    check_tensor(values, average=average)
    if values.dtype == np.int32:
        return IntegerReduction(begin, values)
    return FloatReduction(
        begin, values, workers=workers, slots=slots, average=average, generator=generator
    )


def check_tensor(values: NDArray[Any], *, average: bool) -> None:
    """Refuse what cannot be reduced.

    Raises:
        FeatureError: wrong shape or type, or an average of integers.
    """
    if values.ndim != 1 or not values.flags.c_contiguous:
        raise FeatureError(
            f"The tensor to reduce has shape {values.shape} and strides {values.strides}: hand in "
            "one contiguous dimension."
        )
    if values.dtype not in (np.float32, np.int32):
        raise FeatureError(f"Tensors of {values.dtype} cannot be reduced: use float32 or int32.")
    if average and values.dtype == np.int32:
        raise FeatureError("Integers cannot be averaged: sum them, or use float32.")
