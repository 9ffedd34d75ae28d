"""Frames of several rows through a real switch: every sum to the bit, every frame as planned."""

from contextlib import ExitStack

import numpy as np
import pytest

from switchgnn.planner import Direction, PlanContext, PlanRequest, resolve_strategies
from switchgnn.planner.build import build_resolved
from tests.end_to_end.conftest import VERTICES, WORKERS
from tests.end_to_end.test_strategies import AGAIN, wrong_elements
from tests.support.fabrics import PATIENT, Team
from tests.support.markers import TARGETS, some_of

FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD
# Rows of a frame, the numbers of the widest one, and of each exchange: narrower ones, such whose
# rows begin anywhere in a chunk, and such that take several fragments, the last one narrower.
SHAPES = (
    (2, 8, (8, 3, 20)),
    (2, 32, (32, 17, 41)),
    (2, 64, (64, 41, 30)),
    (2, 128, (128, 100, 9, 150)),
    (4, 32, (32, 10, 7, 45)),
    (4, 64, (64, 47, 33, 1)),
    (8, 32, (32, 10, 1, 75)),
    (8, 8, (7, 8, 16)),
    # Such as BMv2 takes.
    (2, 56, (56, 41, 9)),
    (4, 24, (24, 10, 7, 33)),
)


def plan_for(made, rows, lanes):
    context = PlanContext(WORKERS, 64, lanes=lanes, rows=rows)
    choice = resolve_strategies(PlanRequest("best"), made.graph, context)
    return build_resolved(
        made.graph, choice, context, program=made.program.digest, seed=3, directions="both"
    )


def exchange_all(made, adjacency, widths):
    """Exchange rows of each width in both directions; return the team, and how many differ."""
    rng = np.random.default_rng(7)
    turns = [(width, turn) for width in widths for turn in (BACKWARD, FORWARD)]
    features = [rng.standard_normal((VERTICES, width)).astype(np.float32) for width, _ in turns]
    made.install()
    with ExitStack() as stack:
        team = Team(made, stack, pace=PATIENT)
        results = team.exchange(features, [turn for _, turn in turns])
        assert not team.errors, team.errors
    matrices = {FORWARD: adjacency.T, BACKWARD: adjacency}
    rounds = zip(turns, features, results, strict=True)
    return team, sum(
        wrong_elements(made.plan, matrices[turn], each, result)
        for (_, turn), each, result in rounds
    )


@pytest.mark.parametrize(
    ("made", "shape"),
    some_of(lambda target, shape: target == 0 or shape >= len(SHAPES) - 2, TARGETS, SHAPES),
    indirect=["made"],
)
def test_sums_of_bundles(made, adjacency, shape):
    rows, lanes, widths = shape
    made.plan = plan_for(made, rows, lanes)
    team, wrong = exchange_all(made, adjacency, widths)
    assert wrong == 0
    assert made.plan.manifest.blocks > 1
    for own, link in zip(team.exchanges, team.links, strict=True):
        counters = own.counters
        if not any(getattr(counters, name) for name in AGAIN):
            said = [own.expected_traffic(w, turn) for w in widths for turn in (FORWARD, BACKWARD)]
            assert link.traffic.bytes_up == sum(each.bytes_up for each in said)
            assert link.traffic.bytes_down == sum(each.bytes_down for each in said)
