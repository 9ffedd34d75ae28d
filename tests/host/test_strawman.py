# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The strawman's workers against a model of its switch: exact sums, whatever is lost."""

import numpy as np
import pytest

import switchgnn.host.strawman as strawman
from switchgnn.host.errors import PlanMismatchError
from switchgnn.host.faults import Faults
from switchgnn.host.header import Kind, unpack_header
from switchgnn.host.strawman import PartReceiver, StrawmanExchange
from switchgnn.planner.build import build_plan
from switchgnn.planner.load import load_graph
from tests.host.model_pool import ModelPool, split
from tests.host.model_switch import undisturbed
from tests.host.test_exchange import (
    TURNS,
    Team,
    check_rounds,
    expected,
    one_way_graph,
    plan_of,
    random_features,
)

SLOTS = (8, 9, 16, 64)


@pytest.fixture(scope="module")
def graph():
    return load_graph("karate")


def strawman_plan(graph, workers=3, slots=8, directions="forward"):
    return build_plan(
        graph,
        workers=workers,
        slots=slots,
        program="ab" * 32,
        directions=directions,
        blocks="strawman",
        order="random",
    )


class PoolTeam(Team):
    """All workers of a strawman plan, each in a thread."""

    exchange = StrawmanExchange

    def __init__(self, plan, *, disturb=undisturbed, **options):
        self.limits = split(plan.manifest.slots)
        super().__init__(plan, disturb=disturb, **options)

    def _switch(self, plan, number, disturb):
        manifest = plan.manifest
        return ModelPool(plan.switch, manifest.workers, number, disturb, limits=self.limits)


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("slots", SLOTS)
def test_sums_are_exact(graph, workers, slots):
    team = PoolTeam(strawman_plan(graph, workers, slots))
    check_rounds(team, graph, 40)
    assert team.total()["overflows"] == team.switch.overflowed
    assert team.total()["sums_made"] == 0


def test_fewer_slots_overflow_more(graph):
    overflows = []
    for slots in (8, 16, 24, 34 * 8):
        team = PoolTeam(strawman_plan(graph, 4, slots))
        check_rounds(team, graph, 33, rounds=1)
        overflows.append(team.total()["overflows"])
    assert overflows == sorted(overflows, reverse=True)
    assert overflows[0] > overflows[-1] == 0


def test_both_directions_of_a_directed_graph():
    graph = one_way_graph()
    team = PoolTeam(strawman_plan(graph, 3, 8, "both"))
    for index, direction in enumerate(TURNS):
        features = random_features(graph, 5, index)
        total, results = team.aggregate(features, directions=[direction] * 3)
        assert not team.errors, team.errors
        wanted = expected(team.plan, graph, features, results[0], direction)
        assert np.array_equal(total, wanted)


@pytest.mark.parametrize("slots", [8, 16])
@pytest.mark.parametrize("seed", range(4))
def test_sums_are_exact_under_faults(graph, slots, seed):
    faults = Faults.parse(f"loss=0.1,duplicate=0.05,reorder=0.1,corrupt=0.01,seed={seed}")
    team = PoolTeam(strawman_plan(graph, 3, slots), faults=faults)
    check_rounds(team, graph, 40)
    assert team.total()["sums_made"] > 0


def test_what_is_lost_inside_the_switch_is_fetched(graph):
    team = PoolTeam(strawman_plan(graph))
    block = team.plan.switch
    vertex = int(block.result_vertex[0])
    source = next(u for (_, u), to in team.switch.fanout.items() if vertex in {v for v, *_ in to})
    team.switch.lose_inside = {(source, vertex)}
    check_rounds(team, graph, 5, rounds=1)
    assert team.total()["sums_made"] == 1


def lost_on_the_way_down(kind):
    """Loses the first two packets of a kind on their way to workers."""
    left = [2]

    def disturb(direction, worker, frame):
        header = unpack_header(frame)
        if direction == "down" and header.kind is kind and not header.resend and left[0]:
            left[0] -= 1
            return []
        return [frame]

    return disturb


@pytest.mark.parametrize("kind", [Kind.SUM, Kind.FEATURE])
def test_a_lost_part_or_overflow_is_fetched(graph, kind):
    team = PoolTeam(strawman_plan(graph), disturb=lost_on_the_way_down(kind))
    check_rounds(team, graph, 5, rounds=1)
    assert 1 <= team.total()["sums_made"] <= 2


def twice(direction, worker, frame):
    return [frame, frame]


def test_everything_twice(graph):
    team = PoolTeam(strawman_plan(graph), disturb=twice)
    check_rounds(team, graph, 33)
    assert team.total()["repeated"] > 0
    assert team.total()["overflows"] == team.switch.overflowed


@pytest.mark.parametrize("at", [5, 20, 60, 90, 120, 160])
def test_a_switch_that_restarts(graph, at):
    """It sums again what it had passed on: such mixtures are refused."""
    frames = [0]

    def disturb(direction, worker, frame):
        frames[0] += direction == "up"
        if frames[0] == at:
            frames[0] += 1
            team.switch.forget()
        # Overflowed features are lost now and then, so that counts alone would agree.
        header = unpack_header(frame)
        lost = header.kind is Kind.FEATURE and direction == "down" and header.src_id % 5 == 0
        return [] if lost and not header.resend else [frame]

    team = PoolTeam(strawman_plan(graph), disturb=disturb)
    check_rounds(team, graph, 33, rounds=1)


def test_an_overflow_that_is_no_neighbours_or_of_nobody_is_refused(graph):
    team = PoolTeam(strawman_plan(graph))
    exchange = team.exchanges[0]
    schedule = exchange._schedules[0]
    receiver = PartReceiver(
        None, None, schedule, place=(1, 1, 0), began=0.0, round_trip=None, tally=exchange.tally
    )
    vertex = int(schedule.receive_vertex[0])
    stranger = max(schedule.neighbours_of(0)) + 1
    header = team.switch._header(Kind.FEATURE, (1, 1, 0), stranger, vertex, 1)
    assert not receiver.take_overflow(header, memoryview(bytes(200)), 1.0)
    header = team.switch._header(Kind.FEATURE, (1, 1, 0), stranger, 10**6, 1)
    assert not receiver.take_overflow(header, memoryview(bytes(200)), 1.0)
    assert exchange.tally.wrong == 2


def test_plans_are_not_confused(graph):
    with pytest.raises(PlanMismatchError, match="is the strawman's"):
        Team(strawman_plan(graph))
    with pytest.raises(PlanMismatchError, match="is not the strawman's"):
        PoolTeam(plan_of(graph, 3))


class CountsTwice(PartReceiver):
    """Adds an overflowed feature as often as it comes."""

    def take_overflow(self, header, frame, now):
        place = self._schedule.receive_place[header.dst_id]
        if header.src_id in self._overflowed.get(place, ()):
            part = self._parts.get(place, strawman._NO_PART)
            added = part.lanes + strawman._lanes(frame)
            self._parts[place] = strawman._Part(part.count, part.sources, added)
            return True
        return super().take_overflow(header, frame, now)


class MixesAnyway(PartReceiver):
    """Takes what has the right count, without asking whose it is."""

    def _complete(self, place, now):
        part = self._parts.get(place, strawman._NO_PART)
        overflowed = self._overflowed.get(place, set())
        missing = set(self._schedule.neighbours_of(place)) - overflowed
        if part.count == len(missing):
            self._parts[place] = strawman._Part(part.count, sum(missing), part.lanes)
        super()._complete(place, now)


class Mistaken(StrawmanExchange):
    _receiver = CountsTwice


class Mixing(StrawmanExchange):
    _receiver = MixesAnyway


def test_an_overflow_counted_twice_is_noticed(graph):
    team = type("MistakenTeam", (PoolTeam,), {"exchange": Mistaken})(
        strawman_plan(graph), disturb=twice
    )
    with pytest.raises(AssertionError):
        check_rounds(team, graph, 5, rounds=1)


def test_slots_that_are_never_given_back_are_noticed(graph):
    team = PoolTeam(strawman_plan(graph, 4, 16))
    team.switch.keep_slots = True
    check_rounds(team, graph, 5, rounds=1)
    good = PoolTeam(strawman_plan(graph, 4, 16))
    check_rounds(good, graph, 5, rounds=1)
    assert team.total()["overflows"] > good.total()["overflows"]
