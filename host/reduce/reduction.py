"""One all-reduce: its tensor as consecutive fragments of the stream, and its result."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.array_types import Int32s
from switchgnn.host.base.errors import FeatureError
from switchgnn.host.innetwork.errors import DisagreementError
from switchgnn.host.reduce import scale
from switchgnn.host.reduce.frames import FragmentFrames, SumRing, spans
from switchgnn.host.wire.header import feature_frame_bytes
from switchgnn.planner.base.lanes import LANES as WIDTHS

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
    """What all tensors of a worker's stream have in common.

    `slots`: of the switch. `bits`: of each float, 48 or 32. `lanes`: of a whole fragment.
    """

    worker: int
    workers: int
    slots: int
    bits: int
    lanes: int


class Reduction:
    """The sum of one tensor over all workers, while it goes through the stream.

    The fragment ahead of its data has the mark of its description. All workers see if the sum of
    the marks is not that of equal ones. Each fragment of floats has its scale, and carries the
    exponent code for the fragment half of the slots later, which is sent after this one's sum. The
    codes of the first fragments go ahead of the data: with the mark, and in a fragment of codes.

    `late`: whether its frames have the lowest class.
    `begin`, `end`: its first fragment, and the one after its last. `result`: the sums, as long as
    the tensor; complete when `done`.
    """

    _ahead = 1

    def __init__(
        self,
        begin: int,
        values: NDArray[Any],
        setting: StreamSettings,
        call: Call,
        *,
        late: bool = False,
    ) -> None:
        self.about = Description(len(values), call.type or values.dtype.name, call.average)
        self.result, self.timeout, self.done = np.empty_like(values), call.timeout, False
        self._values, self._setting, self._slots = values, setting, setting.slots
        self._late = late
        self._whole = values.dtype == np.int32
        self._held = scale.numbers_of(32 if self._whole else setting.bits, setting.lanes)
        self._divisor = setting.workers if call.average else 1
        fragments = -(-len(values) // self._held)
        self._distance = setting.slots // 2
        # This worker's, and after the sums that bring them the largest of all.
        self._codes = np.zeros(fragments + self._distance, dtype=np.uint8)
        self._window, self._each, self._known = 0, 1, fragments
        if not self._whole:
            self._window, self._known = min(fragments, self._distance), 0
            more = setting.workers, setting.slots, setting.bits, setting.lanes
            self._codes[:fragments], self._each = scale.fragment_codes(values, *more)
        self._first = begin + self._ahead
        self._data = self._first + (self._window > self._each)
        self.end = self._data + fragments

    def write(self, frames: FragmentFrames, number: int, limit: int) -> int:
        """Write fragments from ``number`` on, below ``limit``; return how many.

        0: the first one cannot be written before the sum of an earlier one has come.
        """
        setting = self._setting
        if number < self._data:
            own = self._codes[self._each : self._window : self._each]
            lanes = scale.separate_codes(own, setting.worker, setting.workers)
            mark = self.about.mark[np.newaxis]
            rows = mark if number < self._first else lanes
            frames.write(number, rows, self._codes[:1], late=self._late)
            return 1
        begin, end = self._alike(number, min(limit, self.end, self._data + self._known))
        if end <= begin:
            return 0
        values = self._values[begin * self._held : end * self._held].reshape(end - begin, -1)
        lanes = self._scales(begin, end).quantise(values)
        codes = self._codes[begin + self._distance : end + self._distance]
        frames.write(number, lanes, codes, late=self._late)
        return end - begin

    def take(self, sums: SumRing, number: int, limit: int) -> None:
        """Take the sums of all fragments from ``number`` on, below ``limit`` and its own end."""
        limit = min(limit, self.end)
        while number < min(limit, self._data):
            self._take_ahead(sums, number)
            number += 1
        while number < limit:
            begin, end = self._alike(number, limit)
            for slot, count in spans(number, end - begin, self._slots):
                begin, at = begin + count, begin
                later = self._codes[at + self._distance : begin + self._distance]
                np.maximum(later, sums.codes[slot : slot + count], out=later)
                out = self.result[at * self._held : begin * self._held].reshape(count, -1)
                lanes = sums.lanes[slot : slot + count]
                self._scales(at, begin).dequantise(lanes, out, self._divisor)
            self._known = max(self._known, end + self._distance)
            number = self._data + end
        self.done = number == self.end

    def _take_ahead(self, sums: SumRing, number: int) -> None:
        """Take the sum of the marks, or that of the codes."""
        slot, each, workers = number & self._slots - 1, self._each, self._setting.workers
        if number < self._first:
            # Modulo 2^32, as the switch adds.
            if (sums.lanes[slot, :_MARK] != self.about.mark * _NUMBER.type(workers)).any():
                raise DifferentMarksError
            part, largest = self._codes[:each], sums.codes[slot : slot + 1]
        else:
            part = self._codes[each : self._window]
            largest = scale.largest_codes(sums.lanes[slot], -(-len(part) // each), workers)
            largest = np.repeat(largest, each)[: len(part)]
        np.maximum(part, largest, out=part)
        if number + 1 == self._data:
            self._known = max(self._known, self._window)

    def _alike(self, number: int, limit: int) -> tuple[int, int]:
        """Return fragments as indices in the data; all have as many numbers as the first one."""
        begin, full = number - self._data, len(self._values) // self._held
        end = limit - self._data
        return begin, min(end, full) if begin < full else end

    def _scales(self, begin: int, end: int) -> Any:  # noqa: ANN401
        if self._whole:
            return scale.INTEGERS
        setting = self._setting
        return scale.FragmentScales(self._codes[begin:end], setting.workers, setting.bits)


class DescriptionExchange(Reduction):
    """What all workers reduce, each in the lanes of its worker; `own` has marks that differ."""

    _ahead = 0

    def __init__(self, begin: int, own: Reduction, setting: StreamSettings) -> None:
        lanes = np.zeros((setting.workers, _BITS.itemsize // _NUMBER.itemsize), dtype=np.int32)
        lanes[setting.worker] = np.array([own.about.bits], dtype=_BITS).view(_NUMBER)
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


def frames_of_floats(
    numbers: int, workers: int, slots: int, bits: int = scale.PRECISE, lanes: int = WIDTHS[-1]
) -> tuple[int, int]:
    """Return the frames that carry that many floats, and their bytes, each way."""
    full, rest = divmod(numbers, scale.numbers_of(bits, lanes))
    window = min(full + (rest > 0), slots // 2)
    codes = -(-window // scale.first_groups(window, workers, lanes)) - 1
    ahead = [_MARK, *[workers * -(-codes // _NUMBER.itemsize)] * (codes > 0)]
    sent = [*ahead, *[lanes] * full, *[-(-rest * bits // 32)] * (rest > 0)]
    return len(sent), sum(feature_frame_bytes(-(-each // _MARK) * _MARK) for each in sent)


def check_tensor(values: NDArray[Any]) -> None:
    """Raise FeatureError for a tensor of a shape or type that cannot be reduced."""
    if values.ndim != 1 or not values.flags.c_contiguous:
        raise FeatureError(
            f"The tensor to reduce has shape {values.shape} and strides {values.strides}: hand in "
            "one contiguous dimension."
        )
    if values.dtype not in (np.float32, np.int32):
        raise FeatureError(f"Tensors of {values.dtype} cannot be reduced: use float32 or int32.")
