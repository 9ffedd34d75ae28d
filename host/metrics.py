# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker counts while it exchanges, for Prometheus.

Nothing is counted for it: what the exchange counts anyway is read when Prometheus asks.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from switchgnn.host.innetwork.exchange import InNetworkExchange
from switchgnn.host.wire.link import Traffic
from switchgnn.metrics import Metric, MetricKind, serve_metrics

_WORKER = ("worker",)
_WAYS = ("up", "down")


def metrics_place(place: tuple[str, int], worker: int) -> str:
    """Return where a worker serves its metrics, as its task has it.

    Args:
        place: the address, and the port of worker 0; port 0: any that is free.
        worker: its number.

    Returns:
        ``ADDRESS:PORT``.
    """
    host, port = place
    return f"{host}:{port and port + worker}"


@dataclass(frozen=True)
class WorkerView:
    """What can be seen of a worker.

    Attributes:
        worker: its number.
        traffic: returns what has passed its link.
        exchange: its exchange over the switch; None where hosts exchange alone.
        seconds: returns the seconds of exchanges, and those of them in which the worker could do
            nothing else; None where nobody measures them.
    """

    worker: int
    traffic: Callable[[], Traffic]
    exchange: InNetworkExchange | None = None
    seconds: Callable[[], tuple[float, float]] | None = None

    def metrics(self) -> Iterator[Metric]:
        """Yield what is known now."""
        traffic = self.traffic()
        ways = ((traffic.frames_up, traffic.bytes_up), (traffic.frames_down, traffic.bytes_down))
        for place, what in enumerate(("frames", "bytes")):
            yield Metric(
                f"switchgnn_worker_link_{what}_total",
                MetricKind.COUNTER,
                f"{what.capitalize()} on the worker's link.",
                (*_WORKER, "way"),
                [
                    ((str(self.worker), way), float(counts[place]))
                    for way, counts in zip(_WAYS, ways, strict=True)
                ],
            )
        if self.exchange is not None:
            yield from self._of_exchange(self.exchange)
        if self.seconds is not None:
            exchanging, waiting = self.seconds()
            yield self._one(
                "exchange_seconds_total", "Time in which sums were exchanged.", exchanging
            )
            yield self._one(
                "waiting_seconds_total", "Part of it in which nothing else was done.", waiting
            )

    def _of_exchange(self, exchange: InNetworkExchange) -> Iterator[Metric]:
        standing = exchange.standing
        yield self._one("rounds_total", "Exchanges that are complete.", standing.rounds)
        yield self._one("blocks_total", "Fragments of blocks that are complete.", standing.blocks)
        yield self._one("window_features", "Features that may be in flight.", standing.window)
        for name, count in asdict(exchange.tally).items():
            words = name.replace("_", " ")
            yield self._one(f"{name}_total", f"As the worker's tally counts: {words}.", count)

    def _one(self, name: str, text: str, value: float) -> Metric:
        kind = MetricKind.COUNTER if name.endswith("_total") else MetricKind.GAUGE
        samples = [((str(self.worker),), float(value))]
        return Metric(f"switchgnn_worker_{name}", kind, text, _WORKER, samples)


@contextmanager
def serving_metrics(place: str, view: WorkerView) -> Iterator[None]:
    """Serve what can be seen of a worker, as long as the block runs.

    Args:
        place: ``ADDRESS:PORT``; empty: nobody asked for metrics.
        view: the worker.

    Yields:
        Once they are served.

    Raises:
        MetricsError: nobody can listen there.
    """
    if not place:
        yield
        return
    host, _, port = place.rpartition(":")
    with serve_metrics(lambda: list(view.metrics()), host, int(port)):
        yield
