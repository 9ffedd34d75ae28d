"""Metrics over HTTP: the server for Prometheus, and a client."""

import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from switchgnn.base.errors import SwitchGNNError

# Numbers by metric and its labels' values after slashes, as in `link_bytes_total/up`.
Values = Mapping[str, float]
# The description of each metric, and the names of its labels.
Described = Mapping[str, tuple[str, ...]]

_LAST_PORT = 65_535
_PATH = "/metrics"
_MOST_BYTES = 1 << 18


class MetricsError(SwitchGNNError):
    """Metrics cannot be served or read."""


def families(
    prefix: str, owner: str, described: Described, values: Mapping[str, Values]
) -> list[CounterMetricFamily | GaugeMetricFamily]:
    """Return the metrics of several owners for Prometheus.

    `owner` is the first label of all metrics, and `values` has the numbers of each owner; metrics
    whose names end with `_total` are counters.
    """
    found: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
    for whose, numbers in values.items():
        for key, number in numbers.items():
            name, *of = key.split("/")
            if name not in found:
                kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
                text, *labels = described[name]
                found[name] = kind(f"{prefix}{name}", text, labels=[owner, *labels])
            found[name].add_metric([whose, *of], number)
    return list(found.values())


def parse_address(text: str) -> tuple[str, int]:
    """Parse PORT (on loopback) or ADDRESS:PORT into address and port."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > _LAST_PORT or text.startswith(":"):
        raise MetricsError(
            f"Metrics cannot be served on {text!r}: write a PORT up to {_LAST_PORT}, or "
            "ADDRESS:PORT."
        )
    return host.strip("[]") or "127.0.0.1", int(port)


@contextmanager
def serve_metrics(collector: Collector, host: str, port: int) -> Iterator[int]:
    """Serve metrics over HTTP during the block; yield the port, a free one for 0.

    `collector` is asked in threads of the server.
    """
    registry = CollectorRegistry()
    registry.register(collector)
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


def ask_metrics(host: str, port: int, *, seconds: float = 1.0) -> str:
    """Return the metrics served at an address or a name, as text.

    Raises:
        MetricsError: there is no answer with status 200, its end is missing, it is longer than
            256 KiB, or it takes longer than `seconds`.
    """
    end, body = time.monotonic() + seconds, b""
    try:
        with closing(HTTPConnection(host, port, timeout=seconds)) as asked:
            asked.request("GET", _PATH)
            answer = asked.getresponse()
            if answer.status != HTTPStatus.OK:
                raise MetricsError(f"{host}:{port} answers with status {answer.status}.")
            while len(body) <= _MOST_BYTES and (part := answer.read1(_MOST_BYTES)):
                body += part
                if time.monotonic() > end:
                    raise MetricsError(f"The answer of {host}:{port} takes too long.")
            if answer.length or len(body) > _MOST_BYTES:
                raise MetricsError(f"The answer of {host}:{port} is incomplete or too long.")
            return body.decode("utf-8", "replace")
    except (OSError, UnicodeError, HTTPException) as error:
        raise MetricsError(f"No metrics are served on {host}:{port}: {error}.") from None
