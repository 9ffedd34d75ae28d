# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What is read from a result: numbers to draw and compare, and series over time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.wire.header import FEATURE_FRAME_BYTES
from switchgnn.lab.simulator import overlapped_seconds

Result = Mapping[str, Any]
# The time of an exchange is cut into at most this many pieces, each with its own throughput.
_PIECES = 64
_BITS = 8


@dataclass(frozen=True)
class Measure:
    """A number of a result.

    Attributes:
        axis: its label.
        unit: the number is divided by it.
        key: in the result.
    """

    axis: str
    unit: float
    key: str


MEASURES: Mapping[str, Measure] = {
    "epoch": Measure("epoch time (ms)", 1e-3, "epoch_seconds"),
    "communication": Measure("communication (ms)", 1e-3, "communication_seconds"),
    "traffic": Measure("traffic volume (MB)", 1e6, "bytes"),
    "crossings": Measure("traffic between leaves and spines (MB)", 1e6, "leaf_spine_bytes"),
    "queue": Measure("max. queue length (MB)", 1e6, "max_queue_bytes"),
    "throughput": Measure("aggregation throughput (Gbit/s)", 1e9, "aggregation_bits_per_second"),
}
EPOCH, COMPUTE = "epoch", "compute_seconds"


def value_of(measure: str, result: Result, compute: float = 1.0) -> float:
    """Return the number, in the unit of its axis."""
    one = MEASURES[measure]
    number = float(result[one.key])
    if measure == EPOCH:
        number += _longer_epoch(result, compute)
    return number / one.unit


def _longer_epoch(result: Result, compute: float) -> float:
    """Return what an epoch takes more when computing is multiplied; bins may hide some of that."""
    once, communication = float(result[COMPUTE]), float(result[MEASURES["communication"].key])
    hidden = [
        overlapped_seconds(each, communication, result["bins"]) for each in (once, compute * once)
    ]
    return (compute - 1) * once + hidden[0] - hidden[1]


def bound_of(result: Result) -> float:
    """Return what the busiest link takes for an epoch, in the unit of the axis."""
    seconds = float(result["layers"]) * float(result["busiest_link_seconds"])
    return seconds / MEASURES["communication"].unit


Curve = tuple[NDArray[np.float64], NDArray[np.float64]]


def _times(result: Result) -> NDArray[np.float64]:
    return np.array(result["series"]["seconds"], dtype=np.float64) * 1e3


def _counted(result: Result, *names: str) -> Curve:
    """Gbit/s of frames that have been counted under these names, piece by piece."""
    times = _times(result)
    count = np.sum([np.array(result["series"][name], dtype=np.float64) for name in names], axis=0)
    if len(times) < 2:
        return times, np.zeros_like(times)
    ends = np.linspace(times[0], times[-1], min(_PIECES, len(times) - 1) + 1)
    rate = np.diff(np.interp(ends, times, count)) / np.diff(ends)
    return (ends[1:] + ends[:-1]) / 2, rate * FEATURE_FRAME_BYTES * _BITS * 1e3 / 1e9


def _slot_bytes(result: Result) -> float:
    return float(result["memory_bytes"]) / max(1, int(result["slots"]))


# By name: (label of the axis, milliseconds and values).
OVER_TIME: Mapping[str, tuple[str, Callable[[Result], Curve]]] = {
    "throughput": ("sums (solid), all (dotted), Gbit/s", lambda it: _counted(it, "sums")),
    "slots": (
        "occupied aggregators (MB)",
        lambda it: (_times(it), np.array(it["series"]["slots"]) * _slot_bytes(it) / 1e6),
    ),
    "queue": (
        "queue length (MB)",
        lambda it: (_times(it), np.array(it["series"]["queue_bytes"], dtype=np.float64) / 1e6),
    ),
}


def total_throughput(result: Result) -> Curve:
    """Return the rate of sums and of features that found no slot, as OVER_TIME has the sums."""
    return _counted(result, "sums", "overflowed")


@dataclass(frozen=True)
class Spread:
    """A number, and what other seeds have.

    Attributes:
        mean: of all seeds.
        least, most: of them.
    """

    mean: float
    least: float
    most: float


def spread_of(values: Sequence[float]) -> Spread:
    """Return mean, least and most of at least one value."""
    return Spread(sum(values) / len(values), min(values), max(values))
