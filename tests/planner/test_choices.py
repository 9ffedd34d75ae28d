"""What presets and users choose: strategies, the width of frames, the least predicted time."""

import math
import random
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from switchgnn.host.wire.header import BODY_AT
from switchgnn.jobs.report import strategy_names
from switchgnn.planner import Direction, PlanContext, PlannerError, load_graph, presets
from switchgnn.planner.base.lanes import (
    LANES,
    banks_of_slot,
    fragment_lanes,
    frame_bytes,
    parse_lanes,
)
from switchgnn.planner.build import build_resolved
from switchgnn.planner.costs.forecast import (
    HOST,
    HOST_PARTIAL,
    MIXED,
    SWITCH,
    build_auto,
    choose_lanes,
)
from switchgnn.planner.costs.seconds import NetworkModel, plan_seconds
from switchgnn.planner.plan.banks import BANKS_OF_SWITCHES
from switchgnn.planner.presets import (
    KNOWN,
    PRESETS,
    PlanRequest,
    preset_strategies,
    resolve_strategies,
)
from switchgnn.planner.strategies import BLOCK_STRATEGIES, ORDER_STRATEGIES, PARTITION_STRATEGIES
from tests.planner.helpers import boundary_of, graph_of, random_graph, reports, tuples

GRAPH, SLOTS = load_graph("random:200:1400:1"), 40
SMALL, FEW = random_graph(120, 500, 1), PlanContext(workers=4, slots=30)
PARTS = ("partition", "blocks", "send", "order")


@dataclass(frozen=True)
class Priced:
    """Seconds by a price list: each block, and each row between hosts."""

    block: float
    row: float
    directions: tuple = (Direction.FORWARD,)

    def of_plan(self, plan, left):
        blocks = sum(len(plan.manifest.direction(it).block_numbers) for it in self.directions)
        return self.block * blocks + self.of_hosts(left)

    def of_hosts(self, rows):
        return self.row * sum(int(each.sum()) for each in rows.values())


def built(forecast, preset="auto", graph=GRAPH, workers=4, **options):
    context = PlanContext(workers, SLOTS)
    options |= {"directions": "both" if len(forecast.directions) == 2 else "forward"}
    choice = preset_strategies(preset, graph, context)
    return build_auto(graph, choice, context, forecast, program="0" * 64, seed=0, **options)


def served(plan, direction=Direction.FORWARD):
    record = plan.manifest.direction(direction)
    inside = np.isin(plan.switch.result_block, list(record.block_numbers))
    return set(plan.switch.result_vertex[inside].tolist())


def neighbours(owner):
    boundary, found = boundary_of(GRAPH, owner), {}
    for u, v in tuples(boundary.source, boundary.destination):
        found.setdefault(v, set()).add(int(owner[u]))
    return found


def test_free_blocks_leave_nothing():
    made = built(Priced(block=0, row=1))
    assert made.chosen == SWITCH
    assert not made.plan.leaves_any
    assert min(made.seconds, key=made.seconds.get) == SWITCH


def test_dear_blocks_leave_everything_and_rows_are_counted_once_for_each_receiver():
    made = built(Priced(block=1e9, row=1))
    owner = made.plan.assignment
    assert made.chosen == HOST_PARTIAL
    assert not served(made.plan)
    assert made.plan.manifest.partition.method == "metis"
    left = np.flatnonzero(made.plan.left(Direction.FORWARD)).tolist()
    assert set(left) == set(neighbours(owner))
    boundary = boundary_of(GRAPH, owner)
    copies = {(u, int(owner[v])) for u, v in tuples(boundary.source, boundary.destination)}
    assert made.seconds[HOST] == len(copies)
    assert made.seconds[HOST_PARTIAL] <= made.seconds[HOST]


@pytest.mark.whole
@pytest.mark.parametrize("directions", [(Direction.FORWARD,), tuple(Direction)])
def test_between_them_the_switch_serves_what_most_workers_contribute_to(directions):
    made = built(Priced(95, 1, directions))
    assert made.chosen == MIXED
    into = neighbours(made.plan.assignment)
    for direction in directions:
        kept = served(made.plan, direction)
        left = set(np.flatnonzero(made.plan.left(direction)).tolist())
        assert not kept & left
        assert len(kept) % SLOTS == 0
        if direction is Direction.FORWARD:
            assert kept | left == set(into)
            assert min(len(into[v]) for v in kept) >= max(len(into[v]) for v in left)


def test_what_does_not_fit_the_switch_is_not_taken():
    made = built(Priced(block=0, row=1), fits=lambda plan: not served(plan))
    assert made.chosen == HOST_PARTIAL
    assert set(made.seconds) == {HOST_PARTIAL, HOST}


def test_other_presets_leave_all_or_nothing_and_one_worker_exchanges_nothing():
    assert MIXED not in built(Priced(block=600, row=1), preset="best").seconds
    alone = built(Priced(1, 1), graph=SMALL, workers=1)
    assert alone.seconds[alone.chosen] == 0


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("installed", [True, False])
def test_every_choice_can_be_made(monkeypatch, name, installed):
    monkeypatch.setattr(presets, "has_mtkahypar", lambda: installed)
    for slots, edges in product((30, 200), (1, 1000, 10**9)):
        monkeypatch.setattr(presets, "_MOST_HYPERGRAPH_EDGES", edges)
        choice = preset_strategies(name, SMALL, PlanContext(4, slots, 1e6, 1e6))
        assert choice.partition in PARTITION_STRATEGIES
        assert choice.blocks in BLOCK_STRATEGIES
        assert choice.order in ORDER_STRATEGIES
        assert choice.send in ("multicast", "cover")
        assert choice.because
        assert all(reason.endswith(".") for reason in choice.because.values())
        assert installed or not choice.blocks.startswith("hypergraph")


def test_scarce_recirculation_raises_the_weight():
    def weight(passes, graph=SMALL):
        return preset_strategies("best", graph, PlanContext(4, 30, 1e6, passes)).weight

    assert preset_strategies("best", SMALL, FEW).weight == 0
    assert weight(1e9) < weight(1e7) < weight(1e6) <= 1
    assert weight(1.0) == 1
    # Of a graph only its size counts; this one has a hundred million edges and no memory.
    large = SimpleNamespace(vertices=1_000_000, indices=np.broadcast_to(np.int32(0), 100_000_000))
    assert weight(1e7, large) == weight(1e7) > 0
    scarce = PlanContext(4, 30, link_rate=1e6, recirculation_rate=1e6)
    assert resolve_strategies(PlanRequest("best"), SMALL, scarce).weight > 0
    assert resolve_strategies(PlanRequest("best", send="multicast"), SMALL, scarce).weight == 0


def test_a_pass_that_adds_less_weighs_less():
    """With one bank a contribution is a pass: its weight is links over passes."""
    contexts = [PlanContext(4, 30, 1e5, 1e6, banks=banks) for banks in BANKS_OF_SWITCHES]
    weights = [preset_strategies("best", SMALL, each).weight for each in contexts]
    assert weights == sorted(weights, reverse=True)
    assert weights[0] == pytest.approx(4 * 1e5 / 1e6)
    for weight, banks in zip(weights, BANKS_OF_SWITCHES, strict=True):
        assert weights[0] / weight <= banks


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan")])
def test_impossible_rates(rate):
    with reports("above 0"):
        preset_strategies("best", SMALL, PlanContext(4, 30, rate, 1e6))


def parts_of(choice):
    return {part: getattr(choice, part) for part in PARTS}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(("part", "name"), [(part, name) for part in PARTS for name in KNOWN[part]])
def test_one_part_is_replaced_and_the_reason_is_that(preset, part, name):
    usual = preset_strategies(preset, SMALL, FEW)
    assert resolve_strategies(PlanRequest(preset), SMALL, FEW) == usual
    choice = resolve_strategies(PlanRequest(preset, **{part: name}), SMALL, FEW)
    expected = parts_of(usual) | {part: name}
    if part == "send":
        expected["blocks"] = presets.blocks_for(usual.blocks, name)
    assert parts_of(choice) == expected
    assert choice.because[part] == f"{part.capitalize()} {name}: as asked."
    others = set(usual.because) - {part}
    assert all(choice.because[other] == usual.because[other] for other in others)


@pytest.mark.parametrize(
    ("blocks", "send", "expected"),
    [
        ("destination", "cover", "destination-cover"),
        ("hypergraph-cover", "cover", "hypergraph-cover"),
        ("hypergraph-cover", "multicast", "hypergraph"),
        *(("mlgp", send, "mlgp") for send in ("cover", "multicast")),
    ],
)
def test_blocks_are_those_refined_for_what_is_sent(blocks, send, expected):
    assert presets.blocks_for(blocks, send) == expected


@pytest.mark.parametrize("part", PARTS)
def test_wrong_names_list_the_right_ones(part):
    with reports(f"known: {', '.join(sorted(KNOWN[part]))}"):
        PlanRequest(**{part: "worst"}).checked()
    with reports("known: auto, best, paper"):
        PlanRequest("worst").checked()
    with reports("known: auto, best, paper"):
        preset_strategies("worst", SMALL, FEW)


def test_the_papers_switch_has_one_pool():
    halves = replace(FEW, pools=2)
    assert resolve_strategies(PlanRequest("best"), SMALL, halves).blocks
    with reports("one pool of slots, not 2", "best"):
        resolve_strategies(PlanRequest("paper"), SMALL, halves)


def test_an_assignment_takes_the_place_of_the_partition(tmp_path):
    given = np.arange(SMALL.vertices) % 4
    file = tmp_path / "workers.txt"
    np.savetxt(file, given, fmt="%d")
    asked = PlanRequest("best", assignment=file)
    choice = resolve_strategies(asked, SMALL, FEW)
    assert "workers.txt" in choice.because["partition"]
    assignment = asked.load_assignment()
    plan = build_resolved(SMALL, choice, FEW, program="0", seed=0, assignment=assignment)
    assert np.array_equal(plan.assignment, given)
    names = {"partition": "given", "block_strategy": choice.blocks, "send": choice.send}
    names |= {"weight": choice.weight, "order": choice.order}
    assert strategy_names(plan.manifest) == names
    with reports("give one of them"):
        PlanRequest(partition="g3", assignment=file).checked()


def cut(width, lanes):
    fragments = []
    while width > lanes:
        fragments.append(lanes)
        width -= lanes
    return (*fragments, math.ceil(width / 8) * 8)


def bytes_of(widths, lanes):
    return sum(BODY_AT + 4 * each for width in widths for each in cut(width, lanes))


@pytest.mark.parametrize("lanes", LANES)
def test_fragments_of_all_widths(lanes):
    for width in range(1, 1_100):
        assert fragment_lanes(width, lanes) == cut(width, lanes)


def test_the_best_width_is_that_of_a_search():
    draw = random.Random(5)
    drawn = ([draw.randint(1, 700) for _ in range(draw.randint(2, 6))] for _ in range(300))
    for widths in (*product(range(1, 1_100)), *product((1, 7, 16, 41, 128), repeat=2), *drawn):
        costs = {lanes: (bytes_of(widths, lanes), banks_of_slot(lanes)) for lanes in LANES}
        assert costs[parse_lanes("auto", widths)] == min(costs.values())


def test_frames_banks_and_widths_by_name():
    assert [frame_bytes(lanes) for lanes in (8, 16, 24, 256)] == [92, 124, 156, 1084]
    most = {1: 32, 2: 64, 4: 128, 8: 256}
    for lanes in range(8, 257, 8):
        assert banks_of_slot(lanes) == next(banks for banks in most if lanes <= most[banks])
    assert [parse_lanes(text, [41]) for text in ("8", "256", "auto")] == [8, 256, 48]
    for text in ("12", "0", "", "Auto", "-8", "08", "264"):
        with pytest.raises(PlannerError, match="give auto, or a multiple of 8 up to 256"):
            parse_lanes(text, [40])


HIDDEN = {32: 24, 8: 200}  # rows mapped to 32 numbers, and the classes


@pytest.mark.parametrize(
    ("exchanges", "slots", "banks", "lanes"),
    [
        ({8: 200}, 1000, 8, 8),
        ({10: 1}, 1000, 8, 16),
        (HIDDEN, 1000, 8, 32),
        # A few wide rows do not pay for the widest slots, more of them do.
        (HIDDEN | {745: 1}, 1000, 8, 64),
        (HIDDEN | {745: 10}, 1000, 8, 256),
        ({64: 2, 10: 2}, 1000, 8, 64),
        # One frame has one barrier less than two.
        ({41: 1}, 1000, 8, 48),
        # No wider than the banks of the switch, and than two sums have room for.
        ({256: 1}, 1000, 2, 64),
        ({256: 1}, 1000, 1, 32),
        ({256: 1}, 3, 8, 32),
        # Narrow rows, most of them, do not get more blocks for the sake of a few wide ones.
        (HIDDEN | {745: 1}, 100, 8, 32),
        ({32: 2, 64: 1}, 100, 8, 32),
    ],
)
def test_frames_are_as_wide_as_all_exchanges_and_the_switch_allow(exchanges, slots, banks, lanes):
    assert chosen_for(exchanges, slots, banks=banks).lanes == lanes


def test_slots_stay_narrow_for_a_slow_loop_which_adds_to_fewer_wide_ones_in_a_pass():
    mostly_narrow = HIDDEN | {745: 10}
    assert chosen_for(mostly_narrow, 1000).lanes == 256
    assert chosen_for(mostly_narrow, 1000, passes=2e4).lanes == 64


def test_a_width_that_is_asked_for_is_taken():
    asked = choose_lanes(PlanRequest("paper", lanes=8), SMALL, FEW, {64: 1}, 0)
    assert asked == (replace(FEW, lanes=8), None)


LINKS = NetworkModel(bits_per_second=20e6, delay=20e-6, barrier=1e-3)


def chosen_for(exchanges, slots, preset="paper", *, banks=8, passes=None, network=LINKS, **asked):
    request, context = PlanRequest(preset, **asked), PlanContext(4, slots, banks=banks)
    network = replace(network, passes_per_second=passes)
    return choose_lanes(request, SMALL, context, exchanges, 0, network=network, widest=256)[0]


def test_narrow_frames_take_a_whole_wide_slot():
    context = PlanContext(2, 8, banks=2, least_lanes=64)
    assert (context.room, context.banks_apart) == (4, 1)
    graph, owner = graph_of([0, 0, 0], [1, 2, 3], 4, directed=True), np.array([0, 1, 1, 1])
    how = resolve_strategies(PlanRequest("paper"), graph, context)
    switch = build_resolved(graph, how, context, program="0", seed=0, assignment=owner).switch
    assert list(tuples(switch.result_bank, switch.result_slot)) == [(0, 0), (2, 0), (4, 0)]
    assert (switch.entry_expected > 0).sum(axis=1).tolist() == [1, 1, 1]
    with reports("give at least 2"):
        build_resolved(graph, how, replace(context, slots=1), program="0", seed=0)
    with reports("with 1 banks"):
        resolve_strategies(PlanRequest(), graph, replace(context, banks=1))


@lru_cache
def plan_for(slots, lanes, pools, preset):
    context = PlanContext(4, slots, lanes=lanes, pools=pools)
    choice = resolve_strategies(PlanRequest(preset), SMALL, context)
    return build_resolved(SMALL, choice, context, program="0", seed=0)


def seconds_of(lanes, pools, exchanges, slots, preset, network):
    """The predicted time of exchanges with a plan for these frames and pools."""
    plan = plan_for(slots, lanes, pools, preset)
    return sum(
        times * plan_seconds(plan, Direction.FORWARD, width, network)
        for width, times in exchanges.items()
    )


@pytest.mark.parametrize("network", [LINKS, NetworkModel()], ids=["slow", "fast"])
@pytest.mark.parametrize("slots", [1000, 256, 64])
@pytest.mark.parametrize(
    "exchanges", [HIDDEN, {16: 1, 7: 1}, {64: 2, 40: 2}, {256: 1}, {48: 1, 300: 1}, {33: 3, 745: 1}]
)
def test_no_other_frames_and_pools_make_a_much_quicker_plan(exchanges, slots, network):
    def seconds(preset, numbers):
        return [
            seconds_of(lanes, pools, exchanges, slots, preset, network)
            for lanes, pools in product((8, 16, 32, 64, 128, 256), numbers)
            if slots // banks_of_slot(lanes) // pools > 1
        ]

    for preset, numbers, most in (("paper", (1,), 1.05), ("best", (1, 2, 4), 1.25)):
        at = chosen_for(exchanges, slots, preset, network=network)
        taken = seconds_of(at.lanes, at.pools, exchanges, slots, preset, network)
        # How much blocks overlap is not known before they are made.
        assert taken <= most * min(seconds(preset, numbers))
        assert taken <= 1.05 * min(seconds(preset, (1,)))


def test_pools_are_chosen_where_units_can_be_in_flight_together():
    """A round of one unit has nothing to overlap; shared processors have no time to."""
    fast, asked = NetworkModel(), {"preset": "best", "lanes": 32}
    assert chosen_for({32: 1}, 1000, network=fast, **asked).pools == 1
    assert chosen_for({128: 1}, 1000, network=fast, **asked).pools > 1
    busy = replace(fast, cores=2, host_frame=1e-5, barrier=1e-3)
    assert chosen_for({128: 1}, 1000, network=busy, **asked).pools == 1
    assert chosen_for({128: 1}, 1000, network=fast, pools=1, **asked).pools == 1
    assert chosen_for({128: 1}, 1000, network=fast).pools == 1  # the paper's switch
