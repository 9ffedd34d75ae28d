# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The server that Prometheus reads metrics from."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from switchgnn.errors import SwitchGNNError
from switchgnn.machine.installation import how_to_install
from switchgnn.metrics.metric import Histogram, Metric, MetricKind

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

_COUNTER_ENDS_WITH = "_total"
_LAST_PORT = 65_535


class MetricsError(SwitchGNNError):
    """Metrics cannot be served."""


Collect = Callable[[], Iterable[Metric]]


def parse_place(text: str) -> tuple[str, int]:
    """Read where to listen: PORT on the loopback interface, or ADDRESS:PORT.

    Args:
        text: what a user has written.

    Returns:
        The address and the port.

    Raises:
        MetricsError: it is something else.
    """
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > _LAST_PORT or text.startswith(":"):
        raise MetricsError(
            f"Metrics cannot be served on {text!r}: write a PORT up to {_LAST_PORT}, or "
            "ADDRESS:PORT."
        )
    return host.strip("[]") or "127.0.0.1", int(port)


def check_installed() -> None:
    """See to it that metrics can be served, before anything else is begun.

    Raises:
        MetricsError: the package for it is missing.
    """
    try:
        import prometheus_client  # noqa: F401, PLC0415
    except ImportError:
        raise MetricsError(
            f"Metrics need the package prometheus_client: {how_to_install('metrics')}."
        ) from None


@contextmanager
def serve_metrics(collect: Collect, host: str, port: int) -> Iterator[int]:
    """Serve metrics over HTTP, as long as the block runs.

    Args:
        collect: reads them; called in a thread of the server, whenever somebody asks.
        host: the address to listen on.
        port: 0: any that is free.

    Yields:
        The port.

    Raises:
        MetricsError: nobody can listen there, or the package for it is missing.
    """
    check_installed()
    from prometheus_client import CollectorRegistry, start_http_server  # noqa: PLC0415

    registry = CollectorRegistry()
    registry.register(_Collector(collect))
    try:
        server, thread = start_http_server(port, addr=host, registry=registry)
    except (OSError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise MetricsError(
            f"Metrics cannot be served on {host}:{port}: {why}; stop what uses it, or choose "
            "another port."
        ) from None
    try:
        yield int(server.server_port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Collector:
    """What prometheus_client asks; it looks for these two methods."""

    def __init__(self, collect: Collect) -> None:
        self._collect = collect

    def describe(self) -> "list[Family]":
        """Say nothing: otherwise everything would be read for it."""
        return []

    def collect(self) -> "Iterator[Family]":
        """Read everything."""
        return map(_family, self._collect())


def _family(metric: Metric) -> "Family":
    from prometheus_client.core import (  # noqa: PLC0415
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )

    family: Any
    if metric.kind is MetricKind.COUNTER:
        name = metric.name.removesuffix(_COUNTER_ENDS_WITH)
        family = CounterMetricFamily(name, metric.text, labels=metric.labels)
    elif metric.kind is MetricKind.GAUGE:
        family = GaugeMetricFamily(metric.name, metric.text, labels=metric.labels)
    else:
        family = HistogramMetricFamily(metric.name, metric.text, labels=metric.labels)
    for labels, value in metric.samples:
        if isinstance(value, Histogram):
            family.add_metric(labels, list(value.buckets), value.total)
        else:
            family.add_metric(labels, value)
    found: Family = family
    return found
