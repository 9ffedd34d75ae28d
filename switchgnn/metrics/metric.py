# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics as plain values, by Prometheus' conventions."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class MetricKind(Enum):
    """What a number does: a counter only grows, until what counts begins anew."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True)
class Histogram:
    """How often what was measured had which value.

    Attributes:
        buckets: ascending upper bounds as text, the last one ``+Inf``, and how many were at
            most that.
        total: the sum of all that was measured.
    """

    buckets: Sequence[tuple[str, float]]
    total: float


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes:
        name: by Prometheus' conventions; a counter's ends with ``_total``.
        kind: what its numbers do.
        text: what it is, in words.
        labels: the names of its labels.
        samples: the values of the labels, in order, and the number.
    """

    name: str
    kind: MetricKind
    text: str
    labels: tuple[str, ...]
    samples: Sequence[tuple[tuple[str, ...], float | Histogram]]
