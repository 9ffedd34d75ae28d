"""A share of the vertices over a model switch: their sums, the transpose, and the mean."""

import numpy as np
import pytest

from switchgnn.host.direct.sampling import Sampling
from switchgnn.host.paths.transport import SampledExchange
from switchgnn.planner import Direction
from tests.host.innetwork.test_exchange import Team, one_way_graph, plan_of

FORWARD, BACKWARD = Direction
GRAPH, RATE, EPOCHS = one_way_graph(), 0.4, 60


class SampledTeam(Team):
    exchange = SampledExchange


def exchanged(team, direction):
    """Return float64[V, V]: what a row of each vertex adds to the sum of each other one."""
    unit, sums = np.eye(GRAPH.vertices, dtype=np.float32), np.zeros((GRAPH.vertices,) * 2)

    def work(worker):
        rows = team.plan.workers[worker].vertices
        sums[rows] = team.exchanges[worker].aggregate(unit[rows], direction)

    team.run(work)
    assert not team.errors, team.errors
    return sums.T if direction is FORWARD else sums


def remote(team):
    edges, owner = np.zeros((GRAPH.vertices,) * 2), team.plan.assignment
    for source, destination in zip(*GRAPH.edges(), strict=True):
        edges[source, destination] += owner[source] != owner[destination]
    return edges


@pytest.mark.parametrize("send", ["multicast", "cover"])
def test_each_epoch_has_other_vertices_and_the_mean_is_exact(send):
    team = SampledTeam(plan_of(GRAPH, 3, send=send, directions="both"))
    for exchange in team.exchanges:
        exchange.sample(Sampling(RATE, 5))
    full, total, seen = remote(team), 0.0, set()
    sizes = np.bincount(team.plan.assignment)
    for _ in range(EPOCHS):
        forward = exchanged(team, FORWARD)
        assert np.allclose(exchanged(team, BACKWARD), forward, atol=1e-4)
        for worker, vertices in enumerate(sizes.tolist()):
            drawn = max(1, round(RATE * vertices))
            factor = forward[team.plan.assignment == worker].max(axis=1)
            kept = factor > 0.5
            assert kept.sum() <= drawn
            assert np.allclose(factor[kept], vertices / drawn, atol=1e-3)
        factors = forward.max(axis=1, keepdims=True)
        assert np.allclose(forward, factors * full, atol=1e-3)
        seen.add(factors.round(2).tobytes())
        total = total + forward
        for exchange in team.exchanges:
            exchange.next_epoch()
    assert len(seen) == EPOCHS
    share = RATE * sizes[team.plan.assignment[:, np.newaxis]]
    error = np.sqrt((1 / RATE - 1) / EPOCHS) * (1 + 1 / share)
    assert np.all(np.abs(total / EPOCHS - full) < 5 * error * full + 1e-3)
