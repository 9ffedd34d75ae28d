"""Blocks whose paths change before every exchange, in virtual time, with all that goes wrong."""

from dataclasses import replace
from itertools import product
from random import Random

import numpy as np
import pytest

from switchgnn.host.links.transport import WorkerEnd
from switchgnn.host.paths.base import Path, one_path
from switchgnn.host.paths.edges import host_edges
from switchgnn.host.paths.transport import PathsTransport
from switchgnn.planner import Direction, load_graph
from tests.simulation import run as simulated
from tests.simulation.checks.outcomes import Ends
from tests.simulation.parts.worker import VirtualWorker
from tests.simulation.scenario import Incident, IncidentKind, IncidentRates, Scenario
from tests.simulation.subject import incidence

STAR = Scenario(seed=3, workers=4, slots=24, directions="both", patience=30.0, rounds=0)
BAD = IncidentRates(loss=0.05, duplicate=0.05, reorder=0.05, corrupt=0.01)
CALLS = list(enumerate(list(product(Direction, (5, 40))) * 4))
SECOND = 1_000_000_000

OVER_LINKS = [Path.SWITCH, Path.HOST, Path.HOST_PARTIAL]


def random_paths(manifest, seed):
    """Draw paths; in half of the draws all blocks of a direction have the same one."""
    draw, found = Random(seed), {}
    for each in Direction:
        among = draw.choice([[Path.SWITCH], [Path.HOST], [Path.HOST_PARTIAL], *[OVER_LINKS] * 3])
        found[each] = tuple(draw.choice(among) for _ in manifest.direction(each).block_numbers)
    return found


class Crew:
    """Workers that exchange with other paths each time; `slow`: seconds that each computes."""

    def __init__(self, graph, *, paths=random_paths, slow=(), kind=PathsTransport):
        self.graph, self.paths, self.kind = load_graph(graph), paths, kind
        self.slow = dict(enumerate(slow))
        self.wrong, self.times, self.early = [], {}, 0

    def work(self, worker, task, job):
        plan, number, place = job.plan, worker.number, worker._subject.topology
        manifest, part = plan.manifest, plan.workers[number]
        end = WorkerEnd(
            worker=number,
            workers=manifest.workers,
            vertices=len(part.vertices),
            pace=job.pace,
            link="",
            addresses=place.addresses(number),
            stations=tuple(map(place.station, range(manifest.workers))),
            session=job.session,
            clock=worker.clock,
        )
        own, times = host_edges(self.graph, plan)[number], []
        transport = self.kind(end, manifest, part, own, worker._link)
        for turn, (direction, width) in CALLS:
            paths = self.paths(manifest, turn)
            transport.set_paths(paths)
            shape = len(plan.assignment), width
            rows = np.random.default_rng(turn).integers(-1000, 1000, shape).astype(np.float32)
            found = transport.aggregate_fixed(rows[part.vertices], direction)
            if not self.right(plan, part, (direction, paths[direction]), found, rows):
                self.wrong.append((number, turn))
            times += transport.take_times()
            task.sleep(int(SECOND * self.slow.get(number, 0.003 * worker._random.random())))
        transport.close()
        self.times[number] = times
        self.early += transport.counters.early

    def right(self, plan, part, chosen, found, rows):
        """Compare both parts with the whole graph; whole numbers are exact in float32."""
        direction, paths = chosen
        whole, by_switch = self.matrix(plan, direction), switched(plan, direction, paths)
        fixed = np.rint(rows.astype(np.float64) * found.fixed_point.scale).astype(np.int64)
        of_hosts = ((whole - by_switch) @ rows.astype(np.float64))[part.vertices]
        given = np.zeros_like(of_hosts) if found.of_hosts is None else found.of_hosts
        same = np.array_equal((by_switch @ fixed)[part.vertices], found.values)
        return same and np.array_equal(of_hosts, given)

    def matrix(self, plan, direction):
        source, target = self.graph.edges()
        crossing = plan.assignment[source] != plan.assignment[target]
        ends = target[crossing], source[crossing]
        turn = 1 if direction is Direction.FORWARD else -1
        return incidence(*ends[::turn], (len(plan.assignment),) * 2)


def switched(plan, direction, paths):
    """Which sources the switch adds to each destination, from the parts of the plan alone."""
    ends = [[], []]
    for block, path in zip(plan.manifest.direction(direction).block_numbers, paths, strict=True):
        for part in plan.workers if path is Path.SWITCH else ():
            for at in range(part.receive_indptr[block - 1], part.receive_indptr[block]):
                sources = part.neighbour_vertex[slice(*part.neighbour_indptr[at : at + 2])]
                ends[0] += [part.receive_vertex[at]] * len(sources)
                ends[1] += sources.tolist()
    return incidence(*ends, (len(plan.assignment),) * 2)


@pytest.fixture
def exchanged(soak, monkeypatch):
    """Return a function that lets a crew exchange in a scenario; all its workers must end."""

    def run(scenario, *, ends_well=True, **options):
        crew = Crew(scenario.graph, **options)

        monkeypatch.setattr(VirtualWorker, "_work", lambda *given: crew.work(*given[:-1]))
        monkeypatch.setattr(simulated, "all_checks", lambda _rows: [Ends()])
        outcome = soak.run(scenario)
        crew.errors = outcome.errors
        if ends_well:
            assert outcome.violations == outcome.errors == ()
            assert crew.times.keys() == set(range(scenario.workers))
        return crew

    return run


@pytest.mark.parametrize("rates", [IncidentRates(), BAD], ids=["calm", "bad"])
@pytest.mark.parametrize(
    ("workers", "pools", "slow"), [(2, 1, ()), (4, 3, (0.0, 0.2)), (8, 2, (0.1,))]
)
def test_sums_are_exact_whatever_the_paths(exchanged, workers, pools, slow, rates):
    scenario = replace(STAR, workers=workers, pools=pools, up=rates, down=rates)
    assert exchanged(scenario, slow=slow).wrong == []


def test_paths_that_stay_have_early_features(exchanged):
    """A change drops what was announced of the next round, once, and by all workers."""

    def twice(manifest, turn):
        chosen = random_paths(manifest, turn // 8)
        return {each: (Path.SWITCH, *own[1:]) for each, own in chosen.items()}

    crew = exchanged(STAR, paths=twice)
    assert crew.wrong == []
    # From the second time in the same order on, but not right after the change.
    assert crew.early == STAR.workers * len({*range(5, 16)} - {8})


@pytest.mark.parametrize(
    "kind, event",
    [(IncidentKind.TEAR, 2_000), (IncidentKind.TEAR, 2_296), (IncidentKind.RESTART, 4_000)],
)
def test_a_switch_that_restarts_between_paths(exchanged, kind, event):
    """Some have passed the last barrier and wait for rows of others that have not."""

    scenario = replace(STAR, incidents=(Incident(kind, "s0", event, 0.1),))
    paths = [Path.SWITCH, Path.HOST]
    crew = exchanged(scenario, paths=lambda manifest, turn: one_path(manifest, paths[turn % 2]))
    assert crew.wrong == []


class CountedTwice(PathsTransport):
    """Does not tell the switch's part that hosts sum the first block."""

    def leave_out(self, blocks):
        super().leave_out({each: frozenset(sorted(own)[1:]) for each, own in blocks.items()})


class OldSchedule(PathsTransport):
    """Worker 1 sends rows for the paths before."""

    def set_paths(self, paths):
        super().set_paths(paths)
        if self._part.worker == 1 and self.paths == random_paths(self._manifest, 3):
            before = self._find_schedule(random_paths(self._manifest, 2))
            self._hosts.reschedule(before.forward, before.backward)


def test_a_block_that_is_counted_twice_is_noticed(exchanged):
    assert exchanged(STAR, kind=CountedTwice).wrong != []


def test_rows_of_another_schedule_are_refused(exchanged):
    crew = exchanged(STAR, kind=OldSchedule, ends_well=False)
    assert crew.wrong == []
    assert any("Frames of another schedule arrived" in each for each in crew.errors)


@pytest.mark.parametrize("path", OVER_LINKS)
def test_a_worker_that_computes_slowly_is_not_blamed_on_the_path(exchanged, path):
    crew = exchanged(STAR, paths=lambda manifest, _: one_path(manifest, path), slow=(0.0, 0.5))
    found = [each for times in crew.times.values() for each in times]
    assert {each.path for each in found} == {path}
    assert sum(each.exchanges for each in found) == STAR.workers * len(CALLS)
    assert 0 < max(each.seconds / each.exchanges for each in found) < 0.05


def test_a_slow_link_is_blamed_on_the_path(exchanged):
    silence = Incident(IncidentKind.SILENCE, "w1.down", 1_000, 0.4)
    crew = exchanged(replace(STAR, incidents=(silence,)))
    assert max(each.seconds for times in crew.times.values() for each in times) > 0.2
