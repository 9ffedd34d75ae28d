# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker has told Prometheus, read again by who looks on. It may come from anybody."""

import math
import re
from collections.abc import Iterator

from switchgnn.base.metrics import MetricsError
from switchgnn.host.metrics import LABELS, PREFIX

_LABEL = r'[a-z]{1,16}="[a-z0-9_]{0,32}"'
# A line of ours; whatever else there is, is of somebody else.
_LINE = re.compile(rf"{PREFIX}[a-z_]{{1,64}}\{{{_LABEL}(?:,{_LABEL}){{0,3}}\}} [-+.0-9e]{{1,32}}")
_MOST_LINES = 256
_MOST = 2.0**63


def told_values(text: str, worker: int) -> dict[str, float]:
    """Return the values of a worker's metrics, as ``metric_values`` does.

    Args:
        text: what it serves.
        worker: who it must be.

    Returns:
        Each by its name; lines that are none of ours, or have no number that can be, are left out.

    Raises:
        MetricsError: it is none of a worker, or of another one.
    """
    found = {}
    for name, labels, value in _samples(text):
        if labels.pop(LABELS[0], None) != str(worker):
            raise MetricsError(f"These are not the metrics of worker {worker}.")
        if labels.keys() <= set(LABELS) and math.isfinite(value) and 0 <= value < _MOST:
            # Prometheus has labels in no order.
            words = [labels[label] for label in LABELS if label in labels]
            found["/".join((name.removeprefix(PREFIX), *words))] = value
    if not found:
        raise MetricsError(f"There are no metrics of worker {worker}.")
    return found


def _samples(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415

    lines = [line for line in text.splitlines() if _LINE.fullmatch(line)][:_MOST_LINES]
    try:
        for family in text_string_to_metric_families("\n".join(lines)):
            for sample in family.samples:
                yield sample.name, dict(sample.labels), float(sample.value)
    except (ValueError, OverflowError) as error:
        raise MetricsError(f"These are no metrics: {error}.") from None
