"""The parts and overflowed features of the strawman make a sum, and never a mixture."""

import numpy as np
import pytest

from switchgnn.host.base.errors import TransportError
from switchgnn.host.base.operations import Operation
from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.innetwork.errors import PlanMismatchError
from switchgnn.host.innetwork.schedule import block_schedules
from switchgnn.host.strawman import PartReceiver, StrawmanExchange
from switchgnn.host.wire.header import BODY_AT, Header, Kind, Unit
from tests.host.addresses import ADDRESSES, SESSION, Recorder
from tests.host.innetwork.test_exchange import STEADY, Team, plan_of
from tests.support.speed import pace_here


def strawman_plan(graph, workers=3):
    return plan_of(graph, workers, blocks="strawman", order="random")


class StrawmanTeam(Team):
    exchange = StrawmanExchange


def test_there_is_no_maximum(graph):
    (exchange,) = StrawmanTeam(strawman_plan(graph, workers=1)).exchanges
    with pytest.raises(TransportError, match="The strawman has sums only"):
        exchange.aggregate(np.zeros((graph.vertices, 2), np.float32), operation=Operation.MAX)


class Alone:
    """A receiver without an exchange, for the vertex with the most neighbours of worker 0."""

    def __init__(self, graph):
        (self.schedule,) = block_schedules(strawman_plan(graph).workers[0], ADDRESSES, 4, SESSION)
        self.wire = Recorder()
        endpoint = Endpoint(0, SESSION, self.wire, ADDRESSES, pace_here(STEADY))
        self.counters = endpoint.counters
        self.receiver = PartReceiver(endpoint, self.schedule, unit=Unit(1, 1, 0), began=0.0)
        self.index = int(np.argmax(self.schedule.receive_count))
        self.vertex = int(self.schedule.receive_vertex[self.index])
        self.neighbours = self.schedule.neighbours_of(self.index)
        assert len(self.neighbours) > 3

    def take(self, kind, source, value, count=1, vertex=None):
        """Let a packet come whose lanes all have one value; tell whether it is news."""
        to = self.vertex if vertex is None else vertex
        header = Header(kind=kind, src_id=source, dst_id=to, count=count, round=1, block_id=1)
        take = {Kind.SUM: self.receiver.take_sum, Kind.FEATURE: self.receiver.take_feature}[kind]
        return take(header, memoryview(bytes(BODY_AT) + np.full(32, value, ">i4").tobytes()), 1.0)

    @property
    def sum(self):
        if self.vertex in self.receiver.missing_vertices:
            return None
        return int(self.receiver.sums()[self.index, 0])


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
        assert (alone.counters.repeated, alone.counters.overflows) == (2, 2)
        assert not alone.wire.sent


def test_a_mixture_with_the_right_count_is_refused(graph):
    """A part holds a feature that is here already, instead of one that was lost."""
    alone = Alone(graph)
    first, _, *rest = alone.neighbours
    alone.take(Kind.FEATURE, first, 1)
    alone.take(Kind.SUM, first + sum(rest), 101, len(rest) + 1)
    assert alone.sum is None
    assert alone.counters.wrong == 1
    fetched = [header.src_id for header in alone.wire.sent if header.kind is Kind.FETCH]
    assert fetched == alone.neighbours[1:]


def test_too_many_contributions_are_refused(graph):
    alone = Alone(graph)
    for source in alone.neighbours[:2]:
        alone.take(Kind.FEATURE, source, 1)
    everything = len(alone.neighbours)
    assert alone.take(Kind.SUM, sum(alone.neighbours), 100, everything)
    assert alone.sum is None
    assert alone.counters.wrong == 1
    assert not alone.take(Kind.SUM, 0, 0, everything + 1)
    assert not alone.take(Kind.SUM, 0, 0, 0)


def test_an_overflow_of_a_stranger_or_for_nobody_here_is_refused(graph):
    alone = Alone(graph)
    assert not alone.take(Kind.FEATURE, max(alone.neighbours) + 1, 1)
    assert not alone.take(Kind.FEATURE, alone.neighbours[0], 1, vertex=10**6)
    assert not alone.take(Kind.SUM, 1, 1, vertex=10**6)
    assert alone.counters.wrong == 3


def test_an_overflow_for_two_vertices_is_one_copy(graph):
    """As many as would do if each worker got one for all of its vertices."""
    alone = Alone(graph)
    rows = range(len(alone.schedule.receive_vertex))
    source, indices = next(
        (source, indices)
        for source in alone.neighbours
        if len(indices := [row for row in rows if source in alone.schedule.neighbours_of(row)]) > 1
    )
    for index in indices:
        alone.take(Kind.FEATURE, source, 1, vertex=int(alone.schedule.receive_vertex[index]))
    assert (alone.counters.overflows, alone.counters.overflow_copies) == (len(indices), 1)


def test_what_is_lost_is_fetched_once_the_switch_has_seen_all(graph):
    """Its slot serves another vertex by then: no recall brings the sum back."""
    alone = Alone(graph)
    told = Header(kind=Kind.MISSING, dst_id=alone.vertex, count=len(alone.neighbours))
    assert alone.receiver.take_missing(told, 1.0)
    assert not alone.receiver.take_missing(told, 1.1)
    assert [(each.kind, each.src_id) for each in alone.wire.sent] == [
        (Kind.FETCH, source) for source in alone.neighbours
    ]


def test_plans_are_not_confused(graph):
    with pytest.raises(PlanMismatchError, match="is the strawman's"):
        Team(strawman_plan(graph))
    with pytest.raises(PlanMismatchError, match="is not the strawman's"):
        StrawmanTeam(plan_of(graph, 3))
