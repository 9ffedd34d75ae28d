"""A worker's counters as metrics, for Prometheus and for the parent process."""

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from switchgnn.base.metrics import Metric, MetricKind, MetricsError, serve_metrics, values_by_name
from switchgnn.base.tasks import EventWriter, repeating
from switchgnn.host.status import ExchangeStatus
from switchgnn.host.transport import Transport

# The event that has all values of a worker's metrics.
METRICS_EVENT = "metrics"
# The common prefix of the names, and their labels.
PREFIX = "switchgnn_worker_"
LABELS = ("worker", "way", "kind")
_WORKER = LABELS[:1]
_DIRECTIONS = ("up", "down")


def metrics_address(first: tuple[str, int], worker: int) -> str:
    """Return where a worker serves its metrics; `first`: that of worker 0, port 0 for any."""
    host, port = first
    return f"{host}:{port and port + worker}"


@dataclass(frozen=True)
class WorkerView:
    """The observable state of a worker.

    `seconds`: returns the seconds of exchanges, and those of them without computation; None if they
    are not measured.
    """

    worker: int
    transport: Transport
    seconds: Callable[[], tuple[float, float]] | None = None

    def metrics(self) -> Iterator[Metric]:
        """Yield the current values."""
        traffic = self.transport.traffic
        up_down = (traffic.frames_up, traffic.frames_down), (traffic.bytes_up, traffic.bytes_down)
        for what, counts in zip(("frames", "bytes"), up_down, strict=True):
            yield Metric(
                f"{PREFIX}link_{what}_total",
                MetricKind.COUNTER,
                f"{what.capitalize()} on the worker's link.",
                LABELS[:2],
                [
                    ((str(self.worker), direction), float(count))
                    for direction, count in zip(_DIRECTIONS, counts, strict=True)
                ],
            )
        if injected := self.transport.injected():
            yield Metric(
                f"{PREFIX}injected_faults_total",
                MetricKind.COUNTER,
                "Frames that met a fault on purpose.",
                LABELS,
                [
                    ((str(self.worker), direction, kind), float(count))
                    for direction, counts in injected.items()
                    for kind, count in asdict(counts).items()
                ],
            )
        if (status := self.transport.status) is not None:
            yield from self._of_exchange(status)
        if self.seconds is not None:
            exchanging, waiting = self.seconds()
            yield self._one(
                "exchange_seconds_total", "Time in which sums were exchanged.", exchanging
            )
            yield self._one(
                "waiting_seconds_total", "Part of it in which nothing else was done.", waiting
            )

    def _of_exchange(self, status: ExchangeStatus) -> Iterator[Metric]:
        yield self._one("rounds_total", "Completed exchanges.", status.rounds)
        yield self._one("blocks_total", "Completed fragments of blocks.", status.blocks)
        yield self._one("window_features", "Features that may be in flight.", status.window)
        yield self._one("exchanging", "Whether an exchange is under way.", status.exchanging)
        yield self._one("barrier_seconds_total", "Time spent waiting at barriers.", status.stalled)
        for name, count in asdict(status.counters).items():
            yield self._one(
                f"{name}_total", f"The worker's counter: {name.replace('_', ' ')}.", count
            )

    def _one(self, name: str, text: str, value: float) -> Metric:
        kind = MetricKind.COUNTER if name.endswith("_total") else MetricKind.GAUGE
        samples = [((str(self.worker),), float(value))]
        return Metric(f"{PREFIX}{name}", kind, text, _WORKER, samples)


@contextmanager
def serving_metrics(address: str, view: WorkerView) -> Iterator[None]:
    """Serve a worker's metrics while the block runs."""
    if not address:
        yield
        return
    host, _, port = address.rpartition(":")
    with serve_metrics(lambda: list(view.metrics()), host, int(port)):
        yield


def metric_values(view: WorkerView) -> dict[str, float]:
    """Return all values of a worker's metrics, as `values_by_name`."""
    return values_by_name(view.metrics(), PREFIX)


@contextmanager
def telling_metrics(events: EventWriter, every: float, view: WorkerView) -> Iterator[None]:
    """Report a worker's metrics to the parent process while the block runs.

    `every`: seconds between two events, with one more at the end; 0: none at all.
    """
    if not every:
        yield
        return

    def send() -> None:
        events.write(METRICS_EVENT, values=metric_values(view))

    send()
    with repeating(send, every, "metrics"):
        yield
    send()


_LABEL = r'[a-z]{1,16}="[a-z0-9_]{0,32}"'
# A line with one of these metrics.
_LINE = re.compile(rf"{PREFIX}[a-z_]{{1,64}}\{{{_LABEL}(?:,{_LABEL}){{0,3}}\}} [-+.0-9e]{{1,32}}")
_MOST_LINES = 256
_MOST = 2.0**63


def told_values(text: str, worker: int) -> dict[str, float]:
    """Parse a worker's metrics, as ``metric_values`` returns them; skip foreign lines."""
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
