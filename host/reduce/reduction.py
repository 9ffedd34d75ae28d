"""One all-reduce: its tensor as consecutive fragments of the stream, and its result."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.array_types import Int32s
from switchgnn.host.errors import FeatureError
from switchgnn.host.innetwork.errors import DisagreementError
from switchgnn.host.reduce.frames import LANES, FragmentFrames, SumRing, fragments_of, spans
from switchgnn.host.reduce.scale import INTEGERS, GroupScale, group_codes
from switchgnn.host.wire.header import feature_frame_bytes
from switchgnn.planner.lanes import LANES as WIDTHS

# Types of tensors; all but int32 travel as float32.
TYPES = ("int32", "float32", "bfloat16", "float16")
# Of a mark, and of the bits of a description.
_MARK = WIDTHS[0]
_NUMBER = np.dtype("<i4")
_BITS = np.dtype("<u8")


@dataclass(frozen=True)
class Call:
    """How to reduce a tensor."""

    # Divide by the number of workers; quotients of integers are rounded towards 0.
    average: bool = False
    type: str | None = None  # That of the caller's tensor, one of TYPES; None: that of the values.
    timeout: float = float("inf")  # Seconds without a sum, until the call fails.


SUM = Call()


@dataclass(frozen=True)
class Description:
    """What must be the same at all workers: numbers of the tensor, its type, and the operation."""

    length: int
    type: str
    average: bool

    @property
    def bits(self) -> int:
        """All of it as 64 bits."""
        return self.length << 3 | TYPES.index(self.type) << 1 | self.average

    @property
    def mark(self) -> Int32s:
        """A digest of it, int32[8]."""
        digest = hashlib.blake2b(self.bits.to_bytes(8, "big"), digest_size=4 * _MARK)
        return np.frombuffer(digest.digest(), dtype=_NUMBER)

    def __str__(self) -> str:
        return f"{self.type}[{self.length}] by {'average' if self.average else 'sum'}"


class DifferentMarksError(Exception):
    """The workers reduce different tensors."""


@dataclass(frozen=True)
class StreamSettings:
    """What all tensors of a stream have in common.

    `slots`: fragments of a group. `words`: int32 of each float, 2 or 1. `generator`: for stochastic
    rounding; None: to the nearest.
    """

    workers: int
    slots: int
    words: int
    generator: np.random.Generator | None


class Reduction:
    """The sum of one tensor over all workers, while it goes through the stream.

    The fragment ahead of its data has the mark of its description. All workers see if the sum of
    the marks is not that of equal ones. The fragments of as many as the switch has slots are a
    group. Each group of floats has its scale. The code of the next group's exponent is sent with
    every fragment of a group, that of the first group with the fragment ahead. A fragment is sent
    after the sum of the one that was in its slot before, so the scale is known by then.

    `begin`, `end`: its first fragment, and the one after its last. `result`: the sums, as long as
    the tensor; complete when `done`.
    """

    _ahead = 1

    def __init__(
        self, begin: int, values: NDArray[Any], setting: StreamSettings, call: Call
    ) -> None:
        self.about = Description(len(values), call.type or values.dtype.name, call.average)
        self.result, self.timeout, self.done = np.empty_like(values), call.timeout, False
        self._values, self._setting, self._slots = values, setting, setting.slots
        self._whole = values.dtype == np.int32
        self._words = 1 if self._whole else setting.words
        self._divisor = setting.workers if call.average else 1
        self._data = begin + self._ahead
        self.end = self._data + fragments_of(len(values) * self._words)
        self._scales: dict[int, GroupScale] = {}
        self._codes: dict[int, int] = {}

    def write(self, frames: FragmentFrames, number: int, limit: int) -> int:
        """Write fragments from ``number`` on, below ``limit``; return how many.

        0: the first one cannot be written before the sum of an earlier one has come.
        """
        if number < self._data:
            frames.write(number, self.about.mark, self._code(0))
            return 1
        group, limit = self._group(number, limit)
        scale = INTEGERS if self._whole else self._scales.get(group)
        if scale is None:
            return 0
        lanes = scale.quantise(
            self._values[self._values_of(number, limit)], self._setting.generator
        )
        frames.write(number, lanes, self._code(group + 1))
        return limit - number

    def take(self, sums: SumRing, number: int, limit: int) -> None:
        """Take the sums of all fragments from ``number`` on, below ``limit`` and its own end."""
        if number < self._data:
            marks = sums.lanes[number & self._slots - 1, :_MARK]
            # Modulo 2^32, as the switch adds.
            if (marks != self.about.mark * _NUMBER.type(self._setting.workers)).any():
                raise DifferentMarksError
            self._learn(0, sums, number)
            number += 1
        limit = min(limit, self.end)
        while number < limit:
            group, group_limit = self._group(number, limit)
            self._learn(group + 1, sums, number)
            scale = INTEGERS if self._whole else self._scales[group]
            for slot, count in spans(number, group_limit - number, self._slots):
                values = self._values_of(number, number + count)
                words = (values.stop - values.start) * self._words
                lanes = sums.lanes[slot : slot + count].reshape(-1)[:words]
                scale.dequantise(lanes, self.result[values], self._divisor)
                number += count
        self.done = number == self.end

    def _values_of(self, number: int, limit: int) -> slice:
        """Return where the values of some fragments are."""
        held = LANES // self._words
        begin = (number - self._data) * held
        return slice(begin, min(len(self._values), begin + (limit - number) * held))

    def _group(self, number: int, limit: int) -> tuple[int, int]:
        """Return the group of a fragment, and where it or the limit ends."""
        group = (number - self._data) // self._slots
        return group, min(limit, self.end, self._data + (group + 1) * self._slots)

    def _code(self, group: int) -> int:
        """Return this worker's code for a group; 0 after the last one, and of integers."""
        code = self._codes.get(group)
        if code is None:
            size = self._slots * LANES // self._words
            values = self._values[group * size : (group + 1) * size]
            code = 0 if self._whole or not len(values) else int(group_codes(values, size)[0])
            self._codes[group] = code
        return code

    def _learn(self, group: int, sums: SumRing, number: int) -> None:
        """Take the scale of a group from a sum of the group before."""
        if group not in self._scales:
            code = int(sums.codes[number & self._slots - 1])
            self._scales[group] = GroupScale(code, self._setting.workers, self._words)


class DescriptionExchange(Reduction):
    """What all workers reduce, each in the lanes of its worker; `own` has marks that differ."""

    _ahead = 0

    def __init__(self, begin: int, own: Reduction, worker: int, setting: StreamSettings) -> None:
        lanes = np.zeros((setting.workers, _BITS.itemsize // _NUMBER.itemsize), dtype=np.int32)
        lanes[worker] = np.array([own.about.bits], dtype=_BITS).view(_NUMBER)
        super().__init__(begin, lanes.reshape(-1), setting, Call(timeout=own.timeout))

    def take(self, sums: SumRing, number: int, limit: int) -> None:
        """Raise the error that says what differs."""
        super().take(sums, number, limit)
        bits = self.result.astype(_NUMBER).view(_BITS).tolist()
        first, *_ = found = [
            Description(each >> 3, TYPES[each >> 1 & 3], bool(each & 1)) for each in bits
        ]
        other = next((worker for worker, each in enumerate(found) if each != first), 0)
        raise DisagreementError(
            f"All-reduce: worker 0 reduces {first}, but worker {other} reduces {found[other]}. "
            "All workers must reduce tensors of the same lengths and types, in the same order."
        )


def frames_of_floats(numbers: int, words: int) -> tuple[int, int]:
    """Return the frames that carry that many floats, and their bytes, each way."""
    full, rest = divmod(numbers * words, LANES)
    widths = [*WIDTHS[:1], *[LANES] * full, *[-(-rest // WIDTHS[0]) * WIDTHS[0]] * bool(rest)]
    return len(widths), sum(map(feature_frame_bytes, widths))


def check_tensor(values: NDArray[Any]) -> None:
    """Raise FeatureError for a tensor of a shape or type that cannot be reduced."""
    if values.ndim != 1 or not values.flags.c_contiguous:
        raise FeatureError(
            f"The tensor to reduce has shape {values.shape} and strides {values.strides}: hand in "
            "one contiguous dimension."
        )
    if values.dtype not in (np.float32, np.int32):
        raise FeatureError(f"Tensors of {values.dtype} cannot be reduced: use float32 or int32.")
