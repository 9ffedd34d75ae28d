"""Metrics over HTTP: the server for Prometheus, and a client."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.machine import how_to_install

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family


class MetricKind(Enum):
    """The type of a metric; counters only grow until a restart."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True)
class Histogram:
    """A histogram."""

    # ascending upper bounds as text, the last `+Inf`, with cumulative counts
    buckets: Sequence[tuple[str, float]]
    total: float  # the sum of all values


@dataclass(frozen=True)
class Metric:
    """One metric."""

    name: str  # by Prometheus' conventions; a counter's ends with `_total`
    kind: MetricKind
    text: str  # its description
    labels: tuple[str, ...]  # the names of its labels
    samples: Sequence[tuple[tuple[str, ...], float | Histogram]]  # pairs of label values and number


def values_by_name(metrics: Iterable[Metric], prefix: str) -> dict[str, float]:
    """Return all values but histograms by name.

    Names lack the prefix; values of labels other than the first, which says whose they are, follow
    after slashes, as in ``link_bytes_total/up``.
    """
    return {
        "/".join((metric.name.removeprefix(prefix), *labels[1:])): value
        for metric in metrics
        for labels, value in metric.samples
        if not isinstance(value, Histogram)
    }


_LAST_PORT = 65_535


class MetricsError(SwitchGNNError):
    """Metrics cannot be served."""


Collect = Callable[[], Iterable[Metric]]


def parse_address(text: str) -> tuple[str, int]:
    """Parse PORT (on loopback) or ADDRESS:PORT into address and port."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > _LAST_PORT or text.startswith(":"):
        raise MetricsError(
            f"Metrics cannot be served on {text!r}: write a PORT up to {_LAST_PORT}, or "
            "ADDRESS:PORT."
        )
    return host.strip("[]") or "127.0.0.1", int(port)


def check_installed() -> None:
    """Raise MetricsError if prometheus_client is missing."""
    try:
        import prometheus_client  # noqa: F401, PLC0415
    except ImportError:
        raise MetricsError(
            f"Metrics need the package prometheus_client: {how_to_install('metrics')}."
        ) from None


@contextmanager
def serve_metrics(collect: Collect, host: str, port: int) -> Iterator[int]:
    """Serve metrics over HTTP during the block; yield the port, a free one for 0.

    `collect` is called in threads of the server.
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
    """The interface of collectors in prometheus_client."""

    def __init__(self, collect: Collect) -> None:
        self._collect = collect

    def describe(self) -> "list[Family]":
        """Return nothing, so that registration does not collect."""
        return []

    def collect(self) -> "Iterator[Family]":
        """Collect all metrics."""
        return map(_family, self._collect())


def _family(metric: Metric) -> "Family":
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily  # noqa: PLC0415

    kinds: dict[MetricKind, Any] = {
        MetricKind.COUNTER: CounterMetricFamily,
        MetricKind.GAUGE: GaugeMetricFamily,
        MetricKind.HISTOGRAM: HistogramMetricFamily,
    }
    family = kinds[metric.kind](metric.name, metric.text, labels=metric.labels)
    for labels, value in metric.samples:
        if isinstance(value, Histogram):
            family.add_metric(labels, list(value.buckets), value.total)
        else:
            family.add_metric(labels, value)
    found: Family = family
    return found


_PATH = "/metrics"
_CHUNK = 1 << 16


class NoAnswerError(MetricsError):
    """No answer, or something other than metrics."""


def ask_metrics(host: str, port: int, *, seconds: float = 1.0, most_bytes: int = 1 << 18) -> str:
    """Return the metrics served at an address or a name, as text.

    NoAnswerError if there is no answer, or one that is late (`seconds` after the name is resolved),
    too long, or not status 200.
    """
    end = time.monotonic() + seconds
    address = f"{host}:{port}"
    body = bytearray()
    asked = HTTPConnection(host, port, timeout=seconds)
    try:
        asked.request("GET", _PATH)
        answer = asked.getresponse()
        if answer.status != HTTPStatus.OK:
            raise NoAnswerError(f"{address} answers with status {answer.status}.")
        while chunk := answer.read1(_CHUNK):
            body += chunk
            if len(body) > most_bytes:
                raise NoAnswerError(f"{address} answers with more than {most_bytes} bytes.")
            if time.monotonic() > end:
                raise NoAnswerError(f"The answer of {address} takes too long.")
        if answer.length:
            raise NoAnswerError(f"The connection to {address} closes before the end of the answer.")
    except (OSError, UnicodeError, HTTPException) as error:
        raise NoAnswerError(f"No metrics are served on {address}: {error}.") from None
    finally:
        asked.close()
    return body.decode("utf-8", "replace")
