"""The product's own load: worker processes that exchange, as `switchgnn run` starts them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench.testbeds.testbed import Testbed
from switchgnn.base.arrays import pack_arrays
from switchgnn.host.base.pace import Pace
from switchgnn.host.links.transport import LinkConfig
from switchgnn.host.paths.edges import write_edges
from switchgnn.host.wire.header import LANES
from switchgnn.host.worker import WorkerTask
from switchgnn.jobs.workers import WorkerError, WorkerOutcome, run_workers, worker_command
from switchgnn.topologies import WireBytes, usual_limits

WORKER_COMMAND = worker_command("worker")
_ATTEMPTS = 3
_PATIENCE = 5.0


@dataclass(frozen=True)
class Exchanged:
    """The results of an exchange."""

    seconds: float  # the time of one round, from the moment that all workers are there
    processor_seconds: float  # what the processors of all workers worked in one round
    contributions: float  # contributions per second, as the switch counted them
    passes: float  # passes per contribution
    wire_bytes: float  # bytes of one round, both ways, on all wires; 0 over loopback
    repeated: int  # attempts before this one that failed
    injected: int  # frames that a fault was injected into
    repairs: dict[str, int]  # the repairs of all workers, by kind
    traffic: dict[str, int]  # frames and bytes that passed the sockets of all workers


def exchange(
    testbed: Testbed,
    rounds: int,
    width: int = LANES,
    faults: str = "",
    command: Sequence[str] = WORKER_COMMAND,
) -> Exchanged:
    """Exchange features for some rounds; start again when an attempt fails."""
    for attempt in range(_ATTEMPTS):
        try:
            return replace(_exchange(testbed, rounds, width, faults, command), repeated=attempt)
        except WorkerError:
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError


def _exchange(
    testbed: Testbed, rounds: int, width: int, faults: str, command: Sequence[str]
) -> Exchanged:
    testbed.new_session()
    workers = range(testbed.fabric.topology.workers)
    files = [testbed.folder / f"schedule-{worker}.safetensors" for worker in workers]
    left = testbed.served.graph is not None
    if testbed.served.graph is not None:
        write_edges(testbed.served.graph, testbed.served.plan, files)
    links = [
        LinkConfig(
            worker=worker,
            link=testbed.fabric.worker_link(worker),
            addresses=testbed.addresses(worker),
            stations=tuple(neighbour.station for neighbour in testbed.network.neighbours),
            plan=testbed.plan_folder,
            session=testbed.session,
            schedule=files[worker] if left else None,
            faults=faults,
        )
        for worker in workers
    ]
    pace = Pace(usual_limits(testbed.target, shaped=False).window, _PATIENCE)
    tasks = [_task(testbed, link, rounds, width, pace) for link in links]
    before, wire_before = testbed.counters(), testbed.fabric.wire_bytes()
    outcomes = list(map(WorkerOutcome.of, run_workers(testbed.fabric, command, tasks, pace)))
    after, wire_after = testbed.counters(), testbed.fabric.wire_bytes()
    # A worker's clock starts when it is ready, so the last worker's has no waiting in it.
    seconds = min(outcome.seconds for outcome in outcomes)
    contributions = after["contributions"] - before["contributions"]
    passes = after["passes"] - before["passes"]
    wire = _total(wire_after) - _total(wire_before)
    return Exchanged(
        seconds=seconds / rounds,
        processor_seconds=sum(outcome.processor_seconds for outcome in outcomes) / rounds,
        contributions=contributions / seconds,
        passes=passes / contributions if contributions else 0.0,
        wire_bytes=wire / rounds,
        repeated=0,
        injected=sum(
            number
            for outcome in outcomes
            for counts in outcome.faults.values()
            for number in counts.values()
        ),
        repairs=_added(outcome.counters for outcome in outcomes),
        traffic=_added(outcome.traffic for outcome in outcomes),
    )


def _added(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


def _total(wires: list[WireBytes] | None) -> int:
    return sum(wire.up + wire.down for wire in wires or [])


def _task(testbed: Testbed, config: LinkConfig, rounds: int, width: int, pace: Pace) -> WorkerTask:
    part = testbed.served.plan.workers[config.worker]
    features = testbed.folder / f"features-{config.worker}.safetensors"
    generator = np.random.default_rng(config.worker)
    rows = generator.standard_normal((len(part.vertices), width), dtype=np.float32)
    features.write_bytes(pack_arrays({"features": rows}))
    return WorkerTask(
        config,
        features=features,
        rounds=rounds,
        output=testbed.folder / f"sums-{config.worker}.safetensors",
        rounds_per_file=rounds,
        pace=pace,
    )
