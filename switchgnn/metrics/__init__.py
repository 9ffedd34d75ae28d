# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What Prometheus is told: metrics as plain values, and the server that it reads them from.

Nothing is counted for it. What there is is read when Prometheus asks.
"""

from switchgnn.metrics.ask import NoAnswerError, ask_metrics
from switchgnn.metrics.metric import Histogram, Metric, MetricKind
from switchgnn.metrics.server import MetricsError, check_installed, parse_place, serve_metrics

__all__ = [
    "Histogram",
    "Metric",
    "MetricKind",
    "MetricsError",
    "NoAnswerError",
    "ask_metrics",
    "check_installed",
    "parse_place",
    "serve_metrics",
]
