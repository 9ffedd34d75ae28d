"""Two jobs on one switch whose slots are short: ATP's shared slots against a fixed split.

Both jobs share the memory, with the strawman's plan, or each has half of it: with the same plan, on
a switch of its own, so that only the sharing differs, or with the product's plan (`--slots fixed`).
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

import numpy as np

from bench.line import ResultLine
from bench.measure import alternate
from bench.settings import Settings
from switchgnn.base.array_types import Float32s
from switchgnn.base.network import network_on, star_network
from switchgnn.controller import DesiredStates, Share, install_each, load_plan
from switchgnn.controller.admission import JobRequest
from switchgnn.host import Addresses, InNetworkExchange, Pace, open_link
from switchgnn.host.strawman import StrawmanExchange
from switchgnn.p4src import load_program, load_strawman
from switchgnn.planner import Direction, Plan, build_plan, load_graph
from switchgnn.topologies import Target, Topology, socket_address
from switchgnn.topologies.loopback_fabric import LoopbackFabric

NAME = "shared_slots"
OWN_NAMESPACE = False

_GRAPH = "random:300:1500:1"
_STRAWMAN = {"blocks": "strawman", "order": "random"}
_JOBS, _WORKERS, _WIDTH, _ROUNDS = 2, 3, 32, 4
# Long queues must not look like losses.
_PACE = Pace(timeout=60.0, shortest_timeout=0.5)
# Few enough that neither the switch nor the workers' threads are what limits.
_MEGABITS = 1.0
# Each job has 300 destinations.
_MEMORY = (16, 128, 600)


def missing() -> str | None:
    """Return what the machine lacks for this figure: nothing."""
    return None


@dataclass(frozen=True)
class _Job:
    """The workers of a job."""

    plan: Plan
    exchanges: Sequence[InNetworkExchange]
    rows: Float32s

    def exchange(self) -> None:
        """Exchange some rounds."""
        with ThreadPoolExecutor(_WORKERS) as pool:
            list(pool.map(self._work, range(_WORKERS)))

    def _work(self, worker: int) -> None:
        own = self.rows[self.plan.workers[worker].vertices]
        for _ in range(_ROUNDS):
            self.exchanges[worker].aggregate_fixed(own, Direction.FORWARD)


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure both patterns with several sizes of the memory."""
    for slots in _MEMORY:
        with ExitStack() as stack:
            half, alone = slots // _JOBS, range(_JOBS)
            shared = _jobs(stack, slots, _JOBS, _STRAWMAN, shared=True)
            halves = {
                "strawman of half": [_jobs(stack, half, 1, _STRAWMAN)[0] for _ in alone],
                "product of half": _jobs(stack, half, _JOBS, {}),
            }
            for pattern, measured in (("coincide", _at_once), ("alternate", _in_turn)):
                for name, fixed in halves.items():
                    a, b = alternate(
                        settings.pairs,
                        ("shared", _timer(measured, shared)),
                        (name, _timer(measured, fixed)),
                    )
                    what = f"{slots} slots: a round of each of two jobs whose peaks {pattern}"
                    yield ResultLine(NAME, what, "ms", a, b)


def _timer(exchange: Callable[[list[_Job]], None], jobs: list[_Job]) -> Callable[[], float]:
    def once() -> float:
        began = monotonic()
        exchange(jobs)
        return (monotonic() - began) / _ROUNDS * 1000

    return once


def _at_once(jobs: list[_Job]) -> None:
    with ThreadPoolExecutor(len(jobs)) as pool:
        list(pool.map(_Job.exchange, jobs))


def _in_turn(jobs: list[_Job]) -> None:
    for job in jobs:
        job.exchange()


def _jobs(
    stack: ExitStack, slots: int, number: int, options: dict[str, str], *, shared: bool = False
) -> list[_Job]:
    """Start a switch with some jobs, each with a plan for some slots."""
    program = load_strawman() if options else load_program()
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="bench-")))
    address = socket_address(folder)
    star = star_network(number * _WORKERS)
    topology = Topology(star.alone, Target.EMBEDDED, (address,), bandwidth=_MEGABITS)
    fabric = stack.enter_context(LoopbackFabric(topology, folder))
    graph = load_graph(_GRAPH)
    plan = build_plan(graph, workers=_WORKERS, slots=slots, program=program.digest, **options)
    rows = np.random.default_rng(0).standard_normal((graph.vertices, _WIDTH)).astype(np.float32)
    kind = StrawmanExchange if options else InNetworkExchange
    jobs = []
    for job in range(number):
        first = job * _WORKERS
        network = network_on(range(first + 1, first + 1 + _WORKERS))
        request = JobRequest(f"job-{job}", shared=shared)
        share = Share(load_plan(plan), network, address)
        session = install_each([share], DesiredStates(program), request).session
        exchanges = [
            kind(
                plan.manifest,
                part,
                stack.enter_context(open_link(fabric.worker_link(first + part.worker))),
                Addresses(network.neighbours[part.worker].station, network.switch),
                session=session,
                pace=_PACE,
            )
            for part in plan.workers
        ]
        jobs.append(_Job(plan, exchanges, rows))
    return jobs
