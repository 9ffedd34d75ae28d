"""Records the queues of a switch while something runs, and draws them."""

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np

from switchgnn.base.errors import SwitchGNNError
from switchgnn.controller import Counters, P4RuntimeClient, read_counters

_INTERVAL = 0.05


@dataclass(frozen=True)
class QueueTrace:
    """The queues that packets found, over time."""

    seconds: tuple[float, ...]  # the end of each interval, from the first packet counted
    longest: tuple[int, ...]  # the longest queue found in each interval, in packets
    # packets by the length of the queue that they found, over all intervals
    packets: tuple[int, ...]

    def share_above(self, threshold: int) -> float:
        """Return the share of packets that found more than ``threshold`` packets."""
        return sum(self.packets[threshold + 1 :]) / max(1, sum(self.packets))


class QueueWatch:
    """Reads a switch's queue counters repeatedly, in a thread. Use it as a context manager."""

    def __init__(self, grpc_address: str) -> None:
        self._address = grpc_address
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._samples: list[tuple[float, Counters]] = []

    def __enter__(self) -> "QueueWatch":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def trace(self) -> QueueTrace:
        """Return what was recorded."""
        cells = np.array([counters.port_queue for _, counters in self._samples], dtype=np.int64)
        times = np.array([moment for moment, _ in self._samples])
        if len(cells) < 2:
            return QueueTrace((), (), ())
        found = np.diff(cells, axis=0)
        busy = found.sum(axis=1) > 0
        found, times = found[busy], times[1:][busy]
        lengths = np.arange(found.shape[1])
        longest = np.where(found > 0, lengths, 0).max(axis=1)
        return QueueTrace(
            tuple(float(moment) for moment in times - (times[0] if len(times) else 0.0)),
            tuple(int(length) for length in longest),
            tuple(int(number) for number in found.sum(axis=0)),
        )

    def _watch(self) -> None:
        while not self._stop.wait(_INTERVAL):
            try:
                with P4RuntimeClient(self._address, primary=False) as client:
                    while not self._stop.wait(_INTERVAL):
                        self._samples.append((time.monotonic(), read_counters(client)))
            except SwitchGNNError:
                continue  # it does not serve yet, or no longer


def draw(traces: dict[str, QueueTrace], threshold: int, path: Path) -> None:
    """Draw the longest queue over time, one curve for each name, as a picture."""
    from matplotlib.figure import Figure  # noqa: PLC0415  only drawing needs it

    figure = Figure(figsize=(8, 2.6 * len(traces)), layout="constrained")
    axes = figure.subplots(len(traces), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axis, (name, trace) in zip(axes, traces.items(), strict=True):
        axis.plot(trace.seconds, trace.longest, linewidth=1, color="tab:blue")
        axis.axhline(threshold, linestyle="--", linewidth=1, color="tab:red")
        axis.annotate("ECN threshold", (0, threshold + 1), color="tab:red", fontsize=8)
        if trace.seconds:
            axis.axvline(trace.seconds[-1], linewidth=1, color="black")
        over = trace.share_above(threshold)
        axis.set_title(f"{name}: {over:.1%} of packets above the threshold", fontsize=10)
        axis.set_ylabel("packets waiting")
        axis.set_ylim(0, 68)
    axes[-1].set_xlabel("seconds; the black line is the end of the exchange")
    figure.savefig(path, dpi=120)
