# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A worker process of `switchgnn allreduce`: all-reduces of made-up tensors, one after another.

It reports to its parent as JSON lines on standard output and leaves its last sums in a file.
"""

import hashlib
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.arrays import ArrayKind, pack_arrays
from switchgnn.base.full_disk import writing
from switchgnn.base.tasks import EventWriter, Heartbeat, task_from_json, task_to_json
from switchgnn.host.innetwork.exchange import plan_id
from switchgnn.host.links.faults import injected_faults, open_worker_link
from switchgnn.host.pace import Pace
from switchgnn.host.reduce.frames import LANES
from switchgnn.host.reduce.reducer import Reducer
from switchgnn.host.reduce.stream import ReduceStream
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.header import ETHERNET_BYTES, PROTOCOL, feature_frame_bytes
from switchgnn.host.wire.link import check_packets_fit
from switchgnn.planner.plan.files import read_manifest

# The arrays of a worker's file: the sums of the last all-reduce of each type.
REDUCED = {
    "integers": ArrayKind(("<i4",), (1,)),
    "floats": ArrayKind(("<f4",), (1,)),
}
INTEGERS, FLOATS = "int32", "float32"


@dataclass(frozen=True)
class AllReduceTask:
    """The task of one worker process.

    Attributes without a description are those of ``WorkerEnd``.
    """

    worker: int
    plan: Path
    session: int
    link: str
    addresses: Addresses
    elements: int  # Numbers of a tensor.
    rounds: int  # All-reduces of integers, and then as many of floats.
    seed: int
    words: int  # Int32 of each float, 2 or 1.
    output: Path  # The safetensors file with the last sums.
    pace: Pace
    faults: str = ""
    recording: Path | None = None

    def to_json(self) -> str:
        """Return the task as one line of JSON."""
        return task_to_json(self)

    @classmethod
    def from_json(cls, text: str) -> "AllReduceTask":
        """Read what :meth:`to_json` wrote."""
        return task_from_json(cls, text)


def tensor_of(
    kind: str, *, seed: int, worker: int, index: int, elements: int
) -> NDArray[np.int32] | NDArray[np.float32]:
    """Return a worker's made-up tensor of a round, [N].

    Integers have all of int32; floats are normally distributed, with scales from 2^-20 to 2^20.
    """
    generator = np.random.default_rng((seed, worker, index, kind == FLOATS))
    if kind == INTEGERS:
        return generator.integers(-(2**31), 2**31, elements, dtype=np.int64).astype(np.int32)
    powers = generator.integers(-20, 21, -(-elements // 4096)).astype(np.float32)
    values = generator.standard_normal(elements, dtype=np.float32)
    return values * np.exp2(np.repeat(powers, 4096)[:elements])


def run_reduce_worker(task: AllReduceTask) -> None:
    """Reduce and report as the module describes."""
    events = EventWriter(sys.stdout)
    with Heartbeat(events):
        _reduce(task, events)


def _reduce(task: AllReduceTask, events: EventWriter) -> None:
    manifest = read_manifest(task.plan)
    widest = feature_frame_bytes(LANES) - ETHERNET_BYTES
    check_packets_fit(task.link, widest)
    with open_worker_link(task.link, task.faults, task.worker, (PROTOCOL,), task.recording) as link:
        stream = ReduceStream(
            link,
            task.addresses,
            worker=task.worker,
            workers=manifest.workers,
            session=task.session,
            plan_id=plan_id(manifest),
            pace=task.pace,
            words=task.words,
        )
        # In a new session no fragment is older than the slots.
        stream.start(stream.query().slots)
        with Reducer(stream) as reducer:
            rounds = _Rounds(task, reducer, events)
            integers, floats = rounds.reduce(INTEGERS), rounds.reduce(FLOATS)
        traffic = link.traffic
        injected = {way: asdict(counts) for way, counts in injected_faults(link).items()}
    with writing(task.output):
        task.output.write_bytes(pack_arrays({"integers": integers, "floats": floats}))
    events.write(
        "finished",
        seconds=rounds.seconds[FLOATS],
        digest=hashlib.sha256(integers.tobytes() + floats.tobytes()).hexdigest(),
        counters=asdict(stream.counters),
        traffic=traffic._asdict(),
        faults=injected,
    )


class _Rounds:
    """The all-reduces of a task, and their seconds by type, on average."""

    def __init__(self, task: AllReduceTask, reducer: Reducer, events: EventWriter) -> None:
        self._task, self._reducer, self._events = task, reducer, events
        self._done = 0
        self.seconds: dict[str, float] = {}

    def reduce(self, kind: str) -> NDArray[Any]:
        """Reduce all rounds of one type; return the last sums."""
        task, passed = self._task, 0.0
        for index in range(task.rounds):
            values = tensor_of(
                kind, seed=task.seed, worker=task.worker, index=index, elements=task.elements
            )
            started = time.perf_counter()
            sums = self._reducer.submit(values).result()
            passed += time.perf_counter() - started
            self._done += 1
            self._events.write("progress", done=self._done, steps=2 * task.rounds)
        self.seconds[kind] = passed / task.rounds
        return sums
