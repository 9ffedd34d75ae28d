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
from switchgnn.base.files import writing
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
            integers, _ = _rounds(task, INTEGERS, reducer, events)
            floats, seconds = _rounds(task, FLOATS, reducer, events)
        traffic = link.traffic
        injected = {
            direction: asdict(counts) for direction, counts in injected_faults(link).items()
        }
    with writing(task.output):
        task.output.write_bytes(pack_arrays({"integers": integers, "floats": floats}))
    events.write(
        "finished",
        seconds=seconds,
        digest=hashlib.sha256(integers.tobytes() + floats.tobytes()).hexdigest(),
        counters=asdict(stream.counters),
        traffic=traffic._asdict(),
        faults=injected,
    )


def _rounds(
    task: AllReduceTask, kind: str, reducer: Reducer, events: EventWriter
) -> tuple[NDArray[Any], float]:
    before, passed = task.rounds * (kind == FLOATS), 0.0
    for index in range(task.rounds):
        values = tensor_of(
            kind, seed=task.seed, worker=task.config.worker, index=index, elements=task.elements
        )
        started = time.perf_counter()
        sums = reducer.submit(values).result()
        passed += time.perf_counter() - started
        events.write("progress", done=before + index + 1, steps=2 * task.rounds)
    return sums, passed / task.rounds
