"""Blocks whose paths change before every exchange, in virtual time, with all that goes wrong."""

from dataclasses import replace
from itertools import product
from random import Random

import numpy as np
import pytest

from switchgnn.host.links.transport import WorkerEnd
from switchgnn.host.paths.base import Path
from switchgnn.host.paths.edges import host_edges
from switchgnn.host.paths.transport import PathsTransport
from switchgnn.planner import Direction
from tests.simulation import run as simulated
from tests.simulation.checks.outcomes import Ends
from tests.simulation.parts.worker import VirtualWorker
from tests.simulation.scenario import Incident, IncidentKind, IncidentRates, Scenario
from tests.simulation.subject import incidence

STAR = Scenario(seed=3, workers=4, slots=24, directions="both", patience=30.0, rounds=0)
BAD = IncidentRates(loss=0.05, duplicate=0.05, reorder=0.05, corrupt=0.01)
EXCHANGES, WIDTHS, SECOND = 16, (5, 40), 1_000_000_000


def random_paths(manifest, seed):
    """A third of the draws has one path for all blocks of a direction."""
    draw = Random(seed)
    found = {}
    for each in Direction:
        among = draw.choice([[Path.SWITCH], [Path.HOST], [Path.HOST_PARTIAL], *[list(Path)] * 3])
        found[each] = tuple(
            draw.choice(among) for _ in manifest.direction(each).block_numbers
        )
    return found


class Exchanges:
    """What workers exchange, and which results were wrong."""

    def __init__(self, paths=random_paths, *, sleeps=0.003, slow=None):
        self.paths, self.sleeps, self.slow = paths, sleeps, slow or {}
        self.wrong, self.done, self.times = [], 0, {}
        self.calls = [
            (number, direction, width)
            for number, (direction, width) in enumerate(
                list(product(Direction, WIDTHS)) * (EXCHANGES // 4)
            )
        ]

    def work(self, worker, task, job, _done):
        plan, number = job.plan, worker.number
        part = plan.workers[number]
        end = WorkerEnd(
            worker=number,
            workers=plan.manifest.workers,
            vertices=len(part.vertices),
            pace=job.pace,
            link="",
            addresses=worker._subject.topology.addresses(number),
            stations=tuple(
                worker._subject.topology.station(each) for each in range(plan.manifest.workers)
            ),
            session=job.session,
            clock=worker.clock,
        )
        edges = host_edges(self.graph, plan)[number]
        transport = self.open(end, plan.manifest, part, edges, worker._link)
        for turn, direction, width in self.calls:
            paths = self.paths(plan.manifest, turn)
            transport.set_paths(paths)
            features = self.features(plan, turn, width)
            found = transport.aggregate_fixed(features[part.vertices], direction)
            self.check(plan, part, (turn, direction), found, features)
            self.times.setdefault(number, []).append(transport.take_times())
            task.sleep(int(SECOND * (self.slow.get(number, 0) + self.sleeps * worker._random.random())))
        transport.close()
        self.done += 1
        worker._link.close()

    def open(self, end, manifest, part, edges, link):
        return PathsTransport(end, manifest, part, edges, link)

    def features(self, plan, turn, width):
        shape = len(plan.assignment), width
        return np.random.default_rng(turn).integers(-1000, 1000, shape).astype(np.float32)

    def check(self, plan, part, call, found, features):
        turn, direction = call
        by_switch, whole = self.matrices(plan, direction, self.paths(plan.manifest, turn))
        fixed = np.rint(features.astype(np.float64) * found.fixed_point.scale).astype(np.int64)
        hosts = np.zeros(found.values.shape) if found.of_hosts is None else found.of_hosts
        switch_right = np.array_equal((by_switch @ fixed)[part.vertices], found.values)
        rest = (whole - by_switch) @ features.astype(np.float64)
        if not switch_right or not np.array_equal(rest[part.vertices], hosts):
            self.wrong.append((part.worker, *call))

    def matrices(self, plan, direction, paths):
        """Which sources the switch adds to each vertex, and which there are, from the plan alone."""
        shape, numbers = (len(plan.assignment),) * 2, plan.manifest.direction(direction).block_numbers
        chosen = {n for n, path in zip(numbers, paths[direction], strict=True) if path is Path.SWITCH}
        ends = [[], []]
        for part in plan.workers:
            for block in chosen:
                for at in range(part.receive_indptr[block - 1], part.receive_indptr[block]):
                    sources = part.neighbour_vertex[slice(*part.neighbour_indptr[at : at + 2])]
                    ends[0] += [part.receive_vertex[at]] * len(sources)
                    ends[1] += sources.tolist()
        source, target = self.graph.edges()
        crossing = plan.assignment[source] != plan.assignment[target]
        both = (target[crossing], source[crossing])
        return incidence(*ends, shape), incidence(
            *(both if direction is Direction.FORWARD else both[::-1]), shape
        )


@pytest.fixture
def exchanged(soak, monkeypatch):
    def run(scenario, exchanges):
        monkeypatch.setattr(
            VirtualWorker, "_work", lambda worker, *args: exchanges.work(worker, *args)
        )
        monkeypatch.setattr(simulated, "all_checks", lambda _rows: [Ends()])
        from switchgnn.planner import load_graph

        exchanges.graph = load_graph(scenario.graph)
        outcome = soak.run(scenario)
        assert outcome.violations == outcome.errors == ()
        assert exchanges.done == scenario.workers
        return outcome

    return run


@pytest.mark.parametrize("rates", [IncidentRates(), BAD], ids=["calm", "bad"])
@pytest.mark.parametrize(("workers", "pools"), [(2, 1), (4, 3), (8, 2)])
def test_sums_are_exact_whatever_the_paths(exchanged, workers, pools, rates):
    exchanges = Exchanges()
    scenario = replace(STAR, workers=workers, pools=pools, up=rates, down=rates)
    exchanged(scenario, exchanges)
    assert exchanges.wrong == []
