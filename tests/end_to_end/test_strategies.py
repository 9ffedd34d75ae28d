"""Plans of every strategy through a real switch: every sum to the bit, every byte as planned."""

from contextlib import ExitStack

import numpy as np
import pytest

from switchgnn.controller import P4RuntimeClient, read_counters
from switchgnn.host.wire.header import BARRIER_FRAME_BYTES, BODY_AT, FEATURE_FRAME_BYTES
from switchgnn.planner import Direction
from switchgnn.planner.blocks.destination import has_mtkahypar
from switchgnn.planner.build import build_resolved
from switchgnn.planner.presets import KNOWN, PRESETS, PlanContext, PlanRequest, resolve_strategies
from tests.end_to_end.conftest import VERTICES, WORKERS
from tests.support.fabrics import PATIENT, Team
from tests.support.markers import TARGETS, some_of

# Two whole fragments: all frames have one size, those that are sent again as well.
SLOTS, WIDTH = 12, 64
FRAGMENTS = 2
FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD
TURNS = [BACKWARD, FORWARD]
FEW = PlanContext(WORKERS, SLOTS)
AGAIN = (
    *("features_resent", "probes", "recalls", "fetches", "features_served"),
    *("barriers_repeated", "notices"),
)
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
    """How many sums differ from `matrix` @ features, in the fixed point of the exchange.

    `result` has the remote sums of each worker; its own edges are added here.
    """
    scale = result[0].fixed_point.scale
    fixed = np.rint(features.astype(np.float64) * scale).astype(np.int64)
    got = np.zeros(features.shape, dtype=np.int64)
    for part in plan.workers:
        own = part.vertices
        got[own] = result[part.worker].values + matrix.tocsr()[own][:, own] @ fixed[own]
    return int((got != matrix @ fixed).sum())


def plan_for(made, asked, context):
    choice = resolve_strategies(asked, made.graph, context)
    return build_resolved(
        made.graph, choice, context, program=made.program.digest, seed=3, directions="both"
    )


def exchange(made, turns=TURNS):
    generator = np.random.default_rng(7)
    features = [
        generator.standard_normal((VERTICES, WIDTH)).astype(np.float32) * 3.0**turn
        for turn in range(len(turns))
    ]
    made.install()
    with ExitStack() as stack:
        team = Team(made, stack, pace=PATIENT)
        client = stack.enter_context(P4RuntimeClient(made.address, primary=False))
        before = read_counters(client).named()
        results = team.exchange(features, turns)
        assert not team.errors, team.errors
        counted = {
            name: number - before[name] for name, number in read_counters(client).named().items()
        }
    return features, results, team, counted


# BMv2 has other tables only: the presets show that it takes them.
@pytest.mark.parametrize(
    ("made", "asked", "context"),
    some_of(lambda target, case: target == 0 or case < len(PRESETS), TARGETS, CASES),
    indirect=["made"],
)
def test_sums_and_bytes(made, adjacency, asked, context):
    made.plan = plan_for(made, asked, context)
    features, results, team, counted = exchange(made)
    for turn, each, result in zip(TURNS, features, results, strict=True):
        matrix = adjacency.T if turn is FORWARD else adjacency
        assert wrong_elements(made.plan, matrix, each, result) == 0
    check_packets(made, team, counted)


def check_packets(made, team, counted):
    """Packets, contributions and bytes are those of the plan, without repetitions."""
    manifest = made.plan.manifest
    records = [manifest.direction(turn) for turn in TURNS]
    said = [record.prediction for record in records]
    barriers = sum(1 + FRAGMENTS * len(record.block_numbers) for record in records)
    # On a busy machine a timer may repeat a request.
    total = team.total()
    quiet = not any(total[name] for name in AGAIN)
    for worker, (link, own) in enumerate(zip(team.links, team.exchanges, strict=True)):
        counters = own.counters
        assert counters.features_sent == FRAGMENTS * sum(each.packets_up[worker] for each in said)
        sums = FRAGMENTS * sum(each.packets_down[worker] for each in said)
        assert counters.sums_received + counters.sums_made == sums
        again = counters.features_resent + counters.probes + counters.features_served
        asked = counters.recalls + counters.fetches + counters.notices
        assert link.traffic.bytes_up == (
            FEATURE_FRAME_BYTES * (counters.features_sent + again)
            + BARRIER_FRAME_BYTES * (barriers + counters.barriers_repeated)
            + BODY_AT * asked
        )
        down = sum(own.expected_traffic(WIDTH, turn).bytes_down for turn in TURNS)
        assert link.traffic.bytes_down == down or not quiet
    if quiet:
        assert counted["contributions"] == FRAGMENTS * sum(each.contributions for each in said)
        assert counted["passes"] >= FRAGMENTS * sum(each.passes for each in said)
