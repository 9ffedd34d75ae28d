"""A plan that is attacked, its workers as threads, and what their sums must be."""

import os
from dataclasses import dataclass

import numpy as np

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.network import Network, star_network
from switchgnn.host import InNetworkExchange
from switchgnn.p4src import load_program
from switchgnn.planner import Graph, Plan, build_plan, load_graph, reference_sums
from tests.simulation.byzantine import Facts, facts_of
from tests.support.fabrics import PATIENT, added_up, in_threads
from tests.support.speed import pace_here

WORKERS = 3
POOLS = 2
WIDTH = 33
ALL = os.environ.get("SWITCHGNN_LEVEL") == "all"


@dataclass(frozen=True)
class World:
    """A plan with partial sums, its graph, its network, and what frames are made of."""

    graph: Graph
    plan: Plan
    network: Network
    facts: Facts

    @property
    def barriers(self):
        return len(self.facts.units)


def star_world(program=None):
    graph = load_graph("karate")
    digest = (program or load_program()).digest
    plan = build_plan(graph, workers=WORKERS, slots=16, pools=POOLS, program=digest, send="cover")
    return World(graph, plan, star_network(WORKERS + 1), facts_of(plan, WIDTH))


class Team:
    """All workers of a plan; one round at a time."""

    def __init__(self, world, links, addresses, *, session, on_block=lambda *_: None):
        self.world = world
        self.round = 0
        self.errors = {}
        self.results = {}
        self.exchanges = [
            InNetworkExchange(
                *(world.plan.manifest, part, links[part.worker], addresses(part.worker)),
                session=session,
                pace=pace_here(PATIENT),
                on_block=lambda *barrier, worker=part.worker: on_block(worker, *barrier),
            )
            for part in world.plan.workers
        ]
        self._crashes = []
        self._drawn = []

    def play(self):
        """Exchange one round: until all workers have their sums, or an error."""
        self.round += 1
        self.results.clear()
        generator = np.random.default_rng(self.round)
        shape = (self.world.graph.vertices, WIDTH)
        self.features = generator.standard_normal(shape).astype(np.float32) * self.round
        # A test may change them afterwards.
        self._drawn.append(self.features)
        in_threads(self._work, len(self.exchanges))
        for crash in self._crashes:
            raise crash

    def check(self):
        assert not self.errors, self.errors
        assert not (wrong := self.wrong_rows()), f"round {self.round}: {wrong} differ"

    def wrong_rows(self):
        return {row for worker in self.results for row in self._wrong_rows_of(worker)}

    def _wrong_rows_of(self, worker):
        """The scale is the one that follows from all features, not the one that was used."""
        world, result = self.world, self.results[worker]
        fan_in = world.plan.manifest.max_fan_in
        scale = (2.0**31 - fan_in) / (fan_in * self._magnitude())
        fixed = np.rint(self.features.astype(np.float64) * scale).astype(np.int64)
        rows = world.plan.workers[worker].vertices
        expected = reference_sums(world.graph, world.plan.assignment, fixed)[rows]
        if not np.isclose(result.fixed_point.scale, scale, rtol=1e-12):
            return rows.tolist()
        return rows[(expected != result.values).any(axis=1)].tolist()

    def _magnitude(self):
        """Return the scale's base: from round 3 on four times the larger of the last two."""
        *before, now = (float(np.abs(features).max()) for features in self._drawn)
        foreseen = 4.0 * max(before[-2:], default=0.0)
        return foreseen if len(before) > 1 and now <= foreseen else now

    def total(self):
        return added_up(exchange.counters for exchange in self.exchanges)

    def _work(self, worker):
        rows = self.world.plan.workers[worker].vertices
        try:
            self.results[worker] = self.exchanges[worker].aggregate_fixed(self.features[rows])
        except SwitchGNNError as error:
            self.errors[worker] = error
        except BaseException as error:  # play raises it
            self._crashes.append(error)
