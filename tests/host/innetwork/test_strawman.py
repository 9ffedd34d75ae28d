# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The strawman's workers against a model of its switch: exact sums, whatever is lost."""

from dataclasses import replace

import numpy as np
import pytest

from switchgnn.host.innetwork.barrier import Barrier, Meeting
from switchgnn.host.innetwork.endpoint import new_endpoint
from switchgnn.host.innetwork.errors import PlanMismatchError
from switchgnn.host.innetwork.strawman import PartReceiver, StrawmanExchange
from switchgnn.host.wire.faults import Faults
from switchgnn.host.wire.header import BODY_AT, Header, Kind, unpack_header
from switchgnn.planner.build import build_plan
from switchgnn.planner.graphs.load import load_graph
from tests.host.addresses import ADDRESSES, SESSION, Recorder
from tests.host.innetwork.test_exchange import (
    STEADY,
    TURNS,
    Team,
    check_rounds,
    expected,
    one_way_graph,
    plan_of,
    random_features,
)
from tests.host.model_pool import ModelPool, bytes_of, split
from tests.host.model_switch import undisturbed
from tests.support.speed import pace_here

SLOTS = (8, 9, 16, 64)


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


def test_copies_that_one_for_each_worker_would_save_are_counted():
    graph = load_graph("random:60:300:1")
    copies = set()

    def disturb(direction, worker, frame):
        header = unpack_header(frame)
        if direction == "down" and header.kind is Kind.FEATURE and not header.resend:
            copies.add((worker, header.round, header.fragment, header.src_id))
        return [frame]

    team = PoolTeam(strawman_plan(graph), disturb=disturb)
    check_rounds(team, graph, 40)
    assert team.total()["overflow_copies"] == len(copies) < team.total()["overflows"]


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


class EarlyInbox:
    """Gives out one packet, and takes it back."""

    def __init__(self, header):
        self.header, self.kept = header, []

    def receive(self, seconds):
        return self.header, memoryview(bytes(BODY_AT + 128))

    def keep(self, packet):
        self.kept.append(packet[0])


@pytest.mark.parametrize("kind", [Kind.SUM, Kind.FEATURE, Kind.ACK])
@pytest.mark.parametrize("fragment", [0, 1])
def test_what_overtakes_the_advance_is_kept(kind, fragment):
    """The others have gone on; what comes for the next fragment comes only once."""
    inbox = EarlyInbox(Header(kind=kind, round=1, block_id=1, fragment=fragment))
    endpoint = new_endpoint(0, SESSION, Recorder(), ADDRESSES, pace_here(STEADY))
    barrier = Barrier(endpoint, inbox, workers=2, plan_id=1)
    meeting = Meeting(endpoint, 2, (1, 1, 0))
    barrier._take(meeting, inbox.receive(0.0))
    assert meeting.answer is None
    assert bool(inbox.kept) == (fragment == 1 and kind is not Kind.ACK)


def test_everything_twice(graph):
    team = PoolTeam(strawman_plan(graph), disturb=lambda direction, worker, frame: [frame, frame])
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


class Alone:
    """A receiver without an exchange, for the vertex with the most neighbours of worker 0."""

    def __init__(self, graph, receiver=PartReceiver):
        team = PoolTeam(strawman_plan(graph))
        self.schedule = team.exchanges[0]._schedules[0]
        self.wire = Recorder()
        endpoint = new_endpoint(0, SESSION, self.wire, ADDRESSES, pace_here(STEADY))
        self.tally = endpoint.tally
        self.receiver = receiver(endpoint, self.schedule, place=(1, 1, 0), began=0.0)
        self.place = int(np.argmax(self.schedule.receive_count))
        self.vertex = int(self.schedule.receive_vertex[self.place])
        self.neighbours = self.schedule.neighbours_of(self.place)
        assert len(self.neighbours) > 3

    def take(self, kind, source, value, count=1, vertex=None):
        """Let a packet come whose lanes all have one value; tell whether it is news."""
        to = self.vertex if vertex is None else vertex
        header = Header(kind=kind, src_id=source, dst_id=to, count=count, round=1, block_id=1)
        frame = memoryview(bytes(BODY_AT) + bytes_of(np.full(32, value)))
        take = {Kind.SUM: self.receiver.take_sum, Kind.FEATURE: self.receiver.take_feature}[kind]
        return take(header, frame, 1.0)

    @property
    def sum(self):
        """The sum of the vertex, or None while it is missing."""
        if self.vertex in self.receiver.missing_vertices:
            return None
        return int(self.receiver.sums()[self.place, 0])


def test_a_part_and_what_overflowed_make_a_sum_in_any_order(graph):
    for part_first in (True, False):
        alone = Alone(graph)
        first, second, *rest = alone.neighbours
        if part_first:
            assert alone.take(Kind.SUM, sum(rest), 100, len(rest))
        assert alone.take(Kind.FEATURE, first, 1)
        assert not alone.take(Kind.FEATURE, first, 1)
        assert alone.sum is None
        assert alone.take(Kind.FEATURE, second, 10)
        if not part_first:
            assert alone.sum is None
            assert alone.take(Kind.SUM, sum(rest), 100, len(rest))
        assert alone.sum == 111
        assert not alone.take(Kind.SUM, sum(rest), 100, len(rest))
        assert alone.tally.repeated == 2
        assert not alone.wire.sent


def mixture(alone):
    """A part that holds a feature which is here already, in place of one that was lost."""
    first, _, *rest = alone.neighbours
    alone.take(Kind.FEATURE, first, 1)
    alone.take(Kind.SUM, first + sum(rest), 101, len(rest) + 1)
    return alone.sum


def test_a_mixture_with_the_right_count_is_refused(graph):
    alone = Alone(graph)
    assert mixture(alone) is None
    assert alone.tally.wrong == 1
    # The one that is here is not fetched.
    fetched = [header.src_id for header in alone.wire.sent if header.kind is Kind.FETCH]
    assert fetched == alone.neighbours[1:]


class MixesAnyway(PartReceiver):
    """Takes what has the right count, without asking whose it is."""

    def take_sum(self, header, frame, now):
        place = self._schedule.receive_place[header.dst_id]
        missing = set(self._schedule.neighbours_of(place)) - self._overflowed[place]
        return super().take_sum(header._replace(src_id=sum(missing)), frame, now)


def test_the_refusal_of_mixtures_is_tested(graph):
    assert mixture(Alone(graph, MixesAnyway)) is not None


def test_too_many_contributions_are_refused(graph):
    alone = Alone(graph)
    for source in alone.neighbours[:2]:
        alone.take(Kind.FEATURE, source, 1)
    everything = len(alone.neighbours)
    assert alone.take(Kind.SUM, sum(alone.neighbours), 100, everything)
    assert alone.sum is None
    assert alone.tally.wrong == 1
    assert not alone.take(Kind.SUM, 0, 0, everything + 1)
    assert not alone.take(Kind.SUM, 0, 0, 0)


def test_an_overflow_of_a_stranger_or_for_nobody_here_is_refused(graph):
    alone = Alone(graph)
    assert not alone.take(Kind.FEATURE, max(alone.neighbours) + 1, 1)
    assert not alone.take(Kind.FEATURE, alone.neighbours[0], 1, vertex=10**6)
    assert not alone.take(Kind.SUM, 1, 1, vertex=10**6)
    assert alone.tally.wrong == 3


def test_plans_are_not_confused(graph):
    with pytest.raises(PlanMismatchError, match="is the strawman's"):
        Team(strawman_plan(graph))
    with pytest.raises(PlanMismatchError, match="is not the strawman's"):
        PoolTeam(plan_of(graph, 3))


class CountsTwice(PartReceiver):
    """Adds an overflowed feature as often as it comes."""

    def take_feature(self, header, frame, now):
        place = self._schedule.receive_place[header.dst_id]
        if header.src_id in self._overflowed.get(place, ()):
            part, more = self._parts[place], self._lanes_of(frame)
            self._parts[place] = replace(part, lanes=part.lanes + more)
            return True
        return super().take_feature(header, frame, now)


@pytest.mark.parametrize(("receiver", "total"), [(PartReceiver, 111), (CountsTwice, 112)])
def test_an_overflow_counted_twice_is_noticed(graph, receiver, total):
    alone = Alone(graph, receiver)
    first, second, *rest = alone.neighbours
    alone.take(Kind.SUM, sum(rest), 100, len(rest))
    alone.take(Kind.FEATURE, first, 1)
    alone.take(Kind.FEATURE, first, 1)
    alone.take(Kind.FEATURE, second, 10)
    assert alone.sum == total


def test_slots_that_are_never_given_back_are_noticed(graph):
    team = PoolTeam(strawman_plan(graph, 4, 16))
    team.switch.keep_slots = True
    check_rounds(team, graph, 5, rounds=1)
    good = PoolTeam(strawman_plan(graph, 4, 16))
    check_rounds(good, graph, 5, rounds=1)
    assert team.total()["overflows"] > good.total()["overflows"]
