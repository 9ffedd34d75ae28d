"""A worker's counters as metrics, for Prometheus and for the parent process."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from itertools import islice

from prometheus_client import Metric

from switchgnn.base.metrics import MetricsError, families, serve_metrics
from switchgnn.base.tasks import EventWriter, repeating
from switchgnn.host.base.status import InNetworkCounters
from switchgnn.host.links.transport import Transport

# The event that has all values of a worker's metrics.
METRICS_EVENT = "metrics"
_PREFIX = "switchgnn_worker_"
_OWNER = "worker"
# Metrics, with the names of their labels besides `worker`.
_DESCRIBED = {
    "link_frames_total": ("Frames on the worker's link.", "way"),
    "link_bytes_total": ("Bytes on the worker's link.", "way"),
    "injected_faults_total": ("Frames that met a fault on purpose.", "way", "kind"),
    "rounds_total": ("Completed exchanges.",),
    "blocks_total": ("Completed fragments of blocks.",),
    "window_features": ("Features that may be in flight.",),
    "exchanging": ("Whether an exchange is under way.",),
    "barrier_seconds_total": ("Time spent waiting at barriers.",),
    "exchange_seconds_total": ("Time in which sums were exchanged.",),
    "waiting_seconds_total": ("Part of it in which nothing else was done.",),
    "path_share": ("Share of the plan's blocks that take a path.", "kind"),
    "path_changes_total": ("Changes of paths.",),
    **{
        f"{each.name}_total": (f"The worker's counter: {each.name.replace('_', ' ')}.",)
        for each in fields(InNetworkCounters)
    },
}


def metrics_address(first: tuple[str, int], worker: int) -> str:
    """Return where a worker serves its metrics; `first`: that of worker 0, port 0 for any."""
    host, port = first
    return f"{host}:{port and port + worker}"


@dataclass(frozen=True)
class WorkerView:
    """The observable state of a worker.

    `seconds`: returns the seconds of exchanges, and those of them without computation; None if they
    are not measured. `paths`: returns the metrics of paths; None if these do not change.
    """

    worker: int
    transport: Transport
    seconds: Callable[[], tuple[float, float]] | None = None
    paths: Callable[[], dict[str, float]] | None = None

    def values(self) -> dict[str, float]:
        """Return the current values."""
        traffic, status = self.transport.traffic, self.transport.status
        found: dict[str, float] = {
            "link_frames_total/up": traffic.frames_up,
            "link_frames_total/down": traffic.frames_down,
            "link_bytes_total/up": traffic.bytes_up,
            "link_bytes_total/down": traffic.bytes_down,
        }
        for way, faults in self.transport.injected().items():
            for kind, count in asdict(faults).items():
                found[f"injected_faults_total/{way}/{kind}"] = count
        if status is not None:
            found |= {
                "rounds_total": status.rounds,
                "blocks_total": status.blocks,
                "window_features": status.window,
                "exchanging": float(status.exchanging),
                "barrier_seconds_total": status.stalled,
                **{f"{name}_total": count for name, count in vars(status.counters).items()},
            }
        if self.seconds is not None:
            found["exchange_seconds_total"], found["waiting_seconds_total"] = self.seconds()
        if self.paths is not None:
            found |= self.paths()
        return found

    def collect(self) -> Iterable[Metric]:
        """Return the current values for Prometheus."""
        return families(_PREFIX, _OWNER, _DESCRIBED, {str(self.worker): self.values()})


@contextmanager
def serving_metrics(address: str, view: WorkerView) -> Iterator[None]:
    """Serve a worker's metrics while the block runs."""
    if not address:
        yield
        return
    host, _, port = address.rpartition(":")
    with serve_metrics(view, host, int(port)):
        yield


@contextmanager
def telling_metrics(events: EventWriter, every: float, view: WorkerView) -> Iterator[None]:
    """Report a worker's metrics to the parent process while the block runs.

    `every`: seconds between two events, with one more at the end; 0: none at all.
    """
    if not every:
        yield
        return

    def send() -> None:
        events.write(METRICS_EVENT, values=view.values())

    send()
    with repeating(send, every, "metrics"):
        yield
    send()


_LABEL = r'(?:worker|way|kind)="[a-z0-9_]{0,32}"'
_NUMBER = r"\d{1,20}(?:\.\d{1,20})?(?:e[-+]?\d{1,2})?"
# A line with one of these metrics: its name, labels and value.
_LINE = re.compile(rf"{_PREFIX}([a-z_]{{1,64}})\{{({_LABEL}(?:,{_LABEL}){{0,2}})\}} ({_NUMBER})")
_MOST_LINES, _MOST = 256, 2.0**63


def told_values(text: str, worker: int) -> dict[str, float]:
    """Parse a worker's metrics, as ``WorkerView.values`` returns them; skip foreign lines."""
    lines = filter(None, map(_LINE.fullmatch, text.splitlines()))
    found = {}
    for name, labelled, number in (line.groups() for line in islice(lines, _MOST_LINES)):
        labels = dict(each[:-1].split('="') for each in labelled.split(","))
        if labels.get(_OWNER) != str(worker):
            raise MetricsError(f"These are not the metrics of worker {worker}.")
        # Prometheus has labels in no order.
        words = [labels[each] for each in ("way", "kind") if each in labels]
        if (value := float(number)) < _MOST:
            found["/".join((name, *words))] = value
    if not found:
        raise MetricsError(f"There are no metrics of worker {worker}.")
    return found
