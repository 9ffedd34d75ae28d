"""Plans of every strategy through a real switch: every sum to the bit."""

from contextlib import ExitStack

import numpy as np
import pytest

from switchgnn.planner import Direction
from switchgnn.planner.blocks.destination import has_mtkahypar
from switchgnn.planner.build import build_resolved
from switchgnn.planner.presets import KNOWN, PRESETS, PlanContext, PlanRequest, resolve_strategies
from tests.end_to_end.conftest import VERTICES, WORKERS
from tests.support.fabrics import PATIENT, Team
from tests.support.markers import TARGETS, some_of

# Two whole fragments.
SLOTS, WIDTH = 12, 64
FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD
TURNS = [BACKWARD, FORWARD]
FEW = PlanContext(WORKERS, SLOTS)
# Packets and passes weigh the same: some partial sums are worth it for the switch alone.
SCARCE = PlanContext(WORKERS, SLOTS, link_rate=1e6, recirculation_rate=2e6)

needs_mtkahypar = pytest.mark.skipif(not has_mtkahypar(), reason="mtkahypar is not installed")


def case(asked, context, name):
    marks = [needs_mtkahypar] if (asked.blocks or "").startswith("hypergraph") else []
    return pytest.param(asked, context, id=name, marks=marks)


CASES = [
    *(case(PlanRequest(name), FEW, name) for name in PRESETS),
    case(PlanRequest("best"), SCARCE, "best-weighted"),
    # What the presets choose has been whole; each other name takes its place in `best`.
    *(
        case(PlanRequest("best", **{part: name}), FEW, f"{part}-{name}")
        for part, names in KNOWN.items()
        for name in names
        if (part, name) not in {("partition", "metis"), ("order", "gamr"), ("send", "cover")}
    ),
]


def wrong_elements(plan, matrix, features, result):
    """How many sums differ from `matrix` @ features; a worker's own edges are added here."""
    scale = result[0].fixed_point.scale
    fixed = np.rint(features.astype(np.float64) * scale).astype(np.int64)
    got = np.zeros(features.shape, dtype=np.int64)
    for part in plan.workers:
        own = part.vertices
        got[own] = result[part.worker].values + matrix.tocsr()[own][:, own] @ fixed[own]
    return int((got != matrix @ fixed).sum())


# BMv2 has other tables only: the presets show that it takes them.
@pytest.mark.parametrize(
    ("made", "asked", "context"),
    some_of(lambda target, case: target == 0 or case < len(PRESETS), TARGETS, CASES),
    indirect=["made"],
)
def test_sums(made, adjacency, asked, context):
    choice = resolve_strategies(asked, made.graph, context)
    made.plan = build_resolved(
        made.graph, choice, context, program=made.program.digest, seed=3, directions="both"
    )
    generator = np.random.default_rng(7)
    features = [
        generator.standard_normal((VERTICES, WIDTH)).astype(np.float32) * 3.0**turn
        for turn in range(len(TURNS))
    ]
    made.install()
    with ExitStack() as stack:
        team = Team(made, stack, pace=PATIENT)
        results = team.exchange(features, TURNS)
        assert not team.errors, team.errors
    for turn, each, result in zip(TURNS, features, results, strict=True):
        matrix = adjacency.T if turn is FORWARD else adjacency
        assert wrong_elements(made.plan, matrix, each, result) == 0
