"""A worker process of `switchgnn run`: one worker's exchanges, round after round.

It reports to its parent as JSON lines on standard output and leaves its sums in
files. It reads only its own part of the plan and its own features.
"""

import time
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

import numpy as np

from switchgnn.base.array_types import Float32s
from switchgnn.base.arrays import ArrayKind, pack_arrays, read_arrays
from switchgnn.base.files import writing
from switchgnn.base.tasks import EventWriter, run_task
from switchgnn.host.base.operations import Operation
from switchgnn.host.base.pace import Pace
from switchgnn.host.direct.framing import fragments_of
from switchgnn.host.innetwork.exchange import InNetworkExchange
from switchgnn.host.innetwork.fixed_point import FixedSums
from switchgnn.host.links.transport import LinkConfig, WorkerEnd
from switchgnn.host.metrics import WorkerView, serving_metrics, telling_metrics
from switchgnn.host.paths.transport import open_in_network, open_switch
from switchgnn.planner import Direction, Manifest, read_manifest


def features_of_round(features: Float32s, index: int) -> Float32s:
    """Return the features of round `index`, from 0: small ones grow with it, large ones shrink."""
    scale = np.float32((-1) ** index * (1 + index / 4))
    rows = np.roll(features, index, axis=1)
    return np.ascontiguousarray(rows * np.where(np.abs(rows) < 1e30, scale, np.float32(1) / scale))


_REPORT_INTERVAL = 0.1
# The event after each complete file except the last, which ``finished`` follows.
WRITTEN = "written"
# The arrays in the file of a worker's features, and in that of its sums.
FEATURES = {"features": ArrayKind(("<f4",), (2,))}
WORKER_RESULT = {
    "fixed": ArrayKind(("<i4",), (3,)),
    "sums": ArrayKind(("<f4",), (3,)),
    "scale": ArrayKind(("<f8",)),
}


class HostKind(str, Enum):
    """The code that builds and reads a worker's packets."""

    NATIVE = "native"
    SCAPY = "scapy"


@dataclass(frozen=True)
class WorkerTask:
    """The task of one worker process."""

    # Has a plan; a schedule and stations, too, if the plan leaves destinations to hosts.
    config: LinkConfig
    features: Path  # Safetensors file, features float32[n, F] of this worker's rows only.
    rounds: int  # How many exchanges.
    # The safetensors files to write, named by `result_file`. One of R rounds holds fixed int32[R,
    # n, F] of the switch, sums float32[R, n, F] of the switch and the hosts, and scale float64[R].
    output: Path
    # How many rounds a file holds; the last one may hold fewer.
    rounds_per_file: int
    pace: Pace
    operation: Operation = Operation.SUM  # Of each exchange.
    hosts: HostKind = HostKind.NATIVE


def result_file(output: Path, number: int) -> Path:
    """Return the file with the sums of some rounds."""
    return output.with_stem(f"{output.stem}-{number}")


def steps_of(manifest: Manifest, width: int, rounds: int) -> int:
    """Count the fragments of blocks in some forward exchanges, at least one per exchange."""
    blocks = len(manifest.direction(Direction.FORWARD).block_numbers)
    return rounds * max(1, blocks * fragments_of(width))


def run(line: str) -> None:
    """Do the task of a line of JSON: exchange and report as the module describes."""
    run_task(WorkerTask, line, _exchange)


def _exchange(task: WorkerTask, events: EventWriter) -> None:
    manifest = read_manifest(task.config.plan_folder())
    features = read_arrays(task.features, FEATURES, remedy="run again")["features"]
    progress = _Progress(events, steps_of(manifest, features.shape[1], task.rounds))
    kept: list[tuple[FixedSums, Float32s]] = []
    each: list[float] = []
    processor_seconds = 0.0
    workers, vertices = manifest.workers, len(features)
    end = WorkerEnd.of(task.config, workers=workers, vertices=vertices, pace=task.pace)
    with _open(task.hosts, end, progress) as transport:
        view = WorkerView(end.worker, transport)
        with serving_metrics(end.metrics, view), telling_metrics(events, end.tell_every, view):
            events.write("ready")
            for index in range(task.rounds):
                if len(kept) == task.rounds_per_file:
                    _write(kept, result_file(task.output, index // task.rounds_per_file - 1))
                    events.write(WRITTEN)
                    kept = []
                rows = features_of_round(features, index)
                started, worked = time.perf_counter(), time.thread_time()
                sums = transport.aggregate_fixed(rows, operation=task.operation)
                kept.append((sums, sums.decode()))
                each.append(time.perf_counter() - started)
                processor_seconds += time.thread_time() - worked
            transport.close()
        traffic = transport.traffic
        injected = {direction: asdict(counts) for direction, counts in transport.injected().items()}
    _write(kept, result_file(task.output, (task.rounds - 1) // task.rounds_per_file))
    events.write(
        "finished",
        seconds=sum(each),
        round_seconds=each,
        processor_seconds=processor_seconds,
        counters=asdict(transport.counters),
        traffic=traffic._asdict(),
        faults=injected,
    )


def _open(
    hosts: HostKind, end: WorkerEnd, progress: "_Progress"
) -> AbstractContextManager[InNetworkExchange]:
    if hosts is HostKind.NATIVE:
        return open_switch(end, on_block=progress.block_done, on_share=progress.share_done)
    # Scapy takes half a second to import.
    from switchgnn.host.scapy_host.host import ScapyHost  # noqa: PLC0415

    return open_in_network(end, ScapyHost, on_block=progress.block_done)


def _write(rounds: list[tuple[FixedSums, Float32s]], path: Path) -> None:
    with writing(path):
        arrays = {
            "fixed": np.stack([fixed.values for fixed, _ in rounds]),
            "sums": np.stack([sums for _, sums in rounds]),
            "scale": np.array([fixed.fixed_point.scale for fixed, _ in rounds]),
        }
        path.write_bytes(pack_arrays(arrays))


class _Progress:
    """Reports the completed share of all blocks, at most a few times per second."""

    def __init__(self, events: EventWriter, steps: int) -> None:
        self._events = events
        self._steps = steps
        self._done = 0
        self._reported = 0.0

    def block_done(self, round_number: int, block_id: int, fragment: int) -> None:
        self._done += 1
        self._report(self._done, round=round_number, block=block_id, fragment=fragment)

    def share_done(self, share: float) -> None:
        self._report(self._done + share)

    def _report(self, done: float, **unit: int) -> None:
        now = time.monotonic()
        if done == self._steps or now - self._reported >= _REPORT_INTERVAL:
            self._reported = now
            self._events.write("progress", done=done, steps=self._steps, **unit)
