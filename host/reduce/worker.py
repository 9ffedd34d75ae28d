"""A worker process of `switchgnn allreduce`: all-reduces of made-up tensors, one after another.

It reports to its parent as JSON lines on standard output and leaves its last sums in a file.
"""

import hashlib
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.array_types import Float32s, Int32s
from switchgnn.base.arrays import ArrayKind, pack_arrays
from switchgnn.base.full_disk import writing
from switchgnn.base.tasks import EventWriter, run_task
from switchgnn.host.base.pace import Pace
from switchgnn.host.links.faults import injected_faults
from switchgnn.host.links.transport import LinkConfig
from switchgnn.host.reduce.connection import open_reduce_link, reduce_stream
from switchgnn.host.reduce.reducer import Reducer

# The arrays of a worker's file: the sums of the last all-reduce of each type.
REDUCED = {"integers": ArrayKind(("<i4",), (1,)), "floats": ArrayKind(("<f4",), (1,))}
INTEGERS, FLOATS = "int32", "float32"


@dataclass(frozen=True)
class AllReduceTask:
    """The task of one worker process."""

    config: LinkConfig  # Has a plan.
    elements: int  # Numbers of a tensor.
    rounds: int  # All-reduces of integers, and then as many of floats.
    seed: int
    bits: int  # Of each float, 48 or 32.
    output: Path  # The safetensors file with the last sums.
    pace: Pace


def tensor_of(kind: str, *, seed: int, worker: int, index: int, elements: int) -> Int32s | Float32s:
    """Return a worker's made-up tensor of a round, [N].

    Integers have all of int32; floats are normally distributed, with scales from 2^-20 to 2^20.
    """
    generator = np.random.default_rng((seed, worker, index, kind == FLOATS))
    if kind == INTEGERS:
        return generator.integers(-(2**31), 2**31, elements, dtype=np.int64).astype(np.int32)
    powers = generator.integers(-20, 21, -(-elements // 4096)).astype(np.float32)
    values = generator.standard_normal(elements, dtype=np.float32)
    return values * np.exp2(np.repeat(powers, 4096)[:elements])


def run(line: str) -> None:
    """Do the task of a line of JSON: reduce and report as the module describes."""
    run_task(AllReduceTask, line, _reduce)


def _reduce(task: AllReduceTask, events: EventWriter) -> None:
    with open_reduce_link(task.config) as link:
        stream = reduce_stream(task.config, link, pace=task.pace, bits=task.bits)
        # In a new session no fragment is older than the slots.
        stream.start(stream.query().slots)
        with Reducer(stream) as reducer:
            rounds = _Rounds(task, reducer, events)
            integers, floats = rounds.reduce(INTEGERS), rounds.reduce(FLOATS)
        traffic = link.traffic
        injected = {
            direction: asdict(counts) for direction, counts in injected_faults(link).items()
        }
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
                kind, seed=task.seed, worker=task.config.worker, index=index, elements=task.elements
            )
            started = time.perf_counter()
            sums = self._reducer.submit(values).result()
            passed += time.perf_counter() - started
            self._done += 1
            self._events.write("progress", done=self._done, steps=2 * task.rounds)
        self.seconds[kind] = passed / task.rounds
        return sums
