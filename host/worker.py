# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A worker process of `switchgnn run`: one worker's exchanges, round after round.

It reports to its parent as JSON lines on standard output and leaves its sums in
files. It reads only its own part of the plan and its own features.
"""

import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.arrays import ArrayKind, pack_arrays, read_arrays
from switchgnn.base.full_disk import writing
from switchgnn.base.network import Station
from switchgnn.base.tasks import EventWriter, Heartbeat, task_from_json, task_to_json
from switchgnn.host.direct.framing import USUAL_MTU
from switchgnn.host.innetwork.exchange import InNetworkExchange
from switchgnn.host.metrics import WorkerView, serving_metrics, telling_metrics
from switchgnn.host.mixed import open_switch
from switchgnn.host.pace import Pace
from switchgnn.host.transport import WorkerEnd
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.header import fragments_of
from switchgnn.planner.direction import Direction
from switchgnn.planner.plan.files import read_manifest
from switchgnn.planner.plan.manifest import Manifest


def features_of_round(features: NDArray[np.float32], index: int) -> NDArray[np.float32]:
    """Return the features of a round by its index from 0; `features`: float32[n, F]."""
    scale = np.float32((-1) ** index * (1 + index / 4))
    return np.ascontiguousarray(np.roll(features, index, axis=1) * scale)


_REPORT_INTERVAL = 0.1
# The event after each complete file except the last, which ``finished`` follows.
WRITTEN = "written"
# The arrays of a worker's file.
# Of the file of a worker's features.
FEATURES = {"features": ArrayKind(("<f4",), (2,))}
WORKER_RESULT = {
    "fixed": ArrayKind(("<i4",), (3,)),
    "sums": ArrayKind(("<f4",), (3,)),
    "scale": ArrayKind(("<f8",)),
}


@dataclass(frozen=True)
class WorkerTask:
    """The task of one worker process.

    Attributes:
        plan: the plan folder.
        session: the number of the plan's install.
        link: ``eth:...`` or ``udp:...``.
        features: safetensors file, features float32[n, F] of this worker's rows only.
        rounds: how many exchanges.
        output: the safetensors files to write, named by ``result_file``. One of R rounds holds
            fixed int32[R, n, F] of the switch, sums float32[R, n, F] of the switch and the hosts,
            and scale float64[R].
        rounds_per_file: how many rounds a file holds; the last one may hold fewer.
        faults: the faults on its link, as for ``--faults``.
        recording: the file for the frames of its link, or None.
        metrics: ``ADDRESS:PORT`` of its metrics server; empty: none.
        tell_every: seconds between two events with its metrics; 0: none.
        schedule: the rows that it sends to other hosts, if the plan leaves destinations to them.
        stations: the addresses of all workers, for the same plans.
        mtu: of frames between hosts, as for ``Framing.parse`` of host/direct.
    """

    plan: Path
    worker: int
    session: int
    link: str
    addresses: Addresses
    features: Path
    rounds: int
    output: Path
    rounds_per_file: int
    pace: Pace
    faults: str = ""
    recording: Path | None = None
    metrics: str = ""
    tell_every: float = 0.0
    schedule: Path | None = None
    stations: tuple[Station, ...] = ()
    mtu: str = str(USUAL_MTU)

    def to_json(self) -> str:
        """Return the task as one line of JSON."""
        return task_to_json(self)

    @classmethod
    def from_json(cls, text: str) -> "WorkerTask":
        """Read what :meth:`to_json` wrote."""
        return task_from_json(cls, text)


def result_file(output: Path, number: int) -> Path:
    """Return the file with the sums of some rounds."""
    return output.with_stem(f"{output.stem}-{number}")


def steps_of(manifest: Manifest, width: int, rounds: int) -> int:
    """Count the fragments of blocks in some forward exchanges, at least one per exchange."""
    blocks = len(manifest.direction(Direction.FORWARD).block_numbers)
    return rounds * max(1, blocks * fragments_of(width))


def run_worker(task: WorkerTask) -> None:
    """Exchange and report as the module describes."""
    events = EventWriter(sys.stdout)
    with Heartbeat(events):
        _exchange(task, events)


def _exchange(task: WorkerTask, events: EventWriter) -> None:
    manifest = read_manifest(task.plan)
    features = read_arrays(task.features, FEATURES, remedy="run again")["features"]
    progress = _Progress(events, steps_of(manifest, features.shape[1], task.rounds))
    kept: list[_Round] = []
    each: list[float] = []
    processor_seconds = 0.0
    end = _end(task, workers=manifest.workers, vertices=len(features))
    with open_switch(end, on_block=progress.block_done, on_share=progress.share_done) as transport:
        view = WorkerView(task.worker, transport)
        with serving_metrics(task.metrics, view), telling_metrics(events, task.tell_every, view):
            events.write("ready")
            for index in range(task.rounds):
                if len(kept) == task.rounds_per_file:
                    _write(kept, result_file(task.output, index // task.rounds_per_file - 1))
                    events.write(WRITTEN)
                    kept = []
                rows = features_of_round(features, index)
                started, worked = time.perf_counter(), time.thread_time()
                kept.append(_round(transport, rows))
                each.append(time.perf_counter() - started)
                processor_seconds += time.thread_time() - worked
            transport.close()
        traffic = transport.traffic
        injected = {way: asdict(counts) for way, counts in transport.injected().items()}
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


@dataclass(frozen=True, eq=False)
class _Round:
    """The sums of one round."""

    fixed: NDArray[np.int32]
    sums: NDArray[np.float32]
    scale: float


def _end(task: WorkerTask, *, workers: int, vertices: int) -> WorkerEnd:
    return WorkerEnd(
        worker=task.worker,
        workers=workers,
        vertices=vertices,
        pace=task.pace,
        link=task.link,
        faults=task.faults,
        addresses=task.addresses,
        stations=task.stations,
        plan=task.plan,
        session=task.session,
        schedule=task.schedule,
        sampling=1.0,
        seed=0,
        mtu=task.mtu,
        recording=task.recording,
    )


def _round(transport: InNetworkExchange, features: NDArray[np.float32]) -> _Round:
    """Exchange one round."""
    fixed, sums = transport.aggregate_parts(features, Direction.FORWARD)
    whole = fixed.decode()
    if sums is not None:
        whole += sums
    return _Round(fixed.values, whole, fixed.fixed_point.scale)


def _write(rounds: list[_Round], path: Path) -> None:
    with writing(path):
        arrays = {
            "fixed": np.stack([each.fixed for each in rounds]),
            "sums": np.stack([each.sums for each in rounds]),
            "scale": np.array([each.scale for each in rounds]),
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
        """Count a completed fragment of a block."""
        self._done += 1
        self._report(self._done, round=round_number, block=block_id, fragment=fragment)

    def share_done(self, share: float) -> None:
        """Report the completed share of the current fragment."""
        self._report(self._done + share)

    def _report(self, done: float, **place: int) -> None:
        now = time.monotonic()
        if done == self._steps or now - self._reported >= _REPORT_INTERVAL:
            self._reported = now
            self._events.write("progress", done=done, steps=self._steps, **place)
